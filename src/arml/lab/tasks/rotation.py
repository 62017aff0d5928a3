"""Rotation: by which angle was the image turned?"""

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.models.network import Network, keep_statistics


def rotation(network: Network, x: Tensor) -> Tensor:
    """Mean cross-entropy of the head ``"rotation"`` on all four quarter turns of every image.

    Gidaris et al., *Unsupervised Representation Learning by Predicting Image Rotations*, ICLR 2018; as an auxiliary
    task Zhai et al., *S4L*, ICCV 2019. One linear head on the features, as in ARML's release. There this pass also
    moves BatchNorm's running statistics; here it does not, since no test image is turned.
    """
    turned, angle = quarter_turns(x)
    with keep_statistics(network):
        return F.cross_entropy(network.head("rotation", network.features(turned)), angle)


def quarter_turns(x: Tensor) -> tuple[Tensor, Tensor]:
    """All images of ``x`` [B, C, H, W] turned by 0, 90, 180 and 270 degrees, [4 B, C, H, W], and the turns.

    >>> quarter_turns(torch.tensor([[[[1, 2], [3, 4]]]]))[0].flatten(1).tolist()
    [[1, 2, 3, 4], [2, 4, 1, 3], [4, 3, 2, 1], [3, 1, 4, 2]]
    """
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"Only square images stay in shape when turned. Got images of shape {tuple(x.shape)}.")
    turned = torch.cat([x.rot90(turn, dims=(2, 3)) for turn in range(4)])
    return turned, torch.arange(4, device=x.device).repeat_interleave(len(x))
