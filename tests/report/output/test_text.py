"""Tables for the terminal, Markdown and LaTeX, from the same cells."""

from io import StringIO

from rich.console import Console

from arml.report.data.summary import Summary
from arml.report.output.terminal import print_sheets
from arml.report.output.text import escape_latex, latex, markdown
from arml.report.tables.sheet import Cell, Sheet, number

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
    assert r"\begin{tabular}{lrl}" in text
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
