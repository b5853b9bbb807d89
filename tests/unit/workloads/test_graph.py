import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import SpecError
from paceline.workloads import Graph, load_workload
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Input, Sgd
from paceline.workloads.kinds import verify

# The identity of a workload: weights, proofs and records refer to it. If this fails, either undo the change
# or change it here on purpose, and say so in the change log: records before and after are different workloads.
RESNET20_HASH = "955e3298a998abf2"


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Small image networks of random kinds, sizes and optimizers."""
    channels, size = draw(st.integers(1, 4)), draw(st.integers(4, 12))
    classes = draw(st.integers(1, 12))
    net = GraphBuilder("random-net", Input(kind="image", shape=(channels, size, size), classes=classes))
    x = INPUT
    for number in range(draw(st.integers(0, 6))):
        name = f"layer{number}"
        kind = draw(st.sampled_from(["conv", "norm", "relu", "pool", "dropout", "add", "concat", "shortcut"]))
        if kind == "conv":
            padding = draw(st.integers(1, 2))
            x = net.conv2d(
                name, x, filters=draw(st.integers(1, 5)), kernel=3, padding=padding, bias=draw(st.booleans())
            )
        elif kind == "norm":
            x = net.batch_norm(name, x, eps=draw(st.floats(1e-6, 1e-2)))
        elif kind == "relu":
            x = net.relu(name, x)
        elif kind == "pool":
            x = net.max_pool2d(name, x, kernel=3, stride=2, padding=1)
        elif kind == "dropout":
            x = net.dropout(name, x, rate=draw(st.floats(0, 0.9)))
        elif kind == "shortcut":
            x = net.subsample_pad(name, x, stride=draw(st.integers(1, 2)), pad_low=1, pad_high=0)
        else:
            x = (net.add if kind == "add" else net.concat)(name, x, x)
    net.loss(net.linear("head", net.flatten("flatten", x), features=classes), weight=draw(st.floats(0.1, 2)))
    rate = draw(st.floats(1e-6, 10) | st.integers(1, 3))
    return net.build(Sgd(learning_rate=rate, momentum=draw(st.floats(0, 0.99))))


@given(graphs())
def test_any_graph_survives_json_text(graph):
    again = Graph.from_json(json.loads(json.dumps(graph.to_json())))

    verify(again)
    assert again == graph
    assert again.hash == graph.hash


def test_the_hash_of_resnet20_is_golden():
    assert load_workload("resnet20").hash == RESNET20_HASH


def test_the_hash_sees_the_optimizer():
    graph = load_workload("lenet5")

    assert replace(graph, optimizer=Sgd(learning_rate=0.5)).hash != graph.hash


def test_a_whole_number_and_its_float_are_one_learning_rate():
    graph = load_workload("lenet5")

    whole, real = (replace(graph, optimizer=Sgd(learning_rate=rate)) for rate in (1, 1.0))

    assert whole.hash == real.hash


def test_the_first_layer_is_the_input():
    graph = load_workload("resnet20")

    assert (graph.layers[0].name, graph.layers[0].kind) == ("input", "input")
    assert graph.layers[0].shape == graph.input.shape


def test_tensors_come_in_graph_order_with_qualified_names():
    names = [name for name, _ in load_workload("resnet20").tensors()]

    assert names[:5] == [
        "stem_conv.weight",
        "stem_norm.weight",
        "stem_norm.bias",
        "stem_norm.running_mean",
        "stem_norm.running_var",
    ]
    assert len(set(names)) == len(names)


def test_buffers_are_not_parameters():
    graph = load_workload("resnet20")
    buffers = [tensor for layer in graph.layers for tensor in layer.buffers]

    assert len(buffers) == 2 * 19
    assert not any(buffer.trainable for buffer in buffers)


@pytest.mark.parametrize("version", [0, 2, None, "1"])
def test_another_version_is_refused(version):
    with pytest.raises(SpecError, match="version"):
        Graph.from_json({**load_workload("lenet5").to_json(), "version": version})


def test_a_missing_key_is_named():
    data = load_workload("lenet5").to_json()
    del data["layers"][1]["shape"]

    with pytest.raises(SpecError, match="lacks the key 'shape'"):
        Graph.from_json(data)


def test_an_unknown_input_key_is_refused():
    data = load_workload("lenet5").to_json()
    data["input"]["colour"] = True

    with pytest.raises(SpecError, match=r"malformed.*colour"):
        Graph.from_json(data)


def test_layers_out_of_order_are_refused():
    data = load_workload("lenet5").to_json()
    data["layers"][2], data["layers"][3] = data["layers"][3], data["layers"][2]

    with pytest.raises(SpecError, match="not an earlier layer"):
        Graph.from_json(data)


def test_two_layers_of_one_name_are_refused():
    data = load_workload("lenet5").to_json()
    data["layers"].append(data["layers"][-1])

    with pytest.raises(SpecError, match="two layers are named 'head'"):
        Graph.from_json(data)


@pytest.mark.parametrize("name", ["", "9lives", "a.b", "a/b", "a b"])
def test_a_layer_name_is_an_identifier(name):
    net = GraphBuilder("net", Input(kind="vector", shape=(3,), classes=2))
    net.loss(net.linear(name, INPUT, features=2))

    with pytest.raises(SpecError, match="layer name"):
        net.build(Sgd(learning_rate=0.1))


def test_a_graph_without_loss_is_refused():
    net = GraphBuilder("net", Input(kind="vector", shape=(3,), classes=2))
    net.linear("head", INPUT, features=2)

    with pytest.raises(SpecError, match="no loss"):
        net.build(Sgd(learning_rate=0.1))


def test_verification_finds_a_shape_that_does_not_follow():
    data = load_workload("lenet5").to_json()
    data["layers"][1]["shape"] = [6, 27, 28]

    with pytest.raises(SpecError, match=r"layer 'c1' \(conv2d\) gives \(6, 28, 28\), not \(6, 27, 28\)"):
        verify(Graph.from_json(data))


def test_verification_finds_an_unknown_kind_and_suggests():
    data = load_workload("lenet5").to_json()
    data["layers"][1]["kind"] = "conv2"

    with pytest.raises(SpecError, match="unknown kind 'conv2'") as error:
        verify(Graph.from_json(data))

    assert "did you mean 'conv2d'" in (error.value.hint or "")


def test_without_dropout_readers_of_a_dropout_layer_read_its_source():
    net = GraphBuilder("tiny", Input(kind="vector", shape=(4,), classes=2))
    x = net.linear("fc1", INPUT, features=4)
    x = net.dropout("drop", x, rate=0.5)
    net.loss(net.linear("fc2", x, features=2))
    graph = net.build(optimizer=Sgd(learning_rate=0.1))

    certain = graph.without_dropout()

    assert [layer.name for layer in certain.layers] == ["input", "fc1", "fc2"]
    assert certain.layer("fc2").inputs == ("fc1",)
    assert certain.without_dropout() == certain
