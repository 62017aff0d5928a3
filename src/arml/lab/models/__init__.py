"""Networks: a trunk that is shared by all tasks, heads that are not.

- ``network``: trunk and heads; passes that leave BatchNorm's statistics alone
- ``wrn``: wide residual networks, for CIFAR-10 and SVHN
- ``small``: a small convolutional network, for grey images and one processor
- ``ema``: a teacher that follows a network
"""

from arml.lab.models.ema import EMATeacher
from arml.lab.models.network import Network, Trunk, statistics_kept
from arml.lab.models.small import small
from arml.lab.models.wrn import bn_momentum_for, wrn

__all__ = ["EMATeacher", "Network", "Trunk", "bn_momentum_for", "small", "statistics_kept", "wrn"]
