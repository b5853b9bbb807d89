"""LeNet-5: LeCun et al., "Gradient-based learning applied to document recognition", 1998, figure 2.

The module owns the architecture and uses layer kinds only through the builder. The input is 1x28x28, as MNIST is
stored, and the first convolution pads by 2, which is the paper's 32x32. As in all later implementations, C3 reads all
maps, pooling has no weights, and the output is softmax and not Gaussian. Tanh and average pooling are kept from the
paper. The model has 61,706 parameters.
"""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import HEAD_STD, normal


def lenet5(*, num_classes: int = 10, image_size: int = 28) -> Graph:
    """LeNet-5 for square one-channel images."""
    net = GraphBuilder("lenet5", Input(kind="image", shape=(1, image_size, image_size), classes=num_classes))
    x = net.conv2d("c1", INPUT, filters=6, kernel=5, padding=2)
    x = net.tanh("c1_tanh", x)
    x = net.avg_pool2d("s2", x, kernel=2, stride=2)
    x = net.conv2d("c3", x, filters=16, kernel=5)
    x = net.tanh("c3_tanh", x)
    x = net.avg_pool2d("s4", x, kernel=2, stride=2)
    # At 28 pixels the paper's C5, a 5x5 convolution over a 5x5 map, is a linear layer over all of it.
    x = net.flatten("flatten", x)
    x = net.linear("c5", x, features=120)
    x = net.tanh("c5_tanh", x)
    x = net.linear("f6", x, features=84)
    x = net.tanh("f6_tanh", x)
    net.loss(net.linear("head", x, features=num_classes, init=normal(HEAD_STD)))
    return net.build(Sgd(learning_rate=0.01, momentum=0.9, weight_decay=0.0))
