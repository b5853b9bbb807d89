"""AlexNet in one tower: Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014.

The module owns the architecture and uses layer kinds only through the builder. The widths are torchvision's (64, 192,
384, 256, 256), without local response normalisation: 61,100,840 parameters, 94 % of them in three linear layers, which
is why it is the classic workload for the exchange of gradients.
"""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import normal

# As in the paper. With He's initialiser the loss would start far above ln(classes), since max pooling raises the mean.
LINEAR_STD = 0.01
# A tenth of the paper's, which is for batches of 128 or more; with it, small batches diverge within ten steps.
LEARNING_RATE = 0.001


def alexnet(*, num_classes: int = 1000, image_size: int = 224, dropout: float = 0.5) -> Graph:
    """AlexNet; the first linear layer grows with `image_size` (no adaptive pooling), 63 is the least."""
    net = GraphBuilder("alexnet", Input(kind="image", shape=(3, image_size, image_size), classes=num_classes))

    def conv(number: int, x: str, filters: int, *, kernel: int, padding: int, stride: int = 1) -> str:
        name = f"conv{number}"
        x = net.conv2d(name, x, filters=filters, kernel=kernel, stride=stride, padding=padding)
        return net.relu(f"{name}_relu", x)

    x = conv(1, INPUT, 64, kernel=11, padding=2, stride=4)
    x = net.max_pool2d("pool1", x, kernel=3, stride=2)
    x = conv(2, x, 192, kernel=5, padding=2)
    x = net.max_pool2d("pool2", x, kernel=3, stride=2)
    x = conv(3, x, 384, kernel=3, padding=1)
    x = conv(4, x, 256, kernel=3, padding=1)
    x = conv(5, x, 256, kernel=3, padding=1)
    x = net.max_pool2d("pool5", x, kernel=3, stride=2)
    x = net.flatten("flatten", x)
    for number in (6, 7):
        x = net.dropout(f"fc{number}_dropout", x, rate=dropout)
        x = net.linear(f"fc{number}", x, features=4096, init=normal(LINEAR_STD))
        x = net.relu(f"fc{number}_relu", x)
    net.loss(net.linear("head", x, features=num_classes, init=normal(LINEAR_STD)))
    return net.build(Sgd(learning_rate=LEARNING_RATE, momentum=0.9, weight_decay=5e-4))
