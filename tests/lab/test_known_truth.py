"""A table of which it is known what helps: errors with and without each auxiliary column say so, whatever the units."""

from dataclasses import replace
from statistics import mean

import numpy as np
import pandas as pd
import pytest

from arml.lab import train_run
from arml.lab.experiments.multi_label_runs import cpu
from arml.lab.run_kinds import MultiLabel

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


def errors(run, out):
    return [train_run(replace(run, seed=seed), out)["test_error"] for seed in SEEDS]


@pytest.mark.slow
def test_the_twin_is_kept_and_the_coin_is_not_missed_whatever_the_units(tmp_path):
    found = {}
    for units in (1.0, 1e3, 1e-3):
        table = write_table(tmp_path / f"{units:g}.csv", units)
        base: MultiLabel = replace(
            cpu("table"),
            table=str(table),
            main="main task",
            aux=("twin", "coin"),
            labels=20.0,
            network="mlp-32x4",
            steps=150,
        )
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
