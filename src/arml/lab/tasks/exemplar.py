"""Exemplar-MT: an image should keep its features when it is flipped, noisy and partly covered."""

import torch
from torch import Tensor
from torch.nn import functional as F

from arml._distributed import largest_over_processes
from arml.lab.data.augment import cutout, flip, noise
from arml.lab.models.ema import EMATeacher
from arml.lab.models.network import Network, keep_statistics, promote_to_float32


def exemplar(network: Network, teacher: EMATeacher, view: Tensor, distorted: Tensor, *, offset: float = 1.0) -> Tensor:
    r"""How far the features of distorted images point from those the teacher finds in the normal view.

    .. math:: \mathrm{mean}_b\ o - \cos(f(\mathit{distorted}_b),\ \mathrm{stop}\, f'(\mathit{view}_b))

    Shi et al., *Auxiliary Task Reweighting for Minimum-data Learning*, NeurIPS 2020, appendix: S4L's exemplar task with
    a teacher and without negatives. The paper minimises minus the cosine. The offset o changes no gradient. With o = 1
    the loss lies in [0, 2], as methods with ratios or logarithms of losses require, and comes near 0 once features
    agree: AdaLoss, which divides by the loss, then gives the task a large weight.

    Args:
        network: Computes the features f.
        teacher: Computes f', which follows f.
        view: Images as augmented for the main task, [B, C, H, W].
        distorted: The same images after :func:`distort`.
        offset: o.
    """
    # Dual numbers pass through no_grad: detaching makes the target a constant for them as well.
    target = teacher.features(view).detach()
    with keep_statistics(network):
        features = network.features(distorted)
    # Cosines are close to 1, where half precision is coarse.
    return (offset - F.cosine_similarity(promote_to_float32(features), promote_to_float32(target), dim=1)).mean()


def distort(x: Tensor, generator: torch.Generator, *, strength: float = 0.03) -> Tensor:
    """Flips, adds noise and covers a square of half the image's side, drawn separately for every image.

    The noise has mean 0 and standard deviation ``strength`` times half the range of values in the batch. ARML's release
    draws one flip and one square for the whole batch, and its noise also shifts by the batch's mean.
    """
    noisy = noise(flip(x, generator), strength * _half_range(x), generator)
    return cutout(noisy, x.shape[-1] // 2, generator)


def _half_range(x: Tensor) -> Tensor:
    """Half the range of values in the whole batch. It stays on the device: reading the number would wait for it."""
    most, least = largest_over_processes(torch.stack([x.max(), -x.min()]))
    precise = torch.float32 if x.device.type == "mps" else torch.float64  # which MPS does not have
    half: Tensor = (most + least).to(precise) / 2
    return half
