"""Where graphs are cut into blocks and stages."""

from __future__ import annotations

from itertools import pairwise

import pytest

from paceline.workloads import load_workload
from paceline_worker.graph.blocks import blocks, segments, stage_graph


def json_of(model, **options):
    return load_workload(model, options).to_json()


def test_a_residual_block_is_one_segment_and_a_layer_by_itself_another():
    found = segments(json_of("resnet20"))

    assert found[0] == ["input", "stem_conv"]
    assert ["stem_norm"] in found
    (block,) = [segment for segment in found if "stage1_block1_add" in segment]
    assert block[0] == "stage1_block1_a_conv"
    assert block[-1] == "stage1_block1_add"
    assert [name for segment in found for name in segment] == [layer["name"] for layer in json_of("resnet20")["layers"]]


@pytest.mark.parametrize(("model", "first"), [("gpt", "_attention_norm"), ("transformer", "_attention")])
def test_blocks_of_a_transformer_begin_with_their_attention_and_the_head_is_the_lasts(model, first):
    found = blocks(json_of(model, layers=3))

    assert [block[0] for block in found] == ["input", *(f"block{n}{first}" for n in (1, 2, 3))]
    assert found[-1][-1] == "head"


def test_small_layers_belong_to_the_one_before_them():
    found = blocks(json_of("resnet20"), least=4096)

    assert found[0][:3] == ["input", "stem_conv", "stem_norm"]
    assert all(sum(name.endswith("_add") for name in block) <= 1 for block in found[1:])


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_stages_have_every_layer_once_and_hand_on_one_value(stages):
    graph = json_of("gpt", layers=3)
    parts = [stage_graph(graph, stage, stages) for stage in range(stages)]
    computed = [layer["name"] for part in parts for layer in part["layers"] if layer["kind"] != "input"]

    assert computed == [layer["name"] for layer in graph["layers"][1:]]
    for before, after in pairwise(parts):
        assert after["layers"][0]["name"] == before["losses"][0]["logits"]
        assert after["layers"][0]["kind"] == "input"
    assert parts[-1]["losses"] == graph["losses"]


def test_more_stages_than_blocks_are_refused():
    with pytest.raises(ValueError, match="3 blocks cannot fill 4 stages"):
        stage_graph(json_of("gpt", layers=3), 0, 4)
