"""The rules of the verdict, each at its edge."""

import pytest
from report.made_records import dg_runs, ssl_runs, write

from arml.lab.run import Domains, Line, SemiSupervised
from arml.report.data.comparison import comparisons
from arml.report.data.records import collect
from arml.report.data.summary import Summary
from arml.report.data.verdict import Evidence, Finding, finding, verdicts
from arml.report.tables.verdict_words import in_words, verdict_sheet, words
from arml.report.tables.verdict_words import overall as overall_words


def of(path):
    return {one.line: one for comparison in comparisons(collect([path]).recorded) for one in verdicts(comparison)}


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


def test_words_name_the_evidence_and_what_was_not_tested(tmp_path):
    ssl_runs(tmp_path)
    found = of(tmp_path)
    assert list(found) == [Line("s4l", "arml"), Line("s4l", "gated_arml")]
    rotation, exemplar = in_words(found[Line("s4l", "arml")])
    assert rotation == (
        "rotation: switched off. Weight 0.06 ± 0.02 (n = 3), where 1 is an equal share; agreement of its gradient with "
        "the main one 0.500 ± 0.000; not tested by leaving it out."
    )
    assert exemplar.startswith("exemplar: helps (by its weight only). Weight 1.94 ± 0.02")


def test_leaving_out_is_paired_with_the_line_that_has_all_tasks(tmp_path):
    dg_runs(tmp_path, shots=(1,))
    (verdict,) = of(tmp_path).values()
    misleading = next(one for one in verdict.tasks if one.task == "misleading")
    assert misleading.evidence.without.mean == -7  # found - 3 without it, found + 4 with equal weights
    assert "leaving it out changes the error by -7.00 ± 0.00 points, n = 2." in words(misleading)
    # Runs without it under ARML itself say more about ARML: 27.5 + seed against 27 + 1.5 seed with it.
    for seed in range(2):
        write(tmp_path, Domains(shots=1, seed=seed, leave_out=("misleading",)), 27.5 + seed, weights={"mnist5k": 1.0})
    (verdict,) = of(tmp_path).values()
    misleading = next(one for one in verdict.tasks if one.task == "misleading")
    assert misleading.evidence.without.mean == 0.25


def overall(path, *, alone, arml, uniform):
    for seed in range(len(arml)):
        write(path, SemiSupervised(learner="supervised", method="uniform", seed=seed), alone[seed])
        write(path, SemiSupervised(method="uniform", seed=seed), uniform[seed])
        write(path, SemiSupervised(method="arml", seed=seed), arml[seed], weights={"rotation": 1.0})
    return overall_words(of(path)[Line("s4l", "arml")])


def test_plain_sentences_when_arml_wins(tmp_path):
    better, alone = overall(tmp_path, alone=[20, 22], uniform=[15, 17], arml=[10, 12])
    assert better == (
        "S4L + ARML did better than uniform weights: paired difference of the error -5.00 ± 0.00 points, n = 2."
    )
    assert alone.startswith("S4L + ARML did better than training on the main task alone")


def test_plain_sentences_when_it_does_not(tmp_path):
    same, alone = overall(tmp_path, alone=[20, 10], uniform=[15, 12], arml=[13, 14])
    assert same.startswith("No difference between S4L + ARML and uniform weights is established")
    assert alone.startswith("Training on the main task alone did as well as S4L + ARML, as far as 2 seeds can tell")


def test_plain_sentences_when_it_loses(tmp_path):
    worse, alone = overall(tmp_path, alone=[5, 6], uniform=[7, 8], arml=[9, 10])
    assert worse.startswith("S4L + ARML did worse than uniform weights")
    assert alone.startswith("Training on the main task alone did better than S4L + ARML")


def test_one_seed_says_nothing(tmp_path):
    (sentence,) = overall(tmp_path, alone=[20], uniform=[15], arml=[1])
    assert sentence == "S4L + ARML has one finished seed only: nothing can be said about it."
    (found,) = of(tmp_path).values()
    assert in_words(found) == ["rotation: nothing can be said. There is one seed only; its weight there is 1.00."]


def test_many_tasks_are_listed_by_finding(tmp_path):
    weights = {"a": 2.5, "b": 0.02, "c": 0.98, "d": 1.0, "e": 1.0}
    for seed in range(2):
        write(tmp_path, SemiSupervised(seed=seed), 10.0, weights=weights, agreement={**dict.fromkeys(weights, 0.1)})
    (found,) = of(tmp_path).values()
    assert in_words(found) == [
        "helps (by its weight only): a (2.50 ± 0.00), with the final weight where 1 is an equal share.",
        "switched off: b (0.02 ± 0.00), with the final weight where 1 is an equal share.",
        "no evidence: c, d, e.",
    ]
    sheet = verdict_sheet(found)
    assert [row[0].text for row in sheet.rows] == ["a", "b", "c", "d", "e"]
    assert sheet.rows[0][4].text == "not run"


def test_the_learner_that_was_weighed_in_most_ways_comes_first(tmp_path):
    lines = {"jt": ["uniform", "gradnorm", "gated_arml", "arml"], "baseline": ["uniform", "arml"]}
    for learner, methods in lines.items():
        for method in methods:
            for seed in range(2):
                run = Domains(learner=learner, method=method, seed=seed)
                write(tmp_path, run, 10.0 + seed, weights={"photo": 1.0})
    assert list(of(tmp_path)) == [
        Line("jt", "arml"),
        Line("jt", "gated_arml"),
        Line("baseline", "arml"),
    ]
