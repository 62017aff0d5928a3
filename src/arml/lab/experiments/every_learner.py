"""A tiny run of every learner on embedded data: for checks of devices, not of results."""

from dataclasses import replace
from typing import Any

from arml.lab.catalogue import LEARNERS
from arml.lab.experiments.suite_runs import world_run
from arml.lab.run import Run
from arml.lab.run_kinds import RUN_TYPES
from arml.lab.worlds import WORLDS

BATCH = 8


def every_learner(steps: int, every: int) -> dict[str, Run]:
    """One run per learner by the names of setting and learner, with ARML where weights are learned.

    >>> list(every_learner(steps=4, every=2))[-3:]
    ['suite main_only', 'suite oracle', 'suite joint']
    """
    return {
        f"{setting} {learner}": _tiny(setting, learner, "arml" if facts.weighted else "uniform", steps, every)
        for setting, learners in LEARNERS.items()
        for learner, facts in learners.items()
        if not facts.simple  # these have no network
    }


def _tiny(setting: str, learner: str, method: str, steps: int, every: int) -> Run:
    run: Any = world_run(next(iter(WORLDS.values())), seed=0) if setting == "suite" else RUN_TYPES[setting]()
    known: dict[str, Any] = {"network": "mlp-16", "dropout": 0.0} if setting == "mlc" else {}
    if setting != "suite":  # a world has its own
        known |= {name: BATCH for name in vars(run) if name.startswith("batch_") and name != "batch_target"}
    made: Run = replace(run, learner=learner, method=method, steps=steps, every=every, **known)
    return made
