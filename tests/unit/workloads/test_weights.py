import hashlib
import json
import math

import numpy as np
import pytest

from paceline.errors import SpecError
from paceline.workloads import load_workload
from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Input, Sgd
from paceline.workloads.weights import CHUNK, write_initial_weights

# Of the file for lenet5 with seed 0, on every machine and with every NumPy.
LENET5_SHA256 = "dca9dd763f46dcb3877954e604b287627bde6f5a7fe239ed11ab31f5e8730fa7"


def tensors(weights):
    index = json.loads(weights.index_path.read_text())
    values = np.fromfile(weights.path, dtype="<f4")
    found = {}
    for tensor in index["tensors"]:
        start = tensor["offset_bytes"] // 4
        found[tensor["name"]] = values[start : start + math.prod(tensor["shape"])].reshape(tensor["shape"])
    return found


def test_the_weights_of_lenet5_are_golden(tmp_path):
    assert write_initial_weights(load_workload("lenet5"), 0, tmp_path).sha256 == LENET5_SHA256


def test_the_checksum_is_that_of_the_file(tmp_path):
    weights = write_initial_weights(load_workload("lenet5"), 3, tmp_path)

    assert weights.sha256 == hashlib.sha256(weights.path.read_bytes()).hexdigest()
    assert weights.sha256 == json.loads(weights.index_path.read_text())["sha256"]


def test_the_index_covers_the_file_without_gaps(tmp_path):
    graph = load_workload("resnet20")
    weights = write_initial_weights(graph, 0, tmp_path)
    index = json.loads(weights.index_path.read_text())

    offset = 0
    for tensor, (name, parameter) in zip(index["tensors"], graph.tensors(), strict=True):
        assert (tensor["name"], tensor["offset_bytes"]) == (name, offset)
        assert tuple(tensor["shape"]) == parameter.shape
        assert tensor["buffer"] == name.split(".")[1].startswith("running_")
        assert tensor["trainable"] != tensor["buffer"]
        offset += 4 * parameter.size
    assert (index["version"], index["graph"], index["seed"]) == (1, graph.hash, 0)
    assert weights.path.stat().st_size == offset == index["bytes"]


def test_norms_start_as_the_identity(tmp_path):
    found = tensors(write_initial_weights(load_workload("resnet20"), 0, tmp_path))

    assert (found["stem_norm.weight"] == 1).all()
    assert (found["stem_norm.bias"] == 0).all()
    assert (found["stem_norm.running_mean"] == 0).all()
    assert (found["stem_norm.running_var"] == 1).all()


def test_a_seed_changes_every_random_tensor(tmp_path):
    graph = load_workload("lenet5")
    one, two = (tensors(write_initial_weights(graph, seed, tmp_path)) for seed in (1, 2))

    # Single values may meet by chance: a bell has 2**18 of them.
    assert [n for n in one if n.endswith("weight") and (one[n] == two[n]).mean() > 0.001] == []


def test_a_layer_more_does_not_shift_the_others(tmp_path):
    short = tensors(write_initial_weights(load_workload("mlp", {"hidden": [20]}), 0, tmp_path))
    long = tensors(write_initial_weights(load_workload("mlp", {"hidden": [20, 20]}), 0, tmp_path))

    assert (short["hidden1.weight"] == long["hidden1.weight"]).all()
    assert (short["head.weight"] == long["head.weight"]).all()


def test_he_normal_has_its_mean_spread_and_ends(tmp_path):
    graph = load_workload("mlp", {"features": 1000, "hidden": [1000]})
    weight = tensors(write_initial_weights(graph, 0, tmp_path))["hidden1.weight"].astype(np.float64)
    std = math.sqrt(2 / 1000)

    assert abs(weight.mean()) < 4 * std / 1000
    assert weight.std() == pytest.approx(std, rel=0.005)
    assert 3 * std < abs(weight).max() <= math.sqrt(12) * std
    # Shares within one and two standard deviations: a normal has 0.683 and 0.954.
    assert (abs(weight) < std).mean() == pytest.approx(0.683, abs=0.02)
    assert (abs(weight) < 2 * std).mean() == pytest.approx(0.954, abs=0.01)


def test_glorot_and_uniform_fill_their_ranges(tmp_path):
    gpt = tensors(write_initial_weights(load_workload("gpt", {"layers": 1}), 0, tmp_path))
    lstm = tensors(write_initial_weights(load_workload("lstm"), 0, tmp_path))

    for values, limit in (
        (gpt["block1_attention.qkv_weight"], math.sqrt(6 / 256)),
        (lstm["lstm1.w_h"], 128**-0.5),
    ):
        assert 0.99 * limit < abs(values).max() <= limit * (1 + 1e-6)
        assert abs(values.mean()) < limit / 50


def test_a_tensor_larger_than_a_chunk_does_not_repeat(tmp_path):
    graph = load_workload("mlp", {"features": 2048, "hidden": [1024]})
    values = tensors(write_initial_weights(graph, 0, tmp_path))["hidden1.weight"].ravel()

    assert values.size == 2 * CHUNK
    assert not (values[:CHUNK] == values[CHUNK:]).all()


def test_present_weights_are_reused(tmp_path):
    first = write_initial_weights(load_workload("lenet5"), 0, tmp_path)
    before = first.path.stat()

    again = write_initial_weights(load_workload("lenet5"), 0, tmp_path)

    assert again == first
    assert (again.path.stat().st_ino, again.path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("damage", ["short data", "no data", "no index", "broken index", "other index"])
def test_damaged_weights_are_written_again(tmp_path, damage):
    weights = write_initial_weights(load_workload("lenet5"), 0, tmp_path)
    if damage == "short data":
        weights.path.write_bytes(weights.path.read_bytes()[:-4])
    elif damage == "no data":
        weights.path.unlink()
    elif damage == "no index":
        weights.index_path.unlink()
    elif damage == "broken index":
        weights.index_path.write_text('{"version": 1')
    else:
        index = json.loads(weights.index_path.read_text())
        weights.index_path.write_text(json.dumps({**index, "version": 0}))

    again = write_initial_weights(load_workload("lenet5"), 0, tmp_path)

    assert again.sha256 == hashlib.sha256(again.path.read_bytes()).hexdigest() == LENET5_SHA256


def test_nothing_temporary_is_left_behind(tmp_path):
    weights = write_initial_weights(load_workload("lenet5"), 0, tmp_path)

    assert sorted(tmp_path.iterdir()) == sorted([weights.path, weights.index_path])


def test_an_unknown_init_is_refused_and_leaves_nothing(tmp_path):
    net = GraphBuilder("net", Input(kind="vector", shape=(3,), classes=2))
    net.loss(net.linear("head", INPUT, features=2, init={"kind": "magic"}))

    with pytest.raises(SpecError, match=r"tensor 'head\.weight': unknown init 'magic'"):
        write_initial_weights(net.build(Sgd(learning_rate=0.1)), 0, tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "init, message",
    [
        ({"kind": "normal"}, r"tensor 'head\.weight': init 'normal' needs the number 'std', not None"),
        ({"kind": "uniform", "limit": "wide"}, r"init 'uniform' needs the number 'limit', not 'wide'"),
        ({"kind": "glorot_uniform", "fan_in": 3}, r"init 'glorot_uniform' needs the number 'fan_out', not None"),
    ],
)
def test_an_init_without_its_number_is_refused(tmp_path, init, message):
    net = GraphBuilder("net", Input(kind="vector", shape=(3,), classes=2))
    net.loss(net.linear("head", INPUT, features=2, init=init))

    with pytest.raises(SpecError, match=message):
        write_initial_weights(net.build(Sgd(learning_rate=0.1)), 0, tmp_path)
