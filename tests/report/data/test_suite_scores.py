"""Scores of the suite on errors that a person can add up."""

import numpy as np
import pytest
from report.made_records import make_recorded

from arml.lab.run import Line
from arml.lab.run_kinds import Suite
from arml.report.data.comparison import comparisons
from arml.report.data.suite_scores import leaderboard, score_line, weight_auc, world_results

ARML, GATED = Line("joint", "arml"), Line("joint", "gated_arml")
WEIGHTS = {
    "arml": {"good": 0.5, "bad": 1.5},
    "gated_arml": {"good": 2.0, "bad": 0.0},
    "uniform": {"good": 1.0, "bad": 1.0},
}


def records(world, errors, *, kind="some mislead", helpful=("good",), seeds=(0, 1)):
    """``errors`` by learner or method; seed 1 has one point more everywhere."""
    made = []
    for name, error in errors.items():
        learner = name if name in ("main_only", "oracle") else "joint"
        method = "uniform" if learner != "joint" else name
        for seed in seeds:
            run = Suite(world=world, kind=kind, helpful=helpful, learner=learner, method=method, seed=seed)
            made.append(make_recorded(error + seed, run=run, weights=WEIGHTS[method] if learner == "joint" else {}))
    return made


MIXED = {"main_only": 30.0, "uniform": 28.0, "oracle": 18.0, "arml": 23.0, "gated_arml": 19.0}
ALL_BAD = {"main_only": 20.0, "uniform": 40.0, "arml": 41.0, "gated_arml": 22.0}
REAL = {"main_only": 10.0, "uniform": 10.0, "arml": 16.0, "gated_arml": 9.0}


def results():
    found = [
        *records("mixed", MIXED),
        *records("all bad", ALL_BAD, kind="all mislead", helpful=()),
        *records("real", REAL, kind="real", helpful=()),
    ]
    return world_results(comparisons(found))


def test_golden_scores():
    scores = {one.line: one for one in leaderboard(results())}
    arml, gated = scores[ARML], scores[GATED]
    assert (gated.harm.value, gated.harm.world) == (2, "all bad")
    assert (arml.harm.value, arml.harm.world) == (21, "all bad")
    assert gated.gain.value == pytest.approx((9 + 18 + 1) / 3)
    assert arml.gain.value == pytest.approx((5 - 1 - 6) / 3)
    # The oracle gains 10 in the mixed world and, as the main task alone, 20 where all mislead; a real world has none.
    assert gated.share.value == pytest.approx((9 + 18) / 30)
    assert arml.share.value == pytest.approx((5 - 1) / 30)
    assert (gated.regret.value, gated.regret.world) == (2, "all bad")
    assert gated.regrets == {"mixed": -9, "all bad": 2, "real": -1}
    assert (gated.auc.value, arml.auc.value) == (1, 0)
    assert scores[Line("joint", "uniform")].auc.value == 0.5
    assert scores[Line("main_only")].harm.value == 0
    assert scores[Line("main_only")].auc is None
    assert [one.worlds for one in scores.values()] == [3] * 4


def test_the_least_worst_regret_comes_first_and_the_oracle_is_no_contender():
    assert [one.line for one in leaderboard(results())] == [
        GATED,
        Line("main_only"),  # also 2, in the mixed world, but a smaller gain
        Line("joint", "uniform"),
        ARML,
    ]


def test_equal_differences_have_an_interval_of_no_width_and_one_seed_has_none():
    gated = score_line(GATED, results())
    assert (gated.gain.low, gated.gain.high) == pytest.approx((28 / 3, 28 / 3))
    single = world_results(comparisons(records("mixed", MIXED, seeds=(0,))))
    assert score_line(GATED, single).gain.low == -np.inf


def test_the_interval_covers_what_seeds_show():
    made = records("mixed", MIXED) + records("mixed", {**MIXED, "gated_arml": 25.0}, seeds=(2, 3))
    gain = score_line(GATED, world_results(comparisons(made))).gain
    assert gain.value == pytest.approx((9 + 9 + 3 + 3) / 4)
    assert (gain.low, gain.high) == pytest.approx((3, 9))


def test_unfinished_lines_take_no_seeds_away_and_worlds_without_references_do_not_count():
    made = records("mixed", MIXED) + records("begun", {"main_only": 1.0, "arml": 2.0})
    made = [one for one in made if not (one.run.method == "arml" and one.run.seed == 1)]
    (found,) = world_results(comparisons(made))
    assert found.world == "mixed"
    assert ARML not in found.errors
    assert found.errors[GATED].tolist() == [19, 20]


def test_auc_counts_pairs():
    weights = {"a": 3.0, "b": 1.0, "c": 2.0, "d": 1.0}
    assert weight_auc(weights, ["a", "b"]) == (1 + 1 + 0 + 0.5) / 4
    assert weight_auc(weights, []) is None
    assert weight_auc(weights, list("abcd")) is None
