"""The files of a report."""

import pytest
from report.made_records import dg_runs, finished_chart, ssl_runs
from report.made_reports import report_on

from arml.report.output.write import _replace, write


@pytest.mark.parametrize("most", [0, 2])
def test_files_of_a_report(tmp_path, most):
    runs, out = tmp_path / "runs", tmp_path / "report"
    ssl_runs(runs, labels=(50, 100))
    dg_runs(runs)
    report = report_on(runs, paper=True, charts=[finished_chart()])
    assert finished_chart() in report.charts()
    figures = write(report, out, most_figures=most)
    assert len(figures) == 2 * most
    assert all("labels-" in path.name for path in figures)
    assert sorted(path.name for path in out.iterdir() if path.is_file()) == ["index.html", "tables.md", "tables.tex"]
    assert (out / "tables.md").read_text().count("\n## ") + 1 == len(report.sheets())
    assert (out / "tables.tex").read_text().count(r"\begin{table}") == len(report.sheets())
    titles = " ".join(sheet.title for sheet in report.sheets())
    for what in ("Labels needed", "A misleading source", "Final weights at different numbers", "Verdict"):
        assert what in titles


def test_a_link_in_the_place_of_an_unfinished_file_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "page.html.part").symlink_to(tmp_path / "precious")
    _replace(tmp_path / "page.html", "a page")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "page.html").read_text() == "a page"
