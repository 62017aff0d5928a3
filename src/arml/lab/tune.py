"""A search for settings with the same effort for every line of a table. Only validation examples decide."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from arml.lab.build.components import takes_step_size
from arml.lab.run import Run
from arml.lab.run_folder import RECORD
from arml.lab.sweep import Outcome
from arml.lab.trace import read, result
from arml.lab.tuned import TunedLine, change, line_key

TrainAll = Callable[[Sequence[Run]], Sequence[Outcome]]
"""Trains runs, each once: those that are finished are not repeated."""
Ranges = Mapping[str, tuple[float, float]]
"""The least and the largest value of each field that is searched."""


@dataclass(frozen=True)
class Trial:
    """One choice of settings for a line, and how good it was."""

    values: dict[str, float]
    """Empty: the settings that the line came with."""
    score: float
    """Mean over the runs of the line, on validation examples; infinite if one of them failed."""


def search(lines: Sequence[Sequence[Run]], ranges: Ranges, trials: int, train_all: TrainAll) -> list[list[Trial]]:
    """Tries ``trials`` settings for every line; the first are those that the line came with.

    All lines take their next trial at the same time, so that many runs are in progress. Proposals are those of
    Optuna's TPE sampler, seeded by the number of the line: the same call proposes the same, and finished runs are not
    repeated.

    Args:
        lines: the runs of each line, one for each seed, data set and number of labels.
        ranges: what to search; fields that a line does not use are left out of its search.
        trials: number of settings per line.
        train_all: trains runs.
    """
    searches = [_LineSearch(runs, ranges, number) for number, runs in enumerate(lines)]
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


def choose_best(runs: Sequence[Run], trials: Sequence[Trial]) -> TunedLine | None:
    """The trial with the least score, the earliest on a tie; ``None`` if all have failed."""
    best = min(trials, key=lambda trial: trial.score)
    if not math.isfinite(best.score):
        return None
    return TunedLine(*line_key(runs[0]), best.values, best.score, len(trials))


class _LineSearch:
    """The search for one line."""

    def __init__(self, runs: Sequence[Run], ranges: Ranges, number: int) -> None:
        optuna = import_optuna()
        self.trials: list[Trial] = []
        self._runs, self._values = runs, dict[str, float]()
        self._space = {
            name: optuna.distributions.FloatDistribution(low, high, log=True)
            for name, (low, high) in ranges.items()
            if uses(runs[0], name)
        }
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=number))
        self._asked: Any = None

    def propose(self) -> list[Run]:
        """The runs of the next trial. The first one, and all where there is nothing to search, are the line itself."""
        if self.trials and self._space:
            self._asked = self._study.ask(self._space)
            self._values = dict(self._asked.params)
        return [change(run, self._values) for run in self._runs]

    def learn(self, score: float) -> None:
        """Keeps the result of the proposed trial; the sampler learns from those that did not fail."""
        self.trials.append(Trial(self._values, score))
        if self._asked is not None:
            failed = not math.isfinite(score)
            state = import_optuna().trial.TrialState.FAIL if failed else None
            self._study.tell(self._asked, None if failed else score, state=state)


def uses(run: Run, name: str) -> bool:
    """Whether a field makes a difference to a run: some learners have no auxiliary losses, some methods no step."""
    if name == "lr":
        return True
    weighted = bool(run.line().method)
    return weighted and (name != "weight_lr" or takes_step_size(run))


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
