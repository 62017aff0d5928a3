"""The page of results that ``arml reproduce`` writes."""

from report.made_records import mlc_runs, ssl_runs, write
from report.made_reports import report_on

from arml.lab.run_kinds import SemiSupervised
from arml.report.output.results_page import Origin, write_results

ORIGIN = Origin("arml reproduce table1", ["fewer steps"], trained=3, seconds=120.0)


def page(root, folder):
    return write_results(report_on(root), folder, "table1-cpu", "Table 1", ORIGIN).read_text()


def test_it_says_where_the_results_come_from_and_what_they_show(tmp_path):
    ssl_runs(tmp_path)
    text = page(tmp_path, tmp_path / "pages")
    assert text.startswith("# Table 1\n\nMade by `arml reproduce table1`. 4 combinations of learner and method")
    assert "The last call trained 3 runs in 2 minutes." in text
    assert "- fewer steps" in text
    assert text.index("**Train with ARML") < text.index("## Test results in %")


def test_an_answer_without_a_comparison_is_left_out(tmp_path):
    write(tmp_path, SemiSupervised(method="arml"), 10.0, weights={"rotation": 1.0})
    text = page(tmp_path, tmp_path / "pages")
    assert "Nothing to compare" not in text
    assert "S4L + ARML" in text


def test_verdicts_on_tasks_that_were_never_left_out_are_left_out(tmp_path):
    """They would be "cannot tell yet" for every task; the page of ``arml report`` has them folded."""
    mlc_runs(tmp_path, mains=("Class1",))
    assert "Verdict on each auxiliary task" not in page(tmp_path, tmp_path / "pages")
    (section, *_) = report_on(tmp_path).sections
    assert any("Verdict" in sheet.title for sheet in section.details)
    ssl_runs(tmp_path / "tried")
    write(tmp_path / "tried", SemiSupervised(method="arml", leave_out=("rotation",)), 12.0, weights={"exemplar": 1.0})
    assert "Verdict on each auxiliary task" in page(tmp_path / "tried", tmp_path / "pages")
