"""Images in the style of other domains, which keep their shapes and lose their colours."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from arml.lab.tasks.jigsaw import TILES, put_together, tiles

Stylise: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Images [B, C, h, w] and an image of the wanted style for each, [B, C, H, W] -> images like the first, restyled."""


def pixel_adain(x: Tensor, style: Tensor) -> Tensor:
    r"""Images with the mean and the standard deviation of each channel of others: style by pixel statistics.

    .. math:: \sigma(\mathit{style})\, \frac{x - \mu(x)}{\sigma(x)} + \mu(\mathit{style})

    Huang and Belongie, *Arbitrary Style Transfer in Real-time with Adaptive Instance Normalization*, ICCV 2017, on
    the pixels themselves. An approximation: the original works on features of a VGG network, whose weights are not part
    of this project, and a decoder follows. Here colours and contrast change, but neither strokes nor textures.
    """
    mean, std = _statistics(x)
    new_mean, new_std = _statistics(style)
    # A channel without contrast has nothing to scale and gets the other's mean.
    return new_std * (x - mean) / std.clamp(min=1e-5) + new_mean


def draw_styles(domains: Tensor, rows: Tensor, generator: torch.Generator) -> Tensor:
    """For every image in ``rows`` nine images that are neither of its own domain nor of the target, [len(rows), 9].

    Args:
        domains: where each image comes from, [B]; 0 is the target.
        rows: indices of images.
        generator: decides; all images that are allowed are alike.
    """
    allowed = (domains != domains[rows].unsqueeze(1)) & (domains > 0)
    if not bool(allowed.any(dim=1).all()):
        raise ValueError("A style comes from another source: a batch should have images of at least two. Got one.")
    weights = allowed.to(generator.device, torch.float64)
    return torch.multinomial(weights, TILES, replacement=True, generator=generator).to(domains.device)


def restyle(x: Tensor, rows: Tensor, styles: Tensor, by_tile: Tensor, stylise: Stylise) -> Tensor:
    """Gives images ``rows`` of ``x`` [B, C, 3 h, 3 w] new styles; others stay as they are.

    Args:
        x: all images.
        rows: indices of the images to change, [n].
        styles: indices of images whose style is taken, [n, 9]: one for each tile, the first one for whole images.
        by_tile: whether every tile gets a style of its own, [n].
        stylise: is called with whole images or with tiles, and not at all where there are none.
    """
    changed = x.clone()
    whole, cut = rows[~by_tile], rows[by_tile]
    if len(whole):
        changed[whole] = stylise(x[whole], x[styles[~by_tile, 0]])
    if len(cut):
        parts = stylise(tiles(x[cut]).flatten(0, 1), x[styles[by_tile].flatten()])
        changed[cut] = put_together(parts.unflatten(0, (-1, TILES)))
    return changed


def _statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of every channel of every image, [B, C, 1, 1]."""
    return x.mean(dim=(2, 3), keepdim=True), x.std(dim=(2, 3), correction=0, keepdim=True)
