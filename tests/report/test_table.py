"""Tables from hand-written records."""

import pytest

from arml.lab.run import Run
from arml.lab.trace import Recorded
from arml.report.paper import QUOTED, TABLE_1
from arml.report.summary import paired_difference, summarise
from arml.report.table import Group, best, key_of, tables


def recorded(test_error, validation_error=0.0, *, weights=None, done=True, **fields) -> Recorded:
    line = {"step": 5, "validation_error": validation_error, "test_error": test_error, "weights": weights or {}}
    return Recorded(Run(**fields), [{"step": 1, "losses": {}}, *([line] if done else [])])


DIGITS = Group("digits", 50)


def rows_of(records, group=DIGITS):
    return {row.key: row for row in tables(records)[group]}


def test_means_intervals_and_paired_differences():
    """t(0.975, 2) = 4.3027: s of (10, 12, 14) is 2, so the half width is 4.3027 * 2 / sqrt(3)."""
    uniform = [recorded(e, seed=s, method="uniform") for s, e in enumerate([10.0, 12.0, 14.0])]
    arml = [recorded(e, seed=s, method="arml") for s, e in enumerate([9.0, 11.0, 13.0])]
    rows = rows_of(uniform + arml)
    assert rows["uniform"].error.mean == 12
    assert rows["uniform"].error.half_width == pytest.approx(4.30265 * 2 / 3**0.5, rel=1e-4)
    assert rows["uniform"].against_uniform is None
    assert rows["arml"].against_uniform.mean == -1
    assert rows["arml"].against_uniform.excludes_zero()


def test_only_common_seeds_are_paired():
    assert paired_difference({0: 1.0}, {1: 1.0}) is None
    assert paired_difference({0: 1.0, 1: 5.0}, {1: 3.0}).mean == 2


def test_one_seed_establishes_nothing():
    assert not summarise([3.0]).excludes_zero()
    assert str(summarise([3.0])) == "3.00"


def test_the_grid_is_chosen_by_validation_seed_by_seed():
    records = [
        recorded(1.0, validation_error=9.0, method="grid-0", seed=0),
        recorded(7.0, validation_error=2.0, method="grid-1", seed=0),
        recorded(5.0, validation_error=1.0, method="grid-0", seed=1),
        recorded(3.0, validation_error=4.0, method="grid-1", seed=1),
    ]
    assert rows_of(records)["grid"].error.mean == 6


def test_unfinished_runs_are_left_out_and_tables_are_separate():
    records = [recorded(1.0, done=False), recorded(2.0, labels=20), recorded(4.0, labels=100, dataset="mnist5k")]
    assert list(tables(records)) == [Group("digits", 20), Group("mnist5k", 100)]


def test_lines_are_named_by_learner_or_weighting():
    assert key_of(Run(learner="vat", method="uniform")) == "vat"
    assert key_of(Run(learner="s4l", method="grid-1.5")) == "grid"
    assert key_of(Run(learner="s4l", method="arml_full")) == "arml_full"


def test_best_only_where_intervals_are_apart():
    near = [
        recorded(e, seed=s, method=m) for m, es in {"arml": [1, 3], "uniform": [2, 4]}.items() for s, e in enumerate(es)
    ]
    assert best(list(rows_of(near).values())) is None
    apart = [
        recorded(e, seed=s, method=m)
        for m, es in {"arml": [1, 1.1], "uniform": [8, 8.1]}.items()
        for s, e in enumerate(es)
    ]
    assert best(list(rows_of(apart).values())) == "arml"
    grid = [recorded(0.0, seed=s, method="grid-1") for s in range(2)]
    assert best(list(rows_of(apart + grid).values())) == "arml"


def test_weights_are_averaged():
    records = [recorded(1.0, seed=s, weights={"rotation": w, "exemplar": 2 - w}) for s, w in enumerate([0.5, 1.5])]
    assert rows_of(records)["arml"].weights == {"rotation": 1.0, "exemplar": 1.0}


def test_quoted_rows_of_the_paper_say_so():
    group = Group("cifar10", 4000)
    rows = rows_of([recorded(20.0, dataset="cifar10", labels=4000, learner="vat", method="uniform")], group)
    assert rows["vat"].paper == "13.86 ± 0.27 (quoted)"
    rows = rows_of([recorded(20.0, dataset="cifar10", labels=4000)], group)
    assert rows["arml"].paper == "13.68 ± 0.35"
    assert all(set(QUOTED) < set(figures) for figures in TABLE_1.values())
