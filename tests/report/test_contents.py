"""The report as a whole."""

from report.made_records import dg_runs, scarce_runs, ssl_runs, write
from report.made_reports import report_on

from arml.lab.run_kinds import MultiLabel, SemiSupervised
from arml.report.output.html import page


def test_the_summary_says_what_was_compared_and_what_came_out(tmp_path):
    ssl_runs(tmp_path)
    write(tmp_path, SemiSupervised(seed=9))
    report = report_on(tmp_path)
    assert report.overview == (
        "4 combinations of learner and method on digits, 50 labels: 13 runs with 4 seeds, 12 in the tables, 0 failed."
    )
    (answer,) = report.answers
    assert answer.text.title == "50 digits labels, two tasks without labels"
    assert answer.text.headline.startswith("Train with ARML: 15.6 % error instead of 20.5 % on the main task alone")
    assert [badge.task for badge in answer.text.badges] == ["rotation", "exemplar"]
    text = page(report)
    assert text.index("Train with ARML") < text.index("<figure") < text.index("Test results in %")


def test_mixed_protocols_failures_and_skipped_files_are_mentioned(tmp_path):
    ssl_runs(tmp_path)
    failed = write(tmp_path, SemiSupervised(seed=5, steps=400))
    (failed / "failure.txt").write_text("ValueError: too few labels")
    (tmp_path / "record.jsonl").unlink(missing_ok=True)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "record.jsonl").write_text("{}\n")
    report = report_on(tmp_path)
    assert report.sections[0].warnings[0].startswith("Caution: runs on digits, 50 labels differ in steps (200, 400)")
    assert 'class="caution">Caution: runs on digits' in page(report)
    assert any("foreign/record.jsonl: " in remark for remark in report.remarks)
    assert "failed: digits, 50 labels, S4L + ARML, seed 5: ValueError: too few labels" in report.remarks
    assert "2 files or runs are not included" in page(report)


def test_nothing_yet_is_a_page_too(tmp_path):
    report = report_on(tmp_path)
    assert report.overview == "There is no record of a run yet."
    assert "There is no record of a run yet." in page(report, reload_every=5)


def test_without_arml_or_a_result_there_is_no_verdict(tmp_path):
    write(tmp_path, SemiSupervised(method="uniform"), 10.0, weights={"rotation": 1.0})
    write(tmp_path, SemiSupervised(labels=100))
    report = report_on(tmp_path)
    assert [answer.text.headline for answer in report.answers] == [
        "Nothing to compare yet: no other line than uniform weights has finished; `arml compare` trains what it is "
        "compared with.",
        "Nothing to compare yet: no run has finished.",
    ]
    assert "no finished run" in page(report)


def test_names_that_differ_in_signs_only_have_files_of_their_own(tmp_path):
    for main in ("a_b", "a b"):
        write(tmp_path / main, MultiLabel(main=main), 9.0)
    keys = [chart.key for chart in report_on(tmp_path).charts()]
    assert len(set(keys)) == len(keys) == 2


def test_environments_are_counted(tmp_path):
    ssl_runs(tmp_path)
    (row,) = report_on(tmp_path).environments.rows
    assert [cell.text for cell in row] == ["12", "0.1.0", "a processor", "3.11.7", "Linux", "2.13.0"]


def test_the_papers_words_stand_where_they_belong(tmp_path):
    ssl_runs(tmp_path, labels=(50, 100))
    last = report_on(tmp_path, paper=True).sections[-1].sentences
    assert any(words.startswith("The paper's Figure 2, in words") for words in last)
    assert not any("Figure 3" in words or "Figure 4" in words for words in last)
    dg_runs(tmp_path)
    last = " ".join(report_on(tmp_path, paper=True).sections[-1].sentences)
    assert all(f"Figure {number}, in words" in last for number in (2, 3, 4))
    assert "The paper's" not in " ".join(report_on(tmp_path).sections[-1].sentences)


def test_the_papers_words_on_errors_need_a_line_to_compare_with(tmp_path):
    scarce_runs(tmp_path, (1.0, 1.5, 0.5), (1.1, 1.4, 0.5))
    last = " ".join(report_on(tmp_path, paper=True).sections[-1].sentences)
    assert "Figure 4, in words" in last
    assert "Figure 3" not in last


def test_without_the_main_task_alone_uniform_weights_may_win(tmp_path):
    for seed in range(4):
        write(tmp_path, SemiSupervised(method="uniform", seed=seed), 10.0 + 0.1 * seed, weights={"rotation": 1.0})
        write(tmp_path, SemiSupervised(method="agreement", seed=seed), 15.0 + 0.2 * seed, weights={"rotation": 0.5})
    (answer,) = report_on(tmp_path).answers
    assert answer.text.headline == "Take uniform weights: 10.2 % error instead of 15.3 % with Agreement."
    assert answer.text.sure[0].startswith("How sure: lower on 4 of 4 seeds")
    assert answer.text.number == "10.2 %"
