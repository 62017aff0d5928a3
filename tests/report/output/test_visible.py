"""Control characters in names never reach the terminal."""

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from arml.cli.progress import say
from arml.report.output.terminal import print_sheets
from arml.report.output.text import latex, markdown
from arml.report.output.visible import show_controls
from arml.report.tables.sheet import Sheet, text

NASTY = "a\x1b]0;title\x07b\x1b[2Jc\u202ed\x00e\x9bf"


def test_names_are_shown_and_not_obeyed():
    out = io.StringIO()
    console = Console(file=out, width=200)
    say(console, NASTY)
    print_sheets([Sheet(NASTY, ("", NASTY), ((text(NASTY), text("x")),), (NASTY,))], console)
    found = out.getvalue()
    assert not set(found) & set("\x1b\x07\x00\x9b\u202e")
    assert found.count(r"a\x1b]0;title\x07b\x1b[2Jc\u202ed\x00e\x9bf") == 5


@given(st.text())
def test_what_is_printable_stays(words):
    shown = show_controls(words)
    assert all(letter.isprintable() or letter in "\n\t" or letter.isspace() for letter in shown)
    if words.isprintable():
        assert shown == words


def test_latex_rows_may_begin_with_a_bracket():
    sheet = Sheet("t", ("a", "b"), ((text("x"), text("y")), (text("[1] z"), text("y"))), ())
    rows = latex([sheet]).splitlines()
    assert r"{[}1] z & y \\" in rows
    assert not any(row.startswith("[") for row in rows)


def test_control_characters_do_not_reach_files():
    sheet = Sheet(NASTY, ("a",), ((text(NASTY),),), (NASTY,))
    for page in (latex([sheet]), markdown([sheet])):
        assert not set(page) & set("\x1b\x07\x00\x9b\u202e")
