"""ResNets for CIFAR-10: He et al., "Deep residual learning for image recognition", 2016, section 4.2.

The module owns the architecture and uses layer kinds only through the builder. The depth is 6n + 2: three stages of n
basic blocks with 16, 32 and 64 filters on 32x32, 16x16 and 8x8. Shortcuts are those of option A, as in the paper: where
the size halves, they take every second pixel, add zero channels, half of them on either side, and have no parameters.
"""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import HEAD_STD, normal

STAGES = (16, 32, 64)

# The paper's 0.1 is for batches of 128, and for ResNet-110 only after a warm-up at 0.01. A measurement has
# tens of steps of any batch size, and never gets past such a warm-up.
LEARNING_RATE = 0.01


def resnet20(*, num_classes: int = 10, image_size: int = 32) -> Graph:
    """ResNet-20, 269,722 parameters."""
    return _resnet("resnet20", 3, num_classes, image_size)


def resnet32(*, num_classes: int = 10, image_size: int = 32) -> Graph:
    """ResNet-32, 464,154 parameters."""
    return _resnet("resnet32", 5, num_classes, image_size)


def resnet44(*, num_classes: int = 10, image_size: int = 32) -> Graph:
    """ResNet-44, 658,586 parameters."""
    return _resnet("resnet44", 7, num_classes, image_size)


def resnet56(*, num_classes: int = 10, image_size: int = 32) -> Graph:
    """ResNet-56, 853,018 parameters."""
    return _resnet("resnet56", 9, num_classes, image_size)


def resnet110(*, num_classes: int = 10, image_size: int = 32) -> Graph:
    """ResNet-110, 1,727,962 parameters."""
    return _resnet("resnet110", 18, num_classes, image_size)


def _resnet(name: str, blocks: int, num_classes: int, image_size: int) -> Graph:
    net = GraphBuilder(name, Input(kind="image", shape=(3, image_size, image_size), classes=num_classes))
    x = _conv_norm(net, "stem", INPUT, filters=STAGES[0], stride=1)
    x = net.relu("stem_relu", x)
    for stage, filters in enumerate(STAGES, start=1):
        for block in range(1, blocks + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            x = _basic_block(net, f"stage{stage}_block{block}", x, filters, stride)
    x = net.global_avg_pool("pool", x)
    net.loss(net.linear("head", x, features=num_classes, init=normal(HEAD_STD)))
    return net.build(Sgd(learning_rate=LEARNING_RATE, momentum=0.9, weight_decay=1e-4))


def _basic_block(net: GraphBuilder, name: str, x: str, filters: int, stride: int) -> str:
    y = _conv_norm(net, f"{name}_a", x, filters=filters, stride=stride)
    y = net.relu(f"{name}_a_relu", y)
    y = _conv_norm(net, f"{name}_b", y, filters=filters, stride=1)
    missing = filters - net.shape(x)[0]
    if missing:
        low = missing // 2
        x = net.subsample_pad(f"{name}_shortcut", x, stride=stride, pad_low=low, pad_high=missing - low)
    return net.relu(f"{name}_relu", net.add(f"{name}_add", x, y))


def _conv_norm(net: GraphBuilder, name: str, x: str, *, filters: int, stride: int) -> str:
    x = net.conv2d(f"{name}_conv", x, filters=filters, kernel=3, stride=stride, padding=1, bias=False)
    return net.batch_norm(f"{name}_norm", x)
