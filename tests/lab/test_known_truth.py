"""A table of which it is known what helps: errors with and without each auxiliary column say so, whatever the units."""

from dataclasses import replace
from statistics import mean

import numpy as np
import pandas as pd
import pytest

from arml.lab import train_run
from arml.lab.experiments.multi_label_runs import cpu
from arml.lab.run_kinds import MultiLabel
from arml.report.data.comparison import comparisons
from arml.report.data.records import collect
from arml.report.data.verdict import Finding, verdicts

SEEDS = range(3)


def write_table(path, units):
    """``twin`` is the main target as a noisy number in its own units, ``coin`` is noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 12))
    score = x[:, 0] + np.abs(x[:, 1]) - x[:, 2] - 0.8
    columns = {f"x{number}": x[:, number] for number in range(12)}
    twin = units * (score + 0.2 * rng.normal(size=300))
    main = np.where(score > 0, "yes", "no")
    pd.DataFrame({**columns, "twin": twin, "coin": rng.integers(2, size=300), "main task": main}).to_csv(
        path, index=False
    )
    return path


def known_run(table) -> MultiLabel:
    return replace(
        cpu("table"),
        table=str(table),
        main="main task",
        aux=("twin", "coin"),
        labels=20.0,
        network="mlp-32x4",
        steps=150,
    )


def errors(run, out, seeds=SEEDS):
    return [train_run(replace(run, seed=seed), out)["test_error"] for seed in seeds]


@pytest.mark.long
def test_the_twin_is_kept_and_the_coin_is_not_missed_whatever_the_units(tmp_path):
    found = {}
    for units in (1.0, 1e3, 1e-3):
        table = write_table(tmp_path / f"{units:g}.csv", units)
        base = known_run(table)
        for method in ("uniform", "agreement"):
            both = errors(replace(base, method=method), tmp_path)
            found[units, method] = mean(both)
            if units == 1 and method == "uniform":
                without = {
                    name: mean(errors(replace(base, method=method, leave_out=(name,)), tmp_path)) for name in base.aux
                }
                assert without["twin"] > mean(both) + 5, "leaving the twin out costs a lot"
                assert without["coin"] < mean(both) + 2, "nobody misses the coin"
    for method in ("uniform", "agreement"):
        same = [found[units, method] for units in (1.0, 1e3, 1e-3)]
        assert max(same) - min(same) < 1.5, f"{method}: the units of the twin do not matter, {same}"


@pytest.mark.long
@pytest.mark.parametrize("units", [1e3, 1e-3])
def test_the_verdict_keeps_the_twin_and_not_the_coin(tmp_path, units):
    """The verdict as a report draws it, from ten seeds with and without each column.

    A column with the opposite answers is no test of it. With a head of its own it teaches the same as the main
    target, with another sign, and does help.
    """
    base, seeds = known_run(write_table(tmp_path / "known.csv", units)), range(10)
    errors(replace(base, method="agreement"), tmp_path, seeds)
    for left_out in ((), ("twin",), ("coin",)):
        errors(replace(base, method="uniform", leave_out=left_out), tmp_path, seeds)
    (comparison,) = comparisons(collect([tmp_path]).recorded)
    (found,) = verdicts(comparison)
    finding = {verdict.task: verdict.finding for verdict in found.tasks}
    assert finding["twin"] is Finding.HELPS
    assert finding["coin"] is not Finding.HELPS
