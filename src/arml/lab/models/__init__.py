"""Networks: a trunk that all tasks share, and heads of their own. Each file imports only from files above it.

- ``network``: trunk and heads; passes that leave BatchNorm's statistics alone
- ``normalisation``: a pass that is normalised by the statistics of another one
- ``mlp``: a perceptron, for rows of a table
- ``small``: a small convolutional network, for grey images and one processor; ``plain``: one without BatchNorm
- ``wrn``: wide residual networks, for CIFAR-10 and SVHN
- ``resnet``: ResNet18 with torchvision's names, for faces and domains; ``weights``: loads public weights into it
- ``efficientnet``: EfficientNet-Lite0 with weights learned on ImageNet
- ``frozen``: the first layers of a trunk as a fixed function
- ``pixelwise``: 1x1 convolutions as products of matrices
- ``ema``: a teacher that follows a network
- ``aggregation``: modules that combine the outputs of all blocks of a trunk, one per source domain
"""

from arml.lab.models.ema import EMATeacher
from arml.lab.models.mlp import mlp
from arml.lab.models.network import Network, Trunk, keep_statistics
from arml.lab.models.plain import plain
from arml.lab.models.resnet import resnet18
from arml.lab.models.small import small
from arml.lab.models.weights import load_weights
from arml.lab.models.wrn import wrn

__all__ = [
    "EMATeacher",
    "Network",
    "Trunk",
    "keep_statistics",
    "load_weights",
    "mlp",
    "plain",
    "resnet18",
    "small",
    "wrn",
]
