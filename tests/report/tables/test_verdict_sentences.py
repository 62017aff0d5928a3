"""The verdict in sentences, and as a table."""

from report.made_records import dg_runs, ssl_runs, write
from report.made_reports import compare

from arml.lab.run import Line
from arml.lab.run_kinds import SemiSupervised
from arml.report.data.verdict import verdicts
from arml.report.tables.verdict_sentences import overall_sentences, task_sentences, verdict_sentence
from arml.report.tables.verdict_sheet import verdict_sheet


def verdicts_by_line(path):
    return {one.line: one for comparison in compare(path) for one in verdicts(comparison)}


def test_sentences_name_the_evidence_and_what_was_not_tested(tmp_path):
    ssl_runs(tmp_path)
    found = verdicts_by_line(tmp_path)
    assert list(found) == [Line("s4l", "arml"), Line("s4l", "gated_arml")]
    rotation, exemplar = task_sentences(found[Line("s4l", "arml")])
    assert rotation == (
        "rotation: switched off. Weight 0.06 ± 0.02 (n = 3), where 1 is an equal share; agreement of its gradient with "
        "the main one 0.500 ± 0.000; not tested by leaving it out."
    )
    assert exemplar.startswith("exemplar: helps (by its weight only). Weight 1.94 ± 0.02")


def write_and_judge(path, *, alone, arml, uniform):
    for seed in range(len(arml)):
        write(path, SemiSupervised(learner="supervised", method="uniform", seed=seed), alone[seed])
        write(path, SemiSupervised(method="uniform", seed=seed), uniform[seed])
        write(path, SemiSupervised(method="arml", seed=seed), arml[seed], weights={"rotation": 1.0})
    return overall_sentences(verdicts_by_line(path)[Line("s4l", "arml")])


def test_plain_sentences_when_arml_wins(tmp_path):
    better, alone = write_and_judge(tmp_path, alone=[20, 22], uniform=[15, 17], arml=[10, 12])
    assert better == (
        "S4L + ARML did better than uniform weights: paired difference of the error -5.00 ± 0.00 points, n = 2."
    )
    assert alone.startswith("S4L + ARML did better than training on the main task alone")


def test_plain_sentences_when_it_does_not(tmp_path):
    same, alone = write_and_judge(tmp_path, alone=[20, 10], uniform=[15, 12], arml=[13, 14])
    assert same.startswith("No difference between S4L + ARML and uniform weights is established")
    assert alone.startswith("Training on the main task alone did as well as S4L + ARML, as far as 2 seeds can tell")


def test_plain_sentences_when_it_loses(tmp_path):
    worse, alone = write_and_judge(tmp_path, alone=[5, 6], uniform=[7, 8], arml=[9, 10])
    assert worse.startswith("S4L + ARML did worse than uniform weights")
    assert alone.startswith("Training on the main task alone did better than S4L + ARML")


def test_one_seed_allows_no_conclusion(tmp_path):
    (sentence,) = write_and_judge(tmp_path, alone=[20], uniform=[15], arml=[1])
    assert sentence == "S4L + ARML has only one finished seed: no conclusion is possible."
    (found,) = verdicts_by_line(tmp_path).values()
    assert task_sentences(found) == ["rotation: nothing can be said. Only one seed has finished; its weight is 1.00."]


def test_many_tasks_are_listed_by_finding(tmp_path):
    weights = {"a": 2.5, "b": 0.02, "c": 0.98, "d": 1.0, "e": 1.0}
    for seed in range(2):
        write(tmp_path, SemiSupervised(seed=seed), 10.0, weights=weights, agreement={**dict.fromkeys(weights, 0.1)})
    (found,) = verdicts_by_line(tmp_path).values()
    assert task_sentences(found) == [
        "helps (by its weight only): a (2.50 ± 0.00). Final weights in brackets; 1 is an equal share.",
        "switched off: b (0.02 ± 0.00). Final weights in brackets; 1 is an equal share.",
        "no evidence: c, d, e.",
    ]
    sheet = verdict_sheet(found)
    assert [row[0].text for row in sheet.rows] == ["a", "b", "c", "d", "e"]
    assert sheet.rows[0][4].text == "not run"


def test_leaving_a_task_out_is_evidence(tmp_path):
    """Errors with equal weights: found - 3 without the misleading source, found + 4 with it."""
    dg_runs(tmp_path, shots=(1,))
    (found,) = verdicts_by_line(tmp_path).values()
    misleading = next(one for one in found.tasks if one.task == "misleading")
    assert "leaving it out changes the error by -7.00 ± 0.00 points, n = 2." in verdict_sentence(misleading)


def test_without_runs_on_the_main_task_alone_that_comparison_is_refused(tmp_path):
    for seed in range(2):
        write(tmp_path, SemiSupervised(seed=seed), 10.0 + seed, weights={"rotation": 1.0})
    uniform, alone = overall_sentences(verdicts_by_line(tmp_path)[Line("s4l", "arml")])
    assert uniform == "S4L + ARML cannot be compared with uniform weights: fewer than two seeds have both."
    assert alone == (
        "S4L + ARML cannot be compared with training on the main task alone: fewer than two seeds have both."
    )
