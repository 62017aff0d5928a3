"""The verdict on a task comes from runs without it, and from nothing else."""

import pytest
from report.made_records import dg_runs, write
from report.made_reports import compare

from arml.lab.run import Line
from arml.lab.run_kinds import Domains
from arml.report.data.verdict import Finding, verdicts


def verdicts_by_line(path):
    return {one.line: one for comparison in compare(path) for one in verdicts(comparison)}


def judge(path, without, *, weight=1.0, seeds=5):
    """Errors 20, 21, ... with all tasks; ``without`` gives the difference on each seed when a is left out."""
    for seed in range(seeds):
        weights = {"a": weight, "b": 1.0}
        write(path, Domains(method="uniform", seed=seed), 20.0 + seed, weights=dict.fromkeys(weights, 1.0))
        write(path, Domains(method="arml", seed=seed), 18.0, weights=weights)
        run = Domains(method="uniform", seed=seed, leave_out=("a",))
        write(path, run, 20.0 + seed + without[seed], weights={"b": 1.0})
    (found,) = verdicts_by_line(path).values()
    return {one.task: one for one in found.tasks}


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        ([3.0, 3.5, 2.5, 3.0, 3.2], Finding.HELPS),
        ([-3.0, -3.5, -2.5, -3.0, -3.2], Finding.DROP),
        ([0.1, -0.1, 0.0, 0.2, -0.1], Finding.SAME),
        ([5.0, -4.0, 1.0, 0.0, -1.0], Finding.OPEN),
    ],
)
def test_findings(tmp_path, without, expected):
    found = judge(tmp_path, without)
    assert found["a"].finding is expected
    assert (found["a"].without.further is None) == (expected is not Finding.OPEN)
    assert found["b"].finding is Finding.OPEN  # it was never left out
    assert found["b"].without is None


def test_a_weight_is_no_verdict_but_it_is_told_when_the_method_switched_the_task_off(tmp_path):
    found = judge(tmp_path, [5.0, -4.0, 1.0, 0.0, -1.0], weight=0.05)
    assert found["a"].finding is Finding.OPEN
    assert found["a"].is_switched_off()
    assert not found["b"].is_switched_off()


def test_one_seed_allows_no_verdict(tmp_path):
    found = judge(tmp_path, [30.0], seeds=1)
    assert found["a"].finding is Finding.OPEN
    assert not found["a"].is_switched_off()


def test_leaving_out_is_paired_with_the_line_that_has_all_tasks(tmp_path):
    dg_runs(tmp_path, shots=(1,))
    (verdict,) = verdicts_by_line(tmp_path).values()
    misleading = next(one for one in verdict.tasks if one.task == "misleading")
    assert misleading.without.difference.mean == -7  # found - 3 without it, found + 4 with equal weights
    # Runs without it under ARML itself say more about ARML: 27.5 + seed against 27 + 1.5 seed with it.
    for seed in range(2):
        write(tmp_path, Domains(shots=1, seed=seed, leave_out=("misleading",)), 27.5 + seed, weights={"mnist5k": 1.0})
    (verdict,) = verdicts_by_line(tmp_path).values()
    misleading = next(one for one in verdict.tasks if one.task == "misleading")
    assert misleading.without.difference.mean == 0.25


def test_without_its_only_task_a_line_is_the_main_task_alone(tmp_path):
    for seed in range(4):
        write(tmp_path, Domains(learner="main_only", method="uniform", seed=seed), 20.0 + 0.1 * seed)
        write(tmp_path, Domains(method="uniform", seed=seed), 15.0, weights={"photo": 1.0})
        write(tmp_path, Domains(method="arml", seed=seed), 14.0, weights={"photo": 1.0})
    (found,) = verdicts_by_line(tmp_path).values()
    assert found.tasks[0].finding is Finding.HELPS
    assert found.tasks[0].without.difference.mean == pytest.approx(6.15)  # ARML, its own line, against 20.15 alone


def test_the_learner_with_the_most_methods_comes_first(tmp_path):
    lines = {"jt": ["uniform", "gradnorm", "gated_arml", "arml"], "baseline": ["uniform", "arml"]}
    for learner, methods in lines.items():
        for method in methods:
            for seed in range(2):
                run = Domains(learner=learner, method=method, seed=seed)
                write(tmp_path, run, 10.0 + seed, weights={"photo": 1.0})
    assert list(verdicts_by_line(tmp_path)) == [
        Line("jt", "arml"),
        Line("jt", "gated_arml"),
        Line("baseline", "arml"),
    ]
