"""The rules of the verdict, each at its edge."""

import pytest
from report.made_records import dg_runs, write
from report.made_reports import compare

from arml.lab.run import Line
from arml.lab.run_kinds import Domains
from arml.report.data.summary import Summary
from arml.report.data.verdict import Evidence, Finding, finding, verdicts


def verdicts_by_line(path):
    return {one.line: one for comparison in compare(path) for one in verdicts(comparison)}


def s(mean, half_width=0.1, n=3):
    return Summary(mean, half_width, n)


RULES = [
    # weight, agreement, error without minus error with -> finding
    (s(1.5), s(0.5), s(2.0, 1.0), Finding.HELPS),
    (s(0.05, 0.01), s(0.5), s(2.0, 1.0), Finding.HELPS),
    (s(1.5), s(0.5), s(2.0, 2.5), Finding.NO_EVIDENCE),
    (s(1.5), s(0.5), None, Finding.HELPS_BY_WEIGHT),
    (s(1.05), s(0.5), None, Finding.NO_EVIDENCE),
    (s(1.5), s(0.05), None, Finding.NO_EVIDENCE),
    (s(1.5), s(-0.5), None, Finding.NO_EVIDENCE),
    (s(1.5), None, None, Finding.NO_EVIDENCE),
    (s(0.09), s(0.5), None, Finding.SWITCHED_OFF),
    (s(0.11), s(0.5), None, Finding.NO_EVIDENCE),
    (s(0.05), s(0.5), s(-2.0, 1.0), Finding.SWITCHED_OFF),
    (s(0.8), s(0.5), s(-2.0, 1.0), Finding.HARMS),
    (s(0.8), s(0.5), s(-2.0, 3.0), Finding.NO_EVIDENCE),
    (s(1.9, float("inf"), 1), s(0.9, float("inf"), 1), None, Finding.NOTHING),
]


@pytest.mark.parametrize(("weight", "agreement", "without", "expected"), RULES)
def test_rules(weight, agreement, without, expected):
    assert finding(Evidence(weight, agreement, without)) is expected


def test_leaving_out_is_paired_with_the_line_that_has_all_tasks(tmp_path):
    dg_runs(tmp_path, shots=(1,))
    (verdict,) = verdicts_by_line(tmp_path).values()
    misleading = next(one for one in verdict.tasks if one.task == "misleading")
    assert misleading.evidence.without.mean == -7  # found - 3 without it, found + 4 with equal weights
    # Runs without it under ARML itself say more about ARML: 27.5 + seed against 27 + 1.5 seed with it.
    for seed in range(2):
        write(tmp_path, Domains(shots=1, seed=seed, leave_out=("misleading",)), 27.5 + seed, weights={"mnist5k": 1.0})
    (verdict,) = verdicts_by_line(tmp_path).values()
    misleading = next(one for one in verdict.tasks if one.task == "misleading")
    assert misleading.evidence.without.mean == 0.25


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
