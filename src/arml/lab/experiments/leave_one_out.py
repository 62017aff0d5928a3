"""Does a task help? The same runs with equal weights, without one auxiliary task at a time."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import mean

from arml.lab.catalogue import METHODS
from arml.lab.run import Line, Run, Subject
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
from arml.lab.trace import Recorded, result

MOST_TASKS = 10
"""With more auxiliary tasks than this, only some are left out in turn."""
EXTREMES = 2
"""How many of the strongest and how many of the weakest tasks these are."""


def leave_one_out_runs(recorded: Sequence[Recorded]) -> list[Run]:
    """The further runs that tell whether the tasks of the finished ones help, seed by seed.

    They follow the learner with the most lines. With many tasks, those with the largest and smallest final weights
    under the recommended method are left out in turn. The only task of a run is not: without it the run would be the
    main task alone, which a comparison has anyway.
    """
    subjects: dict[Subject, list[Recorded]] = defaultdict(list)
    for one in recorded:
        if result(one.records) is not None:
            subjects[one.run.subject()].append(one)
    found = [run for members in subjects.values() for run in _runs(members)]
    return sorted(dict.fromkeys(found), key=lambda run: run.seed)


def _runs(members: Sequence[Recorded]) -> Iterator[Run]:
    lines = {one.run.line() for one in members if not one.run.line().variant}
    learners = Counter(line.learner for line in lines)
    judged = sorted(
        (line for line in lines if _rank(line) is not None),
        key=lambda line: (-learners[line.learner], _rank(line)),
    )
    if not judged:
        return
    equal = Line(judged[0].learner, "uniform")
    tasks = _choose_tasks(_mean_weights([one for one in members if one.run.line() == judged[0]]))
    for run in (one.run for one in members if one.run.line() == equal):
        # Kinds of runs without this field, those of the suite, have an oracle instead.
        if isinstance(run, SemiSupervised | MultiLabel | Domains):
            yield from (replace(run, leave_out=(*run.leave_out, task)) for task in tasks)


def _rank(line: Line) -> int | None:
    return METHODS[line.method].rank_in_verdict if line.method in METHODS else None


def _mean_weights(members: Sequence[Recorded]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for one in members:
        for task, weight in (result(one.records) or {})["weights"].items():
            found[task].append(weight)
    return {task: mean(weights) for task, weights in found.items()}


def _choose_tasks(weights: Mapping[str, float]) -> list[str]:
    """All tasks if they are few, else the strongest and the weakest.

    >>> _choose_tasks({"a": 0.5}), _choose_tasks({"a": 0.5, "b": 1.5})
    ([], ['a', 'b'])
    """
    if len(weights) < 2:
        return []
    if len(weights) <= MOST_TASKS:
        return list(weights)
    ranked = sorted(weights, key=lambda task: -weights[task])
    return ranked[:EXTREMES] + ranked[-EXTREMES:]
