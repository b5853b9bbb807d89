"""ResNet-50 for ImageNet: He et al. 2016, table 1, in the variant everyone measures ("v1.5").

The module owns the architecture and uses layer kinds only through the builder. v1.5 puts the stride of a bottleneck in
its 3x3 convolution, not in the first 1x1 (torchvision, MLPerf, NVIDIA). Shortcuts are projections where shapes change
(option B). The model has 25,557,032 parameters and 4.09 G multiply-accumulates at 224.
"""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import HEAD_STD, normal

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # bottleneck width, blocks
EXPANSION = 4
# The paper's 0.1 is for batches of 256; a measurement has smaller ones and no warm-up.
LEARNING_RATE = 0.01


def resnet50(*, num_classes: int = 1000, image_size: int = 224) -> Graph:
    """ResNet-50 v1.5."""
    given = Input(kind="image", shape=(3, image_size, image_size), classes=num_classes)
    net = GraphBuilder("resnet50", given)
    x = _conv_norm(net, "stem", INPUT, filters=64, kernel=7, stride=2)
    x = net.relu("stem_relu", x)
    x = net.max_pool2d("stem_pool", x, kernel=3, stride=2, padding=1)
    for stage, (width, blocks) in enumerate(STAGES, start=1):
        for block in range(1, blocks + 1):
            stride = 2 if stage > 1 and block == 1 else 1
            x = _bottleneck(net, f"stage{stage}_block{block}", x, width, stride)
    x = net.global_avg_pool("pool", x)
    net.loss(net.linear("head", x, features=num_classes, init=normal(HEAD_STD)))
    return net.build(Sgd(learning_rate=LEARNING_RATE, momentum=0.9, weight_decay=1e-4))


def _bottleneck(net: GraphBuilder, name: str, x: str, width: int, stride: int) -> str:
    y = _conv_norm(net, f"{name}_a", x, filters=width, kernel=1, stride=1)
    y = net.relu(f"{name}_a_relu", y)
    y = _conv_norm(net, f"{name}_b", y, filters=width, kernel=3, stride=stride)
    y = net.relu(f"{name}_b_relu", y)
    y = _conv_norm(net, f"{name}_c", y, filters=EXPANSION * width, kernel=1, stride=1)
    if net.shape(x) != net.shape(y):
        x = _conv_norm(net, f"{name}_shortcut", x, filters=EXPANSION * width, kernel=1, stride=stride)
    return net.relu(f"{name}_relu", net.add(f"{name}_add", x, y))


def _conv_norm(net: GraphBuilder, name: str, x: str, *, filters: int, kernel: int, stride: int) -> str:
    conv = net.conv2d(f"{name}_conv", x, filters=filters, kernel=kernel, stride=stride, padding=kernel // 2, bias=False)
    return net.batch_norm(f"{name}_norm", conv)
