"""All computations of the page, as pieces of work that can run side by side."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple, TypeVar

import torch

from arml.theory.failures.minibatch import Minibatch, sweep_noise
from arml.theory.failures.misleading import Misleading, sweep_distances
from arml.theory.failures.units import Units, sweep_factors
from arml.theory.failures.vanishing import Vanishing, follow_weights
from arml.theory.gradient_noise import NoiseSizes, measure_noise
from arml.theory.studies import (
    InformationStudy,
    LabelStudy,
    LangevinStudy,
    study_information,
    study_labels,
    study_langevin,
    sweep_theorem,
)
from arml.theory.theorem import TheoremCheck

Part = TypeVar("Part", bound=tuple[Any, ...])


@dataclass(frozen=True)
class Plan:
    """How much is computed."""

    seed: int = 0
    quick: bool = False

    def pieces(self) -> list[tuple[str, Callable[[], Any]]]:
        """Every piece of work with the name of its part, the longest first."""
        seed, quick = self.seed, self.quick
        labels, distances = ((1, 8, 64), (0.0, 1.0)) if quick else ((1, 2, 4, 8, 16, 32, 64), (0.0, 0.3, 0.6, 1.0, 2.0))
        factors, noises = (
            ((0.01, 1.0, 100.0), (0.1, 1.0)) if quick else ((0.01, 0.1, 1.0, 10.0, 100.0), (0.1, 0.25, 0.5, 1.0, 2.0))
        )
        draws, few = (2, 2) if quick else (6, 5)
        return [
            *(("noise", partial(measure_noise, seed + i)) for i in range(1 if quick else 3)),
            *(("units", partial(sweep_factors, [factor], few, seed)) for factor in factors),
            *(("misleading", partial(sweep_distances, [distance], draws, seed)) for distance in distances),
            ("vanishing", partial(follow_weights, 100 if quick else 240, 2 if quick else 4, seed)),
            *(("labels", partial(study_labels, [n], 3 if quick else 16, 1 if quick else 3, seed)) for n in labels),
            *(("minibatch", partial(sweep_noise, [noise], 60 if quick else 200, seed)) for noise in noises),
            ("theorem", partial(sweep_theorem, 300 if quick else 3000, seed)),
            ("langevin", partial(study_langevin, (0.1, 0.5, 1.0, 1.5), 400 if quick else 2000, seed)),
            ("information", study_information),
        ]


class Findings(NamedTuple):
    """Everything that the page shows."""

    plan: Plan
    labels: LabelStudy
    information: InformationStudy
    theorem: list[TheoremCheck]
    langevin: LangevinStudy
    noise: list[NoiseSizes]
    misleading: Misleading
    vanishing: Vanishing
    units: Units
    minibatch: Minibatch


def compute(plan: Plan, workers: int, count: Callable[[int, int], None] = lambda done, total: None) -> Findings:
    """Does all pieces of work, ``workers`` at a time, each with one thread.

    Args:
        plan: how much to compute.
        workers: processes; with 1, everything happens in this one.
        count: is told the number of finished pieces and their total.
    """
    pieces = plan.pieces()
    found: list[Any] = [None] * len(pieces)
    for done, (place, result) in enumerate(_run(pieces, workers), start=1):
        found[place] = result
        count(done, len(pieces))
    named: dict[str, list[Any]] = {}
    for (name, _), result in zip(pieces, found, strict=True):
        named.setdefault(name, []).append(result)
    lists: dict[str, Any] = {name: [one for part in named.pop(name) for one in part] for name in ("noise", "theorem")}
    return Findings(plan=plan, **lists, **{name: join(parts) for name, parts in named.items()})


def join(parts: list[Part]) -> Part:
    """Parts of one study over neighbouring values as one: lists follow each other, also in dictionaries."""
    first, *others = parts
    joined: list[Any] = []
    for values in zip(first, *others, strict=True):
        if isinstance(values[0], list):
            joined.append([one for value in values for one in value])
        elif isinstance(values[0], dict):
            joined.append(
                {
                    key: [one for value in values for one in value[key]] if others else values[0][key]
                    for key in values[0]
                }
            )
        else:
            joined.append(values[0])
    return type(first)(*joined)


def _run(pieces: list[tuple[str, Callable[[], Any]]], workers: int) -> Iterator[tuple[int, Any]]:
    if workers == 1:
        yield from ((place, work()) for place, (_, work) in enumerate(pieces))
        return
    # Not by fork: torch has threads.
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        futures = {pool.submit(work): place for place, (_, work) in enumerate(pieces)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
