"""Endless shuffled batches that stop and continue exactly: of indices, and of the examples of each setting."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from arml.lab.data.base import Images
from arml.lab.data.draws import present_part, take_part
from arml.lab.data.placement import ON_CPU, Placement

B = TypeVar("B", covariant=True)


class Sampler:
    """Draws batches from a pool of indices, every epoch in a new order.

    No index is left out: a batch that reaches the end of an epoch continues in the next one, and a batch larger than
    the pool runs through it several times.

    >>> sampler = Sampler(torch.tensor([10, 11, 12]), batch_size=2, seed=0)
    >>> torch.cat([next(sampler) for _ in range(3)])
    tensor([12, 10, 11, 12, 11, 10])
    """

    def __init__(self, pool: Tensor, batch_size: int, seed: int) -> None:
        if pool.ndim != 1 or pool.dtype != torch.int64 or not len(pool):
            raise ValueError(
                f"`pool` should be at least one index, shape [N], int64. Got shape {tuple(pool.shape)}, {pool.dtype}."
            )
        if batch_size < 1:
            raise ValueError(f"`batch_size` should be at least 1. Got {batch_size}.")
        self.pool = pool
        self.batch_size = batch_size
        self._generator = torch.Generator().manual_seed(seed)
        self._order = self._shuffle()
        self._position = 0

    def next(self) -> Tensor:
        """The next ``batch_size`` indices."""
        parts: list[Tensor] = []
        missing = self.batch_size
        while missing:
            if self._position == len(self._order):
                self._order, self._position = self._shuffle(), 0
            part = self._order[self._position : self._position + missing]
            parts.append(part)
            self._position += len(part)
            missing -= len(part)
        return self.pool[torch.cat(parts)]

    def __iter__(self) -> "Sampler":
        return self

    def __next__(self) -> Tensor:
        return self.next()

    def state_dict(self) -> dict[str, Any]:
        """The sampler's position, from which a sampler of the same pool and batch size continues exactly."""
        return {"generator": self._generator.get_state(), "order": self._order.clone(), "position": self._position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from ``state``."""
        if len(state["order"]) != len(self.pool):
            raise ValueError(
                f"The state belongs to a pool of {len(state['order'])} indices, this sampler has {len(self.pool)}. "
                "Make the sampler with the same split as before."
            )
        self._generator.set_state(state["generator"])
        self._order, self._position = state["order"].clone(), state["position"]

    def _shuffle(self) -> Tensor:
        return torch.randperm(len(self.pool), generator=self._generator)


class Batches(Protocol[B]):
    """The batches of a run, one per step; they stop and continue exactly."""

    samplers: dict[str, Sampler]
    placement: Placement = ON_CPU
    """Takes examples to the device that trains."""

    def next(self) -> B:
        """The batch of the next step."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """The positions of all samplers."""
        return {name: sampler.state_dict() for name, sampler in self.samplers.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from ``state``."""
        for name, sampler in self.samplers.items():
            sampler.load_state_dict(state[name])

    def fetch(self, x: Tensor, rows: Tensor, preprocess: Callable[[Tensor], Tensor]) -> Tensor:
        """The ``rows`` of ``x`` as the network takes them, on its device."""
        return self.placement.inputs(preprocess(self.placement.rows(x, rows)))


class Batch(NamedTuple):
    """The images of one step, preprocessed; the learner augments them."""

    x: Tensor
    """Labelled images, [B, C, H, W]."""
    y: Tensor
    """Their labels, [B]."""
    u: Tensor
    """Unlabelled images, [U, C, H, W]."""


class ImageBatches(Batches[Batch]):
    """Labelled and unlabelled images, drawn separately."""

    def __init__(
        self, images: Images, labelled: Sampler, unlabelled: Sampler, preprocess: Callable[[Tensor], Tensor]
    ) -> None:
        self.images, self.preprocess = images, preprocess
        self.samplers: dict[str, Sampler] = {"labelled": labelled, "unlabelled": unlabelled}

    def next(self) -> Batch:
        """The images of the next step."""
        labelled, pool = (take_part(next(sampler)) for sampler in self.samplers.values())
        x, u = (self.fetch(self.images.x, rows, self.preprocess) for rows in (labelled, pool))
        return Batch(x, self.placement.rows(self.images.y, labelled), u)


class AttributeBatch(NamedTuple):
    """The examples of one step with their targets."""

    x: Tensor
    """Examples with a main label, [B, ...]."""
    y: Tensor
    """Their main labels, [B]."""
    aux_x: Tensor
    """Examples of the auxiliary tasks, [A, ...]."""
    aux_y: Tensor
    """Their auxiliary labels, [A, K]; NaN where one is missing."""
    aux_counts: Tensor | None = None
    """How many of these examples have each auxiliary label, [K], on the CPU; the mean over processes that share a
    batch. ``None``: to be counted."""


class AttributeBatches(Batches[AttributeBatch]):
    """Examples for the main and for the auxiliary targets, drawn separately."""

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        aux_y: Tensor,
        *,
        main: Sampler,
        aux: Sampler,
        preprocess: Callable[[Tensor], Tensor],
    ) -> None:
        """Inputs [N, ...], main labels [N] and auxiliary labels [N, K]; ``main`` and ``aux`` sample their rows."""
        self.x, self.y, self.aux_y, self.preprocess = x, y, aux_y, preprocess
        self._present = None if aux_y.device.type != "cpu" else ~aux_y.isnan()
        self.samplers: dict[str, Sampler] = {"main": main, "aux": aux}

    def next(self) -> AttributeBatch:
        """The examples of the next step."""
        main, whole = (next(sampler) for sampler in self.samplers.values())
        main, aux = take_part(main), take_part(whole)
        x, aux_x = (self.fetch(self.x, rows, self.preprocess) for rows in (main, aux))
        y, aux_y = self.placement.rows(self.y, main), self.placement.rows(self.aux_y, aux)
        counts = None if self._present is None else self._present[whole].sum(dim=0) / present_part().of
        return AttributeBatch(x, y, aux_x, aux_y, counts)


class RepeatedBatches(AttributeBatches):
    """The same batches with every example several times in succession, once for each network of an ensemble."""

    def __init__(self, *given: Tensor, times: int, **others: Any) -> None:
        """``times`` is the number of networks; everything else is as for :class:`AttributeBatches`."""
        super().__init__(*given, **others)
        self.times = times

    def next(self) -> AttributeBatch:
        """The examples of the next step."""
        batch = super().next()
        x, y, aux_x, aux_y = (part.repeat_interleave(self.times, dim=0) for part in batch[:4])
        counts = None if batch.aux_counts is None else self.times * batch.aux_counts
        return AttributeBatch(x, y, aux_x, aux_y, counts)


class DomainBatch(NamedTuple):
    """The images of one step, from the target and from every source."""

    x: Tensor
    """Labelled images of the target, [B, C, H, W]; empty with zero shots."""
    y: Tensor
    """Their labels, [B]."""
    sources: dict[str, tuple[Tensor, Tensor]]
    """Images and labels of every source."""


class SampledImages(NamedTuple):
    """Images of a domain, and the sampler that draws from them."""

    images: Images
    sampler: Sampler | None
    """``None`` if no image is drawn."""


class DomainBatches(Batches[DomainBatch]):
    """Images of every domain, drawn separately."""

    def __init__(
        self,
        target: SampledImages,
        sources: Mapping[str, SampledImages],
        preprocess: Callable[[Tensor], Tensor],
    ) -> None:
        """The target's sampler is ``None`` if there are no shots."""
        self.target, self.sources, self.preprocess = target, sources, preprocess
        named = {"target": target, **{f"source {name}": drawn for name, drawn in sources.items()}}
        self.samplers: dict[str, Sampler] = {name: s for name, (_, s) in named.items() if s is not None}

    def next(self) -> DomainBatch:
        """The images of the next step."""
        sources = {name: self._next(drawn) for name, drawn in self.sources.items()}
        return DomainBatch(*self._next(self.target), sources)

    def _next(self, drawn: SampledImages) -> tuple[Tensor, Tensor]:
        images, sampler = drawn
        chosen = take_part(next(sampler)) if sampler is not None else torch.empty(0, dtype=torch.int64)
        return self.fetch(images.x, chosen, self.preprocess), self.placement.rows(images.y, chosen)
