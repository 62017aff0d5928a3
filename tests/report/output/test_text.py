"""Tables for the terminal, Markdown and LaTeX, from the same cells."""

import shutil
import subprocess
from io import StringIO

import pytest
from report.made_records import dg_runs, mlc_runs, ssl_runs
from report.made_reports import report_on
from rich.console import Console

from arml.report.data.summary import Summary
from arml.report.data.verdict import Finding
from arml.report.output.terminal import print_answers, print_sheets
from arml.report.output.text import escape_latex, latex, markdown
from arml.report.tables.answer_text import AnswerText, Badge
from arml.report.tables.sheet import Cell, Sheet, difference, number

SHEET = Sheet(
    "5_o_Clock & 10 %",
    ("", "error", "task"),
    (
        (Cell("A_1|<b>"), number(Summary(1.5, 0.25, 3), strong=True), Cell("[red]$x^2$")),
        (Cell("B"), number(Summary(2.0, float("inf"), 1)), Cell("")),
    ),
    ("n = 3",),
)


def test_markdown():
    assert markdown([SHEET]).splitlines() == [
        r"## 5\_o\_Clock &amp; 10 %",
        "",
        "|  | error | task |",
        "| --- | ---: | --- |",
        r"| A\_1\|&lt;b&gt; | **1.50 ± 0.25** | \[red\]$x^2$ |",
        "| B | 2.00 |  |",
        "",
        "- n = 3",
    ]


def test_latex_is_escaped_and_balanced():
    text = latex([SHEET])
    assert r"\caption{5\_o\_Clock \& 10 \%}" in text
    assert r"A\_1|\textless{}b\textgreater{} & \textbf{1.50 $\pm$ 0.25} & {[}red]\$x\textasciicircum{}2\$ \\" in text
    assert r"\begin{tabular}{@{}lrl@{}}" in text
    assert text.count("{") == text.count("}")
    assert [line for line in text.splitlines() if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]


def test_every_special_character_of_latex_is_escaped():
    assert escape_latex(r"\{}$&#^_~%") == (r"\textbackslash{}\{\}\$\&\#\textasciicircum{}\_\textasciitilde{}\%")


def test_the_terminal_shows_names_as_they_are_and_common_notes_once():
    console = Console(width=100, record=True, file=StringIO())
    print_sheets([SHEET, SHEET._replace(title="other", notes=("n = 3", "only here"))], console)
    text = console.export_text()
    assert "[red]$x^2$" in text
    assert text.count("n = 3") == 1
    assert text.index("only here") < text.index("n = 3")


LONG = "Joint training (JT), uniform weights, without mnist5k"


def test_80_letters_are_enough():
    """Columns that only wide terminals show go first; nothing is cut or broken inside a number."""
    sheet = Sheet(
        "Test results",
        ("", "error", "difference to uniform", "weights", "n"),
        (
            (
                Cell(LONG),
                number(Summary(31.56, 4.12, 8)),
                difference(Summary(12.99, 3.99, 8)),
                Cell("a 1.00"),
                Cell("8", 8),
            ),
        ),
        wide=("weights",),
    )
    for width, shown in ((80, False), (120, True)):
        console = Console(width=width, record=True, file=StringIO())
        print_sheets([sheet], console)
        lines = console.export_text().splitlines()
        assert max(map(len, lines)) <= width
        assert any("31.56 ± 4.12" in line and "+12.99 ± 3.99*" in line for line in lines)
        assert any("a 1.00" in line for line in lines) == shown


def test_an_answer_has_at_most_ten_lines_and_keeps_its_names():
    badges = [Badge(f"[red]task {k}", Finding.OPEN, "about 5 more seeds") for k in range(30)]
    console = Console(width=200, record=True, file=StringIO())
    print_answers([AnswerText("title", "Do it.", "1 %", "error", ["Sure."] * 12, badges, [])], console)
    lines = console.export_text().splitlines()
    assert len(lines) == 10
    assert [line.rstrip() for line in lines[:3]] == ["title", "  Do it.", "  Sure."]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex: install texlive-latex-recommended")
def test_latex_tables_compile_and_fit_a_column(tmp_path):
    ssl_runs(tmp_path / "runs", labels=(50, 100))
    mlc_runs(tmp_path / "runs")
    dg_runs(tmp_path / "runs")
    (tmp_path / "tables.tex").write_text(latex(report_on(tmp_path / "runs", paper=True).sheets()))
    packages = r"\usepackage[utf8]{inputenc}\usepackage{booktabs,graphicx}"
    (tmp_path / "main.tex").write_text(
        rf"\documentclass[twocolumn]{{article}}{packages}\begin{{document}}\input{{tables}}\end{{document}}"
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
