"""The models are the published ones: parameters and multiply-accumulates, each with its source."""

import pytest

from paceline.errors import SpecError
from paceline.workloads import MODELS, Graph, load_workload
from paceline.workloads.cost import cost
from paceline.workloads.kinds import verify

IDS = [
    "mlp",
    "lenet5",
    "alexnet",
    "googlenet",
    "vgg16",
    "resnet20",
    "resnet32",
    "resnet44",
    "resnet56",
    "resnet110",
    "resnet50",
    "lstm",
    "transformer",
    "gpt",
]

PUBLISHED_PARAMETERS = {
    # `num_params` of torchvision's weights (pytorch/vision e6f0400, torchvision/models/*.py).
    "alexnet": 61_100_840,
    "vgg16": 138_357_544,
    "resnet50": 25_557_032,
    # Published rounded, 0.27 M, 0.46 M, 0.66 M, 0.85 M and 1.7 M: He et al. 2016, table 6, and the README of
    # akamaster/pytorch_resnet_cifar10 (d5489e8).
    "resnet20": 269_722,
    "resnet32": 464_154,
    "resnet44": 658_586,
    "resnet56": 853_018,
    "resnet110": 1_727_962,
    # Caffe's bvlc_googlenet without its auxiliary heads, as listed by HewlettPackard/dlcookbook-dlbs. (torchvision's
    # 6,624,904 is with batch norm and 3x3 in place of 5x5.)
    "googlenet": 6_998_552,
    # LeNet-5 with a fully connected C3; Keras' mnist_mlp example.
    "lenet5": 61_706,
    "mlp": 669_706,
}

PUBLISHED_MACS = {
    # `_ops` of torchvision's weights, which counts multiply-accumulates: 0.714, 15.47, 4.089 G.
    "alexnet": 0.714e9,
    "vgg16": 15.47e9,
    "resnet50": 4.089e9,
    # Implementations with the paper's 5x5 count 3.17 GFLOPs; torchvision's 1.498 G has 3x3 in their place.
    "googlenet": 1.583e9,
    # By hand: the stem, six equal convolutions, twice one of half and five of the same cost, the head.
    "resnet20": 442_368 + 6 * 2_359_296 + 2 * (1_179_648 + 5 * 2_359_296) + 640,
}


def test_the_models_are_exactly_these():
    assert sorted(IDS) == sorted(MODELS)


@pytest.mark.parametrize("name", PUBLISHED_PARAMETERS)
def test_number_of_parameters_is_the_published_one(name):
    assert load_workload(name).num_parameters == PUBLISHED_PARAMETERS[name]


@pytest.mark.parametrize("name", PUBLISHED_MACS)
def test_multiply_accumulates_are_the_published_ones(name):
    assert cost(load_workload(name)).macs == pytest.approx(PUBLISHED_MACS[name], rel=0.001)


@pytest.mark.parametrize("name", IDS)
def test_every_model_survives_json_and_verification(name):
    graph = load_workload(name)

    again = Graph.from_json(graph.to_json())

    verify(again)
    assert again == graph
    assert again.hash == graph.hash


def test_lenet5_in_full_by_hand():
    c1, c3 = 6 * (25 + 1), 16 * (6 * 25 + 1)
    c5, f6, head = 120 * (400 + 1), 84 * (120 + 1), 10 * (84 + 1)

    assert load_workload("lenet5").num_parameters == c1 + c3 + c5 + f6 + head


def test_auxiliary_heads_add_their_losses_at_weight_0_3():
    graph = load_workload("googlenet", {"auxiliary_heads": True})

    assert [loss.weight for loss in graph.losses] == [1.0, 0.3, 0.3]
    assert graph.losses[0].logits == "head"
    assert graph.num_parameters == 13_378_280


@pytest.mark.parametrize("name", ["alexnet", "vgg16", "googlenet"])
def test_dropout_zero_leaves_no_dropout_layer(name):
    options: dict[str, object] = {"dropout": 0}
    if name == "googlenet":
        options["auxiliary_heads"] = True

    kinds = {layer.kind for layer in load_workload(name, options).layers}

    assert "dropout" not in kinds
    assert "dropout" in {layer.kind for layer in load_workload(name).layers}


def test_resnet50_has_its_stride_in_the_3x3():
    graph = load_workload("resnet50")

    assert graph.layer("stage2_block1_a_conv").attributes["stride"] == (1, 1)
    assert graph.layer("stage2_block1_b_conv").attributes["stride"] == (2, 2)


def test_option_a_shortcuts_have_no_parameters_and_pad_both_sides():
    layer = load_workload("resnet20").layer("stage2_block1_shortcut")

    assert layer.kind == "subsample_pad"
    assert layer.parameters == ()
    assert layer.attributes == {"stride": (2, 2), "pad_low": 8, "pad_high": 8}


def test_an_lstm_layer_has_one_bias():
    layer = load_workload("lstm", {"embedding": 5, "hidden": 7, "layers": 1}).layer("lstm1")

    sizes = {parameter.name: parameter.size for parameter in layer.parameters}

    assert sizes == {"w_x": 4 * 7 * 5, "w_h": 4 * 7 * 7, "bias": 4 * 7}


def test_gpt_is_causal_and_predicts_at_every_position():
    graph = load_workload("gpt", {"sequence_length": 16, "vocabulary": 50})

    assert graph.layer("block1_attention").attributes["causal"] is True
    assert graph.layer(graph.losses[0].logits).shape == (16, 50)


def test_an_unknown_model_suggests_the_nearest():
    with pytest.raises(SpecError, match="resnet55") as error:
        load_workload("resnet55")

    assert error.value.hint is not None
    assert "alexnet, " in error.value.hint
    assert "did you mean 'resnet" in error.value.hint


def test_an_unknown_option_suggests_the_nearest():
    with pytest.raises(SpecError, match="workload 'mlp' has no option 'hiden'") as error:
        load_workload("mlp", {"hiden": [3]})

    assert "did you mean 'hidden'" in (error.value.hint or "")


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("mlp", {"hidden": 5}, "option 'hidden' must be a list of integers, not 5"),
        ("mlp", {"hidden": [5, "x"]}, "must be a list of integers"),
        ("resnet20", {"num_classes": True}, "option 'num_classes' must be an integer, not True"),
        ("resnet20", {"num_classes": 10.0}, "must be an integer"),
        ("googlenet", {"auxiliary_heads": 1}, "must be true or false, not 1"),
        ("alexnet", {"dropout": "0.5"}, "must be a number"),
        ("alexnet", {"dropout": 1.0}, "rate must be at least 0 and below 1"),
        ("alexnet", {"image_size": 40}, "does not fit"),
        ("gpt", {"heads": 3}, "3 heads do not divide 128 features"),
        ("gpt", {"layers": 0}, "option 'layers' must be at least 1"),
        ("resnet20", {"num_classes": 0}, "at least one class"),
    ],
)
def test_a_wrong_option_says_what_is_wrong(name, options, message):
    with pytest.raises(SpecError, match=message):
        load_workload(name, options)


def test_options_change_the_hash_and_not_the_name():
    ten, hundred = load_workload("resnet20"), load_workload("resnet20", {"num_classes": 100})

    assert ten.name == hundred.name
    assert ten.hash != hundred.hash
