"""Names from other people's files, without characters that a terminal or a typesetter would obey."""

import unicodedata


def show_controls(words: str) -> str:
    r"""Shows control characters, and characters that change the direction of writing, as their escapes.

    >>> print(show_controls("red \x1b[31m alert\nnext line"))
    red \x1b[31m alert
    next line
    """
    return "".join(_escape(letter) for letter in words) if not words.isprintable() else words


def _escape(letter: str) -> str:
    if letter.isprintable() or letter in "\n\t" or unicodedata.category(letter) == "Zs":
        return letter
    return letter.encode("unicode_escape", errors="backslashreplace").decode()
