"""Pixels as numbers that a network takes: uint8 [B, C, H, W] -> float32 of the same shape."""

import hashlib
import os
import pickle
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

CHUNK = 2_000
"""Images processed together while fitting, so that memory does not grow with the data set."""


@dataclass(frozen=True)
class Scale:
    """0 to 255 becomes -1 to 1, as for SVHN.

    >>> Scale()(torch.tensor([0, 51, 255], dtype=torch.uint8).reshape(1, 1, 1, 3)).flatten()
    tensor([-1.0000, -0.6000,  1.0000])
    """

    def __call__(self, x: Tensor) -> Tensor:
        """Maps uint8 [B, C, H, W] to float32."""
        return _require_pixels(x).float() / 127.5 - 1


@dataclass(frozen=True)
class ImageNet:
    """Colours from 0 to 1, minus their mean on ImageNet, divided by their standard deviation on ImageNet.

    Public weights trained on ImageNet, such as torchvision's, expect this.

    >>> ImageNet()(torch.tensor([255, 0, 0], dtype=torch.uint8).reshape(1, 3, 1, 1)).flatten()
    tensor([ 2.2489, -2.0357, -1.8044])
    """

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)

    def __call__(self, x: Tensor) -> Tensor:
        """Maps uint8 [B, 3, H, W] to float32."""
        pixels = _require_pixels(x).float() / 255
        mean, std = (pixels.new_tensor(numbers).view(-1, 1, 1) for numbers in (self.mean, self.std))
        return (pixels - mean) / std


@dataclass(frozen=True, eq=False)
class GcnZca:
    r"""Global contrast normalisation, then whitening (ZCA), as for CIFAR-10 in Oliver et al. (2018).

    From every image its own mean is subtracted; it is then divided by its length and multiplied by 55. With the mean
    and the covariance :math:`\Sigma` of such images, and :math:`U S U^\top = \Sigma + 0.1\,I`, the result is
    :math:`(x - \text{mean})\,U (S + 10^{-10})^{-1/2} U^\top`.
    """

    mean: Tensor
    """[C H W]."""
    matrix: Tensor
    """[C H W, C H W]."""

    @staticmethod
    def fit(x: Tensor, cache: Path | None = None) -> "GcnZca":
        """Fits mean and covariance to the images ``x``: pass all training images, labelled or not.

        For images of CIFAR-10's size this takes a minute on a CPU. With a folder ``cache`` the result is stored there
        and the same images are fitted only once.
        """
        if len(_require_pixels(x)) < 2:
            raise ValueError(f"A covariance needs at least 2 images. Got {len(x)}.")
        if cache is None:
            return _fit(x)
        path = cache / f"gcn-zca-{fingerprint(x)}.pt"
        return _read(path, x.device) or _store(_fit(x), path)

    def __call__(self, x: Tensor) -> Tensor:
        """Maps uint8 [B, C, H, W] to float32."""
        if _require_pixels(x)[0].numel() != len(self.mean):
            raise ValueError(
                f"Expected images of {len(self.mean)} numbers, as in fit. Got images of shape {tuple(x.shape[1:])}."
            )
        return ((normalise_contrast(x).flatten(1) - self.mean) @ self.matrix).reshape(x.shape)


def _fit(x: Tensor) -> GcnZca:
    mean, covariance = _moments(x)
    s, u = torch.linalg.eigh(covariance + 0.1 * torch.eye(len(mean), dtype=mean.dtype, device=mean.device))
    return GcnZca(mean.float(), ((u / (s + 1e-10).sqrt()) @ u.T).float())


def normalise_contrast(x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Every image minus its mean, divided by its length, times 55; an image of one colour becomes 0."""
    centred = x.to(dtype) - x.to(dtype).mean(dim=(1, 2, 3), keepdim=True)
    length = centred.square().sum(dim=(1, 2, 3), keepdim=True).sqrt()
    return 55 * centred / torch.where(length < 1e-10, torch.ones_like(length), length)


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and covariance (with N - 1) in double precision."""
    parts = x.split(CHUNK)
    mean = torch.stack([normalise_contrast(part, torch.float64).flatten(1).sum(0) for part in parts]).sum(0) / len(x)
    covariance = torch.zeros(len(mean), len(mean), dtype=mean.dtype, device=mean.device)
    for part in parts:
        centred = normalise_contrast(part, torch.float64).flatten(1) - mean
        covariance.addmm_(centred.T, centred)
    return mean, covariance / (len(x) - 1)


def fingerprint(x: Tensor) -> str:
    """A hash of the pixels and the shape of ``x``."""
    pixels = x.cpu().contiguous().numpy()
    digest = hashlib.sha256(str(pixels.shape).encode())
    digest.update(pixels.data)  # without a copy
    return digest.hexdigest()[:16]


def _read(path: Path, device: torch.device) -> GcnZca | None:
    """The stored fit; ``None`` if there is none or it cannot be read, so that it is made again."""
    try:
        mean, matrix = torch.load(path, map_location=device, weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError):
        return None
    return GcnZca(mean, matrix)


def _store(fitted: GcnZca, path: Path) -> GcnZca:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Parallel runs may write at the same time: each writes a file of its own, and the last one stays.
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    torch.save((fitted.mean, fitted.matrix), unfinished)
    unfinished.replace(path)
    return fitted


def _require_pixels(x: Tensor) -> Tensor:
    if x.ndim != 4 or x.dtype != torch.uint8:
        raise ValueError(f"Expected images of shape [B, C, H, W], uint8. Got shape {tuple(x.shape)}, {x.dtype}.")
    return x
