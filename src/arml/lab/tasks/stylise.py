"""Images in the style of other domains: they keep their shapes and lose their colours."""

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from arml.lab.tasks.jigsaw import TILES, put_together, tiles

Stylise: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Images [B, C, h, w] and a style image for each, [B, C, H, W] -> the first images in the style of the others."""


def pixel_adain(x: Tensor, style: Tensor) -> Tensor:
    r"""Images whose channels take mean and standard deviation from other images: style by pixel statistics.

    .. math:: \sigma(\mathit{style})\, \frac{x - \mu(x)}{\sigma(x)} + \mu(\mathit{style})

    Huang and Belongie, *Arbitrary Style Transfer in Real-time with Adaptive Instance Normalization*, ICCV 2017, on
    the pixels themselves. An approximation: the original works on features of a VGG network, whose weights are not part
    of this project, followed by a decoder. Here colours and contrast change, but neither strokes nor textures.
    """
    mean, std = _statistics(x)
    new_mean, new_std = _statistics(style)
    # A channel without contrast has nothing to scale and gets the mean of the style.
    return new_std * (x - mean) / std.clamp(min=1e-5) + new_mean


def draw_styles(domains: Tensor, rows: Tensor, generator: torch.Generator) -> Tensor:
    """Draws for every image in ``rows`` nine images from neither its own domain nor the target, [len(rows), 9].

    Args:
        domains: The domain of each image, [B]; 0 is the target.
        rows: Indices of images.
        generator: Draws uniformly among all allowed images.
    """
    allowed = (domains != domains[rows].unsqueeze(1)) & (domains > 0)
    if not bool(allowed.any(dim=1).all()):
        raise ValueError("A style comes from another source: a batch should have images of at least two. Got one.")
    weights = allowed.to(generator.device, torch.float64)
    return torch.multinomial(weights, TILES, replacement=True, generator=generator).to(domains.device)


def restyle(x: Tensor, rows: Tensor, styles: Tensor, by_tile: Tensor, stylise: Stylise) -> Tensor:
    """Gives the images ``rows`` of ``x`` [B, C, 3 h, 3 w] new styles; the others stay as they are.

    Args:
        x: All images.
        rows: Indices of the images to change, [n].
        styles: Indices of the style images, [n, 9]: one per tile, the first one for whole images.
        by_tile: Whether every tile gets a style of its own, [n].
        stylise: Called with whole images or with tiles, and not at all if there are none.
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
