"""Shapes follow from the kinds, and what cannot be is refused with the layer's name."""

import re
from pathlib import Path

import pytest

from paceline.errors import SpecError
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Input
from paceline.workloads.kinds import KINDS
from paceline.workloads.options import checked_options

IMAGE = Input(kind="image", shape=(3, 8, 10), classes=4)
VECTOR = Input(kind="vector", shape=(6,), classes=4)
TOKENS = Input(kind="tokens", shape=(5,), classes=4, vocabulary=11)


def test_every_kind_has_a_builder_method():
    assert [kind for kind in KINDS if not callable(getattr(GraphBuilder, kind, None))] == []


def test_every_kind_and_its_attributes_are_documented():
    text = (Path(__file__).parents[3] / "docs" / "reference" / "graph.md").read_text(encoding="utf-8")
    rows = {row.split("|")[1].strip().strip("`"): row for row in re.findall(r"^\| `.*$", text, re.MULTILINE)}

    for kind, function in KINDS.items():
        names = [name for name in function.__annotations__ if name not in ("x", "xs", "return")]
        assert [name for name in names if f"`{name}`" not in rows[kind]] == []


@pytest.mark.parametrize(
    "settings, shape",
    [
        ({"kernel": 3}, (7, 6, 8)),
        ({"kernel": 3, "padding": 1}, (7, 8, 10)),
        ({"kernel": 3, "padding": 1, "stride": 2}, (7, 4, 5)),
        ({"kernel": (1, 3), "padding": (0, 1), "stride": (2, 1)}, (7, 4, 10)),
    ],
)
def test_convolution_shapes_round_down(settings, shape):
    net = GraphBuilder("net", IMAGE)

    assert net.shape(net.conv2d("conv", INPUT, filters=7, **settings)) == shape


def test_grouped_convolution_weights_have_the_channels_of_one_group():
    net = GraphBuilder("net", Input(kind="image", shape=(8, 4, 4), classes=7 * 4))
    net.conv2d("conv", INPUT, filters=12, kernel=3, padding=1, groups=4)

    layer = net._layers["conv"]

    assert layer.parameters[0].shape == (12, 2, 3, 3)
    assert layer.parameters[0].init == {"kind": "he_normal", "fan_in": 18}


def test_sequence_shapes():
    net = GraphBuilder("net", TOKENS)
    x = net.embedding("embedding", INPUT, features=6)
    x = net.position_embedding("position", x)
    x = net.layer_norm("norm", net.attention("attention", x, heads=3))
    x = net.lstm("lstm", net.linear("linear", x, features=8), hidden=9)

    assert net.shape("embedding") == (5, 6)
    assert net.shape("norm") == (5, 6)
    assert net.shape("linear") == (5, 8)
    assert net.shape("lstm") == (5, 9)
    assert net.shape(net.last_step("last", x)) == (9,)
    assert net.shape(net.mean_over_time("mean", x)) == (9,)


def test_subsampling_takes_pixel_zero_and_keeps_an_odd_last_one():
    net = GraphBuilder("net", Input(kind="image", shape=(4, 7, 8), classes=2))

    assert net.shape(net.subsample_pad("shortcut", INPUT, stride=2, pad_low=1, pad_high=2)) == (7, 4, 4)


@pytest.mark.parametrize(
    "given, add, message",
    [
        (
            IMAGE,
            lambda n: n.conv2d("c", INPUT, filters=2, kernel=9),
            "'c' .conv2d.: kernel 9x9 does not fit in 8x10",
        ),
        (IMAGE, lambda n: n.conv2d("c", INPUT, filters=2, kernel=3, groups=2), "2 groups"),
        (IMAGE, lambda n: n.conv2d("c", INPUT, filters=0, kernel=3), "filters must be at least 1"),
        (IMAGE, lambda n: n.conv2d("c", INPUT, filters=2, kernel=3, stride=0), "stride must be at least 1"),
        (IMAGE, lambda n: n.conv2d("c", INPUT, filters=2, kernel=3, padding=-1), "must not be negative"),
        (IMAGE, lambda n: n.conv2d("c", INPUT, filters=2.0, kernel=3), "'filters' must be an integer"),
        (IMAGE, lambda n: n.max_pool2d("p", INPUT, kernel=2, stride=2, padding=2), "more than half"),
        (IMAGE, lambda n: n.linear("l", INPUT, features=3), "flatten an image first"),
        (IMAGE, lambda n: n.add("a", INPUT), "two or more equal shapes"),
        (IMAGE, lambda n: n.add("a", INPUT, n.global_avg_pool("g", INPUT)), r"\(3, 8, 10\) and \(3,\)"),
        (IMAGE, lambda n: n.concat("a", INPUT, n.max_pool2d("p", INPUT, kernel=2, stride=2)), "same height"),
        (IMAGE, lambda n: n.lstm("l", INPUT, hidden=3), "takes a sequence"),
        (IMAGE, lambda n: n.relu("r", "nowhere"), "has no layer 'nowhere' yet"),
        (IMAGE, lambda n: n.relu(n.relu("r", INPUT), INPUT), "two layers are named 'r'"),
        (IMAGE, lambda n: n.loss(INPUT), r"logits of shape \(3, 8, 10\), but label needs \(4,\)"),
        (IMAGE, lambda n: n.batch_norm("b", INPUT, eps=0.0), "eps must be above 0"),
        (VECTOR, lambda n: n.conv2d("c", INPUT, filters=2, kernel=1), "takes an image"),
        (VECTOR, lambda n: n.embedding("e", INPUT, features=3), "vocabulary must be at least 1"),
        (TOKENS, lambda n: n.linear("l", INPUT, features=3), "only embeddings read tokens"),
        (TOKENS, lambda n: n.embedding("e", n.embedding("d", INPUT, features=3), features=3), "takes tokens"),
    ],
)
def test_the_impossible_is_refused_by_name(given, add, message):
    with pytest.raises(SpecError, match=message):
        add(GraphBuilder("net", given))


@pytest.mark.parametrize(
    "given",
    [
        Input(kind="sound", shape=(3,), classes=2),  # type: ignore[arg-type]
        Input(kind="image", shape=(3, 3), classes=2),
        Input(kind="vector", shape=(3,), classes=2, vocabulary=5),
        Input(kind="tokens", shape=(3,), classes=2),
        Input(kind="tokens", shape=(3,), classes=2, vocabulary=5, target="next-token"),
        Input(kind="vector", shape=(3,), classes=2, target="next-token"),
    ],
)
def test_an_input_that_contradicts_itself_is_refused(given):
    with pytest.raises(SpecError):
        GraphBuilder("net", given)


def test_a_missing_keyword_is_named():
    def function(*, size: int) -> None: ...

    with pytest.raises(SpecError, match="thing needs the option 'size'"):
        checked_options(function, {}, owner="thing", word="option")
