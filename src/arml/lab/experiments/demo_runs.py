"""The experiment of the demo: 20 labelled digits, four other sources of digits, one of them misleading."""

from dataclasses import replace

from arml.lab.experiments import domain_runs
from arml.lab.run import Run

METHODS = ("uniform", "arml", "gated_arml", "agreement")
SOURCES = ("mnist5k", "inverted", "turned", "misleading")
STEPS = 200
"""Two thirds of the preset's: nine lines with eight seeds then take two to three minutes on two cores."""


def runs(seeds: int) -> list[Run]:
    """The main task alone, four weightings, and equal weights without each source in turn, seed by seed.

    Without ``misleading`` is the oracle: it has to know which source to leave out.
    """
    table = domain_runs.Table(learners=("main_only", "jt"), methods=METHODS, without=SOURCES)
    return [*table.runs(replace(domain_runs.cpu("digits"), steps=STEPS), seeds)]
