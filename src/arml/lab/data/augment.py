"""Random changes of a batch of images, float [B, C, H, W], drawn from a given generator separately for every image.

The generator lives on the device of the images or on the CPU.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.draws import draw_integers, draw_normal, draw_uniform


def flip(x: Tensor, generator: torch.Generator) -> Tensor:
    """Mirrors every image left to right with probability 1/2."""
    mirrored = draw_uniform([len(_require_images(x))], generator).to(x.device) < 0.5
    return torch.where(mirrored[:, None, None, None], x.flip(-1), x)


def shift(x: Tensor, max_pixels: int, generator: torch.Generator) -> Tensor:
    """Moves every image up to ``max_pixels`` pixels up or down and left or right; the gap is filled by mirroring."""
    batch, channels, height, width = _require_images(x).shape
    if not 0 <= max_pixels < min(height, width):
        raise ValueError(
            f"`max_pixels` should lie between 0 and {min(height, width) - 1} for images of {height} x {width}. "
            f"Got {max_pixels}."
        )
    rows, columns = (
        _mirror_indices(draw_integers(-max_pixels, max_pixels, batch, generator).to(x.device), size)
        for size in (height, width)
    )
    source = (rows[:, :, None] * width + columns[:, None, :]).reshape(batch, 1, height * width)
    return x.flatten(2).gather(2, source.expand(-1, channels, -1)).reshape(x.shape)


def noise(x: Tensor, std: float | Tensor, generator: torch.Generator) -> Tensor:
    """Adds normal noise with standard deviation ``std`` to every pixel."""
    drawn = draw_normal(_require_images(x).shape, generator, x.dtype)
    return drawn.to(x.device).mul_(std).add_(x)


def cutout(x: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Sets a square box of side ``size`` to 0; its centre is anywhere in the image, and its outer part is cut off."""
    batch, _, height, width = _require_images(x).shape
    if size < 0:
        raise ValueError(f"`size` should be at least 0. Got {size}.")
    down, across = (
        _box_positions(draw_integers(0, side - 1, batch, generator).to(x.device), size, side)
        for side in (height, width)
    )
    return x.masked_fill((down[:, :, None] & across[:, None, :])[:, None], 0)


def crop(x: Tensor, least: float, generator: torch.Generator) -> Tensor:
    """Cuts a square of ``least`` to 1 of the area from anywhere in every image, and scales it to the image's size."""
    if not 0 < least <= 1:
        raise ValueError(f"`least` is a share of the area and should lie between 0 and 1. Got {least}.")
    side = (least + (1 - least) * draw_uniform([len(_require_images(x))], generator)).sqrt()
    free = 1 - side  # how far the centre may move, with half the image's side as 1
    across, down = (free * (2 * draw_uniform([len(x)], generator) - 1) for _ in range(2))
    zero = torch.zeros_like(side)
    matrix = torch.stack([side, zero, across, zero, side, down], dim=1).view(-1, 2, 3).to(x)
    grid = F.affine_grid(matrix, list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, mode="bilinear", padding_mode="border", align_corners=False)


@dataclass(frozen=True)
class Augment:
    """Crop, flip, shift and noise in this order; a change that is off draws nothing.

    The paper's settings are ``Augment(flip=True, shift=2, noise=0.15)`` for CIFAR-10,
    ``Augment(flip=False, shift=2, noise=0.0)`` for SVHN and ``Augment(flip=True, shift=0, noise=0.0, crop=0.8)`` for
    PACS.
    """

    flip: bool
    shift: int
    """Largest shift in pixels."""
    noise: float
    """Standard deviation of the noise."""
    crop: float = 1.0
    """Smallest share of the area that is kept."""

    def __post_init__(self) -> None:
        if self.shift < 0 or self.noise < 0 or not 0 < self.crop <= 1:
            raise ValueError(f"`shift` and `noise` should be at least 0, `crop` between 0 and 1. Got {self}.")

    def __call__(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """The changed images."""
        x = crop(x, self.crop, generator) if self.crop < 1 else x
        x = flip(x, generator) if self.flip else x
        x = shift(x, self.shift, generator) if self.shift else x
        return noise(x, self.noise, generator) if self.noise else x


def _mirror_indices(offsets: Tensor, size: int) -> Tensor:
    """For every image, the index of the pixel that fills each of ``size`` positions, [B, size]."""
    wanted = (torch.arange(size, device=offsets.device) - offsets[:, None]).abs()
    return torch.where(wanted < size, wanted, 2 * (size - 1) - wanted)


def _box_positions(centres: Tensor, size: int, side: int) -> Tensor:
    """For every image, which of ``side`` positions lie inside the box, [B, side]."""
    first = centres[:, None] - size // 2
    positions = torch.arange(side, device=centres.device)
    return (positions >= first) & (positions < first + size)


def _require_images(x: Tensor) -> Tensor:
    if x.ndim != 4 or not x.is_floating_point():
        raise ValueError(f"Expected images of shape [B, C, H, W], float. Got shape {tuple(x.shape)}, {x.dtype}.")
    return x
