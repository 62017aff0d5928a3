"""Networks whose features are the pixels, for cases worked by hand."""

import math

import torch
from torch import nn, tensor

from arml.lab.models import Network

LN3 = math.log(3)


def pixels(*values):
    """Square images from flat lists."""
    side = math.isqrt(len(values[0]))
    return tensor(values, dtype=torch.float64).reshape(-1, 1, side, side)


def linear(weight, head="class"):
    """A network whose features are the pixels and whose ``head`` has this weight."""
    weight = tensor(weight, dtype=torch.float64)
    network = Network(nn.Flatten(), weight.shape[1], {"class": 2, head: len(weight)}).double()
    network.heads[head].weight.data = weight
    return network
