"""Outputs of frozen layers, computed once per image and kept on disk."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from arml.lab.build.networks import Start, choose_preprocess, choose_start, make_frozen
from arml.lab.data.cache import ReportCount, keep_array
from arml.lab.models.frozen import Frozen
from arml.lab.run_kinds import Domains, MultiLabel

CHUNK = 64
"""Images that go through the frozen layers together."""


def compute_features(x: Tensor, run: MultiLabel | Domains, cache: Path, *, name: str, progress: ReportCount) -> Tensor:
    """The outputs of the frozen layers for the images ``x``, uint8 [N, C, H, W]: float16, [N, channels, h, w].

    They are kept in the folder ``cache`` under ``name``, image size, network and number of frozen layers. They are
    computed again if the images or the file of weights change.
    """
    start, preprocess = choose_start(run), choose_preprocess(run.weights, x.shape[1])
    frozen = make_frozen(run.network, x.shape[1:], start)
    return keep_array(
        _chunks(x, frozen, preprocess),
        cache,
        name=f"{name}-{x.shape[-1]}-{run.network}-{run.freeze}",
        key=_fingerprint(x, run.network, start),
        shape=(len(x), *frozen(preprocess(x[:1])).shape[1:]),
        dtype=np.float16,
        progress=progress,
    )


def _chunks(x: Tensor, frozen: Frozen, preprocess: Callable[[Tensor], Tensor]) -> Iterator["np.ndarray[Any, Any]"]:
    for part in x.split(CHUNK):
        yield frozen(preprocess(part)).half().numpy()


def _fingerprint(x: Tensor, network: str, start: Start) -> str:
    digest = hashlib.sha256(repr((network, start.freeze, tuple(x.shape))).encode())
    if start.weights:
        digest.update(Path(start.weights).read_bytes())
    for part in x.split(CHUNK * 16):
        digest.update(part.contiguous().numpy().data)
    return digest.hexdigest()[:16]


def float_features(x: Tensor) -> Tensor:
    """Cached features as a trunk takes them."""
    return x.to(torch.float32)
