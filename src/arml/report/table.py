"""Records to the table of a comparison."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from arml.lab.run import Run
from arml.lab.trace import Record, Recorded, result
from arml.report.paper import QUOTED, TABLE_1
from arml.report.summary import Summary, paired_difference, summarise

TITLES = {
    "supervised": "Supervised (main task only)",
    "pi_model": "Π-Model",
    "mean_teacher": "Mean Teacher",
    "vat": "VAT",
    "vat_entmin": "VAT + EntMin",
    "pseudo_label": "Pseudo-Label",
    "uniform": "S4L, uniform weights",
    "adaloss": "S4L + AdaLoss",
    "gradnorm": "S4L + GradNorm",
    "cosine_sim": "S4L + CosineSim",
    "ol_aux": "S4L + OL_AUX",
    "grid": "S4L + grid search (best on validation)",
    "arml": "S4L + ARML",
    "arml_full": "S4L + ARML, two stages with Langevin noise",
    "gated_arml": "S4L + Gated ARML (ours)",
}


class Group(NamedTuple):
    """What a table is about."""

    dataset: str
    labels: int


class Row(NamedTuple):
    """One line of the table: a way of learning, over seeds."""

    key: str
    error: Summary
    against_uniform: Summary | None
    """Paired difference of the error on the same seeds; ``None`` for uniform itself or without common seeds."""
    weights: dict[str, float]
    """Mean final weight of each auxiliary task."""
    paper: str

    def title(self) -> str:
        """The line's name."""
        return TITLES.get(self.key, self.key)


def key_of(run: Run) -> str:
    """Which line of the table a run belongs to."""
    if run.learner != "s4l":
        return run.learner
    return "grid" if run.method.startswith("grid-") else run.method


def tables(recorded: Sequence[Recorded]) -> dict[Group, list[Row]]:
    """A table for every data set and number of labels, of the completed runs among ``recorded``."""
    grouped: dict[Group, list[tuple[Run, Record]]] = defaultdict(list)
    for run, records in recorded:
        outcome = result(records)
        if outcome is not None:
            grouped[Group(run.dataset, run.labels)].append((run, outcome))
    return {group: _rows(group, grouped[group]) for group in sorted(grouped)}


def _rows(group: Group, outcomes: Sequence[tuple[Run, Record]]) -> list[Row]:
    chosen: dict[str, dict[int, Record]] = defaultdict(dict)
    for run, outcome in outcomes:
        by_seed = chosen[key_of(run)]
        # Several runs of one line and seed are points of a grid: the one with the best validation error counts.
        if run.seed not in by_seed or outcome["validation_error"] < by_seed[run.seed]["validation_error"]:
            by_seed[run.seed] = outcome
    errors = {key: {seed: o["test_error"] for seed, o in by_seed.items()} for key, by_seed in chosen.items()}
    order = [*(key for key in TITLES if key in errors), *sorted(errors.keys() - TITLES.keys())]
    return [
        Row(
            key,
            summarise(list(errors[key].values())),
            paired_difference(errors[key], errors["uniform"]) if key != "uniform" and "uniform" in errors else None,
            _mean_weights(list(chosen[key].values())),
            _paper(group, key),
        )
        for key in order
    ]


def _mean_weights(outcomes: Sequence[Record]) -> dict[str, float]:
    names = outcomes[0]["weights"]
    return {name: sum(o["weights"][name] for o in outcomes) / len(outcomes) for name in names}


def _paper(group: Group, key: str) -> str:
    figures = TABLE_1.get((group.dataset, group.labels), {})
    if key not in figures:
        return ""
    mean, half_width = figures[key]
    return f"{mean:.2f} ± {half_width:.2f}" + (" (quoted)" if key in QUOTED else "")


def best(rows: Sequence[Row]) -> str | None:
    """The line whose error is below every other line's by more than both intervals together; ``None`` if there is none.

    Grid search is left out: it has trained several times.
    """
    runners = sorted((row for row in rows if row.key != "grid"), key=lambda row: row.error.mean)
    if len(runners) < 2 or runners[0].error.n < 2:
        return None
    first, second = runners[0].error, runners[1].error
    return runners[0].key if first.mean + first.half_width < second.mean - second.half_width else None
