"""VGG-16: Simonyan and Zisserman, "Very deep convolutional networks", 2015, table 1, column D.

The module owns the architecture and uses layer kinds only through the builder. The model has no batch norm and
138,357,544 parameters.
"""

from __future__ import annotations

from paceline.workloads.builder import GraphBuilder
from paceline.workloads.graph import INPUT, Graph, Input, Sgd
from paceline.workloads.layers import normal

# As in the paper. With He's initialiser the loss would start far above ln(classes), since max pooling raises the mean.
LINEAR_STD = 0.01
# A tenth of the paper's, which is for batches of 128 or more; with it, small batches diverge within ten steps.
LEARNING_RATE = 0.001
STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # filters, convolutions


def vgg16(*, num_classes: int = 1000, image_size: int = 224, dropout: float = 0.5) -> Graph:
    """VGG-16; the first linear layer grows with `image_size` (no adaptive pooling), 32 is the least."""
    net = GraphBuilder("vgg16", Input(kind="image", shape=(3, image_size, image_size), classes=num_classes))
    x = INPUT
    for stage, (filters, depth) in enumerate(STAGES, start=1):
        for number in range(1, depth + 1):
            name = f"conv{stage}_{number}"
            x = net.conv2d(name, x, filters=filters, kernel=3, padding=1)
            x = net.relu(f"{name}_relu", x)
        x = net.max_pool2d(f"pool{stage}", x, kernel=2, stride=2)
    x = net.flatten("flatten", x)
    for number in (6, 7):
        x = net.linear(f"fc{number}", x, features=4096, init=normal(LINEAR_STD))
        x = net.relu(f"fc{number}_relu", x)
        x = net.dropout(f"fc{number}_dropout", x, rate=dropout)
    net.loss(net.linear("head", x, features=num_classes, init=normal(LINEAR_STD)))
    return net.build(Sgd(learning_rate=LEARNING_RATE, momentum=0.9, weight_decay=5e-4))
