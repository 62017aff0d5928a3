"""Is the network of tables competitive? Mean ranks of its lines and of simple models, over tables, labels and seeds.

    python benchmarks/table_lines.py DATA --tables held-out --seeds 2 --out runs

DATA holds ``emotions.csv``, ``enb.csv``, ``edm.csv`` and ``oes97.csv`` (Mulan); the other tables ship
with scikit-learn. The recipe of the network was chosen on the tables called dev, and on no other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pandas as pd  # type: ignore[import-untyped, unused-ignore]
import tyro

from arml.lab import run_all
from arml.lab.build import complete
from arml.lab.experiments.multi_label_runs import cpu
from arml.lab.experiments.table_study import EMBEDDED, write_embedded
from arml.lab.run import Run
from arml.lab.trace import read, result
from arml.report.titles import line_title

LINES = ("linear", "forest", "stacking", "main_only", "joint")
"""Learners that know the same: the auxiliary columns as inputs would know more."""


@dataclass(frozen=True)
class Columns:
    """The targets of a table."""

    main: str
    aux: tuple[str, ...]
    num_features: int | None = None
    """Features are the first columns; ``None``: all that are no targets."""


TABLES = {
    "dev": {
        "emotions": Columns(
            "relaxing-calm", ("amazed-suprised", "happy-pleased", "quiet-still", "sad-lonely", "angry-aggresive")
        ),
        "enb": Columns("Y1", ("Y2",)),
        "wine": Columns("target", ("proline", "color_intensity", "flavanoids")),
        "diabetes": Columns("target", ("bmi", "bp", "s5")),
    },
    "held-out": {
        "edm": Columns("DFlow", ("DGap",)),
        "breast_cancer": Columns("target", ("mean area", "worst concave points", "mean texture")),
        "iris": Columns("target", ("petal width (cm)",)),
        "oes97": Columns(
            "13008_Purchasing_Managers",
            ("15014_Industrial_Production_Managers", "21114_Accountants_and_Auditors", "27108_Psychologists"),
            263,
        ),
    },
}


@dataclass(frozen=True)
class Options:
    """What to compare."""

    data: tyro.conf.Positional[Path]
    """Folder of the tables that do not ship with scikit-learn."""
    tables: Literal["dev", "held-out"] = "dev"
    labels: tuple[int, ...] = (20, 50, 100)
    seeds: int = 2
    workers: int = 1
    out: Path = Path("runs")


def find_file(name: str, options: Options) -> Path:
    """The table's file; those of scikit-learn are written below ``out``."""
    return write_embedded(name, options.out) if name in EMBEDDED else options.data / f"{name}.csv"


def make_runs(options: Options) -> Iterator[Run]:
    """All runs, seed by seed, so that an unfinished comparison can already be read."""
    for seed in range(options.seeds):
        for name, columns in TABLES[options.tables].items():
            path = find_file(name, options)
            features = tuple(pd.read_csv(path, nrows=0).columns[: columns.num_features]) if columns.num_features else ()
            base = replace(cpu("table"), table=str(path), main=columns.main, aux=columns.aux, features=features)
            for labels in options.labels:
                for learner in LINES:
                    method = "agreement" if learner == "joint" else "uniform"
                    yield complete(replace(base, labels=labels, learner=learner, method=method, seed=seed))


def main(options: Options) -> None:
    """Prints the mean errors, and the mean rank of every line; ties share their rank."""
    outcomes = run_all(list(make_runs(options)), options.out, workers=options.workers)
    errors: dict[tuple[str, float, int], dict[str, float]] = {}
    for outcome in outcomes:
        if outcome.failure is None:
            run, found = outcome.run, result(read(outcome.folder / "record.jsonl").records) or {}
            subject = run.subject()
            cell = (subject.dataset.split("@")[0], subject.labels, run.seed)
            errors.setdefault(cell, {})[line_title(run.line())] = found["test_error"]
    table = pd.DataFrame.from_dict(errors, orient="index").dropna()
    table.index = pd.MultiIndex.from_tuples(table.index, names=["table", "labels", "seed"])
    print(table.groupby(level=["table", "labels"]).mean().round(1).to_string())
    ranks = table.rank(axis=1)
    print(f"\nmean rank over {len(table)} cells (1 is best), and standard error over tables:")
    by_table = ranks.groupby(level="table").mean()
    for title in ranks.mean().sort_values().index:
        print(f"  {ranks[title].mean():.2f} ± {by_table[title].sem():.2f}  {title}")


if __name__ == "__main__":
    main(tyro.cli(Options))
