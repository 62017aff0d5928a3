"""Which runs without one task follow a comparison."""

from report.made_records import make_recorded

from arml.lab.experiments.leave_one_out import EXTREMES, MOST_TASKS, leave_one_out_runs
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised, Suite


def record(run, tasks=("a", "b"), error=10.0):
    weights = tasks if isinstance(tasks, dict) else dict.fromkeys(tasks, 1.0)
    return make_recorded(error, run=run, weights=weights)


def test_every_task_of_few_is_left_out_in_turn_with_equal_weights_on_every_seed():
    recorded = [record(Domains(method=method, seed=seed)) for seed in (0, 1) for method in ("uniform", "arml")]
    recorded += [record(Domains(learner="main_only", method="uniform", seed=0), ())]
    assert leave_one_out_runs(recorded) == [
        Domains(method="uniform", seed=seed, leave_out=(task,)) for seed in (0, 1) for task in ("a", "b")
    ]


def test_of_many_tasks_the_strongest_and_weakest_by_the_recommended_method():
    rising = {f"task{k}": 0.1 * k for k in range(MOST_TASKS + 1)}
    falling = dict(zip(rising, reversed(rising.values()), strict=True))
    recorded = [
        record(MultiLabel(method="uniform"), dict.fromkeys(rising, 1.0)),
        record(MultiLabel(method="arml"), falling),
        record(MultiLabel(method="agreement"), rising),
    ]
    assert [run.leave_out for run in leave_one_out_runs(recorded)] == [("task10",), ("task9",), ("task1",), ("task0",)]
    assert EXTREMES == 2


def test_only_the_learner_with_the_most_lines_and_only_where_a_method_is_judged():
    lines = [("jt", "uniform"), ("jt", "gradnorm"), ("jt", "arml"), ("baseline", "uniform"), ("baseline", "arml")]
    recorded = [record(Domains(learner=learner, method=method)) for learner, method in lines]
    assert {run.learner for run in leave_one_out_runs(recorded)} == {"jt"}
    assert leave_one_out_runs([record(Domains(method="uniform")), record(Domains(method="gradnorm"))]) == []


def test_what_cannot_or_need_not_be_left_out():
    only = [record(Domains(method=method), ("a",)) for method in ("uniform", "arml")]
    assert leave_one_out_runs(only) == []  # without it: the main task alone
    worlds = [record(Suite(method=method)) for method in ("uniform", "arml")]
    assert leave_one_out_runs(worlds) == []
    unfinished = [record(Domains(method=method), error=None) for method in ("uniform", "arml")]
    assert leave_one_out_runs(unfinished) == []


def test_tasks_that_are_left_out_already_stay_out():
    base = {"leave_out": ("c",)}
    recorded = [record(Domains(method=method, **base)) for method in ("uniform", "arml")]
    assert leave_one_out_runs(recorded) == []  # such lines are variants, which nothing is judged by


def test_rotation_and_exemplar_can_be_left_out():
    recorded = [record(SemiSupervised(method=method), ("rotation", "exemplar")) for method in ("uniform", "arml")]
    found = leave_one_out_runs(recorded)
    assert [run.line().variant for run in found] == ["without rotation", "without exemplar"]
