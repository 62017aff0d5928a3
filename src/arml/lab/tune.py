"""A search for settings, with the same effort for every line of a table or for all together. Validation decides."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from arml.lab.build.components import takes_step_size
from arml.lab.run import Run
from arml.lab.run_folder import RECORD
from arml.lab.sweep import Outcome
from arml.lab.trace import read, result
from arml.lab.tuned import TunedLine, Value, change, line_key

TrainAll = Callable[[Sequence[Run]], Sequence[Outcome]]
"""Trains runs, each once: those that are finished are not repeated."""


class Space(NamedTuple):
    """What is searched."""

    ranges: Mapping[str, tuple[float, float]]
    """The least and the largest value of fields that are numbers."""
    choices: Mapping[str, Sequence[Value]] = MappingProxyType({})
    """The values that other fields may have."""


@dataclass(frozen=True)
class Trial:
    """One choice of settings for a group of runs, and how good it was."""

    values: dict[str, Value]
    """Empty: the settings that the runs came with."""
    score: float
    """Mean over the runs, on validation examples; infinite if one of them failed."""


def search(groups: Sequence[Sequence[Run]], space: Space, trials: int, train_all: TrainAll) -> list[list[Trial]]:
    """Tries ``trials`` settings for every group of runs; the first are those that the runs came with.

    All groups take their next trial at the same time, so that many runs are in progress. Proposals are those of
    Optuna's TPE sampler, seeded by the number of the group: the same call proposes the same, and finished runs are not
    repeated.

    Args:
        groups: the runs that share a setting: those of a line, one for each seed, data set and number of labels, or
            those of all lines together.
        space: what to search; fields that a group does not use are left out of its search.
        trials: number of settings per group.
        train_all: trains runs.
    """
    searches = [_GroupSearch(runs, space, number) for number, runs in enumerate(groups)]
    for _ in range(trials):
        proposed = [one.propose() for one in searches]
        outcomes = {outcome.run: outcome for outcome in train_all([run for runs in proposed for run in runs])}
        for one, runs in zip(searches, proposed, strict=True):
            one.learn(fmean(_score(outcomes[run]) for run in runs))
    return [one.trials for one in searches]


def group_lines(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs of each learner and method. Points of a grid are a search of their own and are left out."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if not run.method.startswith("grid-") and not run.line().variant:
            found.setdefault(line_key(run), []).append(run)
    return list(found.values())


def choose_best(runs: Sequence[Run], trials: Sequence[Trial]) -> list[TunedLine]:
    """For every line among ``runs`` the trial with the least score, the earliest on a tie; none if all have failed."""
    best = min(trials, key=lambda trial: trial.score)
    if not math.isfinite(best.score):
        return []
    lines = {line_key(run): run for run in runs}
    return [TunedLine(*key, _used(run, best.values), best.score, len(trials)) for key, run in lines.items()]


class _GroupSearch:
    """The search for one group of runs."""

    def __init__(self, runs: Sequence[Run], space: Space, number: int) -> None:
        optuna = import_optuna()
        self.trials: list[Trial] = []
        self._runs, self._values = runs, dict[str, Value]()
        known = {
            **{name: optuna.distributions.CategoricalDistribution(some) for name, some in space.choices.items()},
            **{name: optuna.distributions.FloatDistribution(*ends, log=True) for name, ends in space.ranges.items()},
        }
        self._space = {name: each for name, each in known.items() if any(uses(run, name) for run in runs)}
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=number))
        self._asked: Any = None

    def propose(self) -> list[Run]:
        """The runs of the next trial. The first ones, and all where there is nothing to search, are those given."""
        if self.trials and self._space:
            self._asked = self._study.ask(self._space)
            self._values = dict(self._asked.params)
        return [change(run, _used(run, self._values)) for run in self._runs]

    def learn(self, score: float) -> None:
        """Keeps the result of the proposed trial; the sampler learns from those that did not fail."""
        self.trials.append(Trial(self._values, score))
        if self._asked is not None:
            failed = not math.isfinite(score)
            state = import_optuna().trial.TrialState.FAIL if failed else None
            self._study.tell(self._asked, None if failed else score, state=state)


def uses(run: Run, name: str) -> bool:
    """Whether a field makes a difference to a run: some learners have no auxiliary losses, some methods no step."""
    if name in ("network", "steps", "lr"):
        return True
    weighted = bool(run.line().method)
    return weighted and (name != "weight_lr" or takes_step_size(run))


def _used(run: Run, values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if uses(run, name)}


def _score(outcome: Outcome) -> float:
    """What the run chose its network by, on validation examples. The result's test errors are not read."""
    if outcome.failure is not None:
        return math.inf
    found = result(read(outcome.folder / RECORD).records) or {}
    validation = {key.removeprefix("validation_"): value for key, value in found.items() if key[:11] == "validation_"}
    return outcome.run.score(validation) if validation else math.inf


def import_optuna() -> Any:
    """The package, without its log lines."""
    try:
        import optuna
    except ModuleNotFoundError as missing:
        raise ValueError("The search needs the package optuna: pip install 'arml[tune]'") from missing
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
