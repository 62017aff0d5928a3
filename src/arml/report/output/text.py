"""Tables as Markdown and as LaTeX."""

import re
from collections.abc import Iterable, Sequence

from arml.report.output.visible import show_controls
from arml.report.tables.sheet import Cell, Sheet

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # after the end of a row it would begin an option
    "±": r"$\pm$",
    "Π": r"$\Pi$",
    "≤": r"$\leq$",
}

LONGEST_NAME, LONGEST_HEADING = 22, 12
"""Letters of a name and of a heading that LaTeX sets on one line."""


def markdown(sheets: Sequence[Sheet]) -> str:
    """All tables, each with a heading and its notes as a list."""
    return "\n".join(_markdown(sheet) for sheet in sheets)


def _markdown(sheet: Sheet) -> str:
    lines = [f"## {escape_markdown(sheet.title)}", ""]
    lines.append(_markdown_row(escape_markdown(heading) for heading in sheet.headings))
    lines.append(_markdown_row("---" if sheet.is_text(i) else "---:" for i in range(len(sheet.headings))))
    lines += [
        _markdown_row(_emphasise(escape_markdown(cell.text), cell, "**", "**") for cell in row) for row in sheet.rows
    ]
    lines += ["", *(f"- {escape_markdown(note)}" for note in sheet.notes), ""]
    return "\n".join(lines)


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape_markdown(words: str) -> str:
    r"""Escapes characters that Markdown, or HTML inside it, would interpret.

    >>> print(escape_markdown("5_o_Clock|<b>"))
    5\_o\_Clock\|&lt;b&gt;
    """
    words = show_controls(" ".join(words.split())).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", words)


def latex(sheets: Sequence[Sheet]) -> str:
    """All tables, each no wider than a column of print."""
    return "% needs \\usepackage{booktabs,graphicx}\n" + "\n".join(_latex(sheet.narrow()) for sheet in sheets)


def _latex(sheet: Sheet) -> str:
    columns = "".join("l" if sheet.is_text(i) else "r" for i in range(len(sheet.headings)))
    rows = [
        _latex_row(
            [_latex_name(row[0]), *(_emphasise(escape_latex(cell.text), cell, r"\textbf{", "}") for cell in row[1:])]
        )
        for row in sheet.rows
    ]
    notes = [rf"\par\scriptsize {escape_latex(note)}" for note in sheet.notes]
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{escape_latex(sheet.title)}}}",
            r"\footnotesize\setlength{\tabcolsep}{3pt}",
            r"\sbox0{%",
            rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
            r"\toprule",
            _latex_row(_latex_heading(heading) for heading in sheet.headings),
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}}%",
            r"\noindent\ifdim\wd0>\columnwidth\resizebox{\columnwidth}{!}{\usebox0}\else\usebox0\fi",
            *notes,
            r"\end{table}",
            "",
        ]
    )


def _latex_name(cell: Cell) -> str:
    """The name of a row; a long one has lines of its own."""
    name = _emphasise(escape_latex(cell.text), cell, r"\textbf{", "}")
    if len(cell.text) <= LONGEST_NAME:
        return name
    return rf"\parbox[t]{{0.36\columnwidth}}{{\raggedright\hangindent=1em {name}\strut}}"


def _latex_heading(heading: str) -> str:
    """Words of a long heading stand one below the other."""
    if len(heading) <= LONGEST_HEADING:
        return escape_latex(heading)
    words = r" \\ ".join(escape_latex(word) for word in heading.split())
    return rf"\shortstack[r]{{{words}}}"


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def escape_latex(words: str) -> str:
    r"""Escapes characters that LaTeX would interpret.

    >>> print(escape_latex("5_o_Clock & 10 % ± 1"))
    5\_o\_Clock \& 10 \% $\pm$ 1
    """
    return "".join(_LATEX.get(character, character) for character in show_controls(" ".join(words.split())))


def _emphasise(content: str, cell: Cell, before: str, after: str) -> str:
    return f"{before}{content}{after}" if cell.strong else content
