"""Networks: a trunk that is shared by all tasks, heads that are not.

- ``network``: trunk and heads; passes that leave BatchNorm's statistics alone
- ``wrn``: wide residual networks, for CIFAR-10 and SVHN
- ``resnet``: ResNet18 with torchvision's names, for faces and domains; ``weights``: public weights for it
- ``small``: a small convolutional network, for grey images and one processor; ``plain``: one without BatchNorm
- ``mlp``: a perceptron, for rows of a table
- ``aggregation``: modules that gather what all blocks of a trunk say, one for each source domain
- ``ema``: a teacher that follows a network
"""

from arml.lab.models.ema import EMATeacher
from arml.lab.models.mlp import mlp
from arml.lab.models.network import Network, Trunk, statistics_kept
from arml.lab.models.plain import plain
from arml.lab.models.resnet import resnet18
from arml.lab.models.small import small
from arml.lab.models.weights import load_weights
from arml.lab.models.wrn import bn_momentum_for, wrn

__all__ = [
    "EMATeacher",
    "Network",
    "Trunk",
    "bn_momentum_for",
    "load_weights",
    "mlp",
    "plain",
    "resnet18",
    "small",
    "statistics_kept",
    "wrn",
]
