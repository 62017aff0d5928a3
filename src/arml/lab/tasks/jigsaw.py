"""Jigsaw puzzles: in which order are the nine tiles of the image?"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.draws import draw_integers, draw_uniform
from arml.lab.models.network import Network

GRID = 3
"""Number of tiles along a side."""
TILES = GRID**2
LUMINANCE = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in grey, from ITU-R BT.601."""


def jigsaw(network: Network, features: Tensor, order: Tensor) -> Tensor:
    """Cross-entropy of the head ``"jigsaw"`` for every image, [B].

    Noroozi and Favaro, *Unsupervised Learning of Visual Representations by Solving Jigsaw Puzzles*, ECCV 2016, in the
    form of Carlucci et al., *Domain Generalization by Solving Jigsaw Puzzles*, CVPR 2019: the tiles are put together
    into an image again, which goes through the same trunk as every other.

    Args:
        network: Has the head, with one output per order.
        features: Features of the shuffled images, [B, F].
        order: The row of the permutations by which each image was shuffled, [B].
    """
    return F.cross_entropy(network.head("jigsaw", features), order, reduction="none")


def permutation_set(count: int = 30, seed: int = 0) -> Tensor:
    """The identity and ``count`` permutations that differ from it and from each other in many places, [1 + count, 9].

    Greedy: the next permutation has the largest minimal Hamming distance to those chosen before; among these, the
    largest sum of distances; among these, ``seed`` decides. The published set of 30 has a smallest distance of 4 and a
    mean of 8.26; here, including the identity:

    >>> chosen = permutation_set()
    >>> distances = (chosen[:, None] != chosen).sum(dim=2)[torch.ones(31, 31).triu(diagonal=1).bool()]
    >>> int(distances.min()), round(float(distances.float().mean()), 2)
    (7, 8.25)
    """
    if not 1 <= count <= 1000:
        raise ValueError(f"`count` should be between 1 and 1000 permutations. Got {count}.")
    candidates = _all_permutations(TILES)
    # Stored by column: all distances to one permutation then take a few passes over long rows of bytes.
    columns = candidates[torch.randperm(len(candidates), generator=torch.Generator().manual_seed(seed))].T.contiguous()
    chosen = [torch.arange(TILES, dtype=torch.uint8)]
    nearest = torch.full((len(candidates),), TILES, dtype=torch.int32)
    total = torch.zeros_like(nearest)
    for _ in range(count):
        distance = (columns != chosen[-1].unsqueeze(1)).sum(dim=0, dtype=torch.int32)
        nearest, total = torch.minimum(nearest, distance), total + distance
        # The sum is at most 9 count, so it only decides between equal smallest distances.
        chosen.append(columns[:, (nearest * TILES * (1 + count) + total).argmax()])
    return torch.stack(chosen).long()


def draw_orders(count: int, num_orders: int, bias: float, generator: torch.Generator) -> Tensor:
    """Draws one of ``num_orders`` for each of ``count`` images, uniformly; with probability ``bias`` it becomes 0."""
    orders = draw_integers(0, num_orders - 1, count, generator)
    kept = draw_uniform([count], generator) < bias
    return orders.masked_fill(kept, 0)


def crop_to_grid(x: Tensor) -> Tensor:
    """The centre of the images [B, C, H, W], with sides that are the largest multiples of 3.

    >>> crop_to_grid(torch.arange(5.0).expand(1, 1, 4, 5)).shape
    torch.Size([1, 1, 3, 3])
    """
    height, width = (side // GRID * GRID for side in x.shape[2:])
    if not height or not width:
        raise ValueError(f"Images should have sides of at least {GRID} pixels. Got shape {tuple(x.shape)}.")
    top, left = (x.shape[2] - height) // 2, (x.shape[3] - width) // 2
    return x[:, :, top : top + height, left : left + width]


def tiles(x: Tensor) -> Tensor:
    """The tiles [B, 9, C, h, w] of images [B, C, 3 h, 3 w], row by row."""
    batch, channels, height, width = x.shape
    cut = x.reshape(batch, channels, GRID, height // GRID, GRID, width // GRID).permute(0, 2, 4, 1, 3, 5)
    return cut.flatten(1, 2)


def put_together(parts: Tensor) -> Tensor:
    """Images [B, C, 3 h, 3 w] from their :func:`tiles`."""
    batch, _, channels, height, width = parts.shape
    rows = parts.reshape(batch, GRID, GRID, channels, height, width).permute(0, 3, 1, 4, 2, 5)
    return rows.reshape(batch, channels, GRID * height, GRID * width)


def shuffle_tiles(x: Tensor, permutations: Tensor) -> Tensor:
    """Images [B, C, 3 h, 3 w] whose tile i is tile ``permutations[b, i]`` of ``x``.

    >>> x = torch.arange(9).reshape(1, 1, 3, 3)
    >>> shuffle_tiles(x, torch.tensor([[8, 1, 2, 3, 4, 5, 6, 7, 0]])).flatten().tolist()
    [8, 1, 2, 3, 4, 5, 6, 7, 0]
    """
    rows = torch.arange(len(x), device=x.device).unsqueeze(1)
    return put_together(tiles(x)[rows, permutations.to(x.device)])


class Colours(NamedTuple):
    """How preprocessing scaled the channels: (pixel - mean) / std; unscaled by default."""

    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)


def grey_tiles(x: Tensor, probability: float, generator: torch.Generator, colours: Colours | None = None) -> Tensor:
    """Turns each tile of colour images [B, 3, 3 h, 3 w] grey with ``probability``, so that colour reveals no order.

    Images with one channel stay as they are, and nothing is drawn for them.

    Args:
        x: Preprocessed images.
        probability: Probability of each tile to turn grey.
        generator: Draws the tiles.
        colours: How the channels were scaled, so that grey is that of the pixels; ``None``: all in the same way.
    """
    if x.shape[1] == 1:
        return x
    if x.shape[1] != len(LUMINANCE):
        raise ValueError(f"Only images of 1 or {len(LUMINANCE)} channels can turn grey. Got shape {tuple(x.shape)}.")
    chosen = draw_uniform([len(x), TILES], generator) < probability
    parts = tiles(x)
    mean, std, share = (parts.new_tensor(one)[:, None, None] for one in (*(colours or Colours()), LUMINANCE))
    grey = ((share * (parts * std + mean)).sum(dim=2, keepdim=True) - mean) / std
    return put_together(torch.where(chosen.to(x.device)[:, :, None, None, None], grey, parts))


def _all_permutations(n: int) -> Tensor:
    """All orders of 0 .. n - 1, uint8, [n!, n]."""
    if n == 1:
        return torch.zeros(1, 1, dtype=torch.uint8)
    smaller = _all_permutations(n - 1)
    parts = [(torch.full((len(smaller), 1), first), smaller + (smaller >= first)) for first in range(n)]
    return torch.cat([torch.cat(part, dim=1).to(torch.uint8) for part in parts])
