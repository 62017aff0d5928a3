"""Columns of free text: comments, titles, descriptions. Their words become numbers to learn from."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from arml.lab.data.table_columns import Column, Remark, distinct_values, is_text, name_columns

# scikit-learn is imported where it is used, so that image data sets do not need it.
if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

MOST_VALUES = 30
"""A column of text with at most this many different values is a choice among them, however long they are."""
LEAST_WORDS = 5
"""Free text has at least this many words per cell on average; shorter text is a name, a code or a choice."""
DIRECTIONS = 64
"""Numbers that stand for a text."""
_WORD = re.compile(r"\b\w\w+\b")


def is_free_text(column: Column) -> bool:
    """Whether the column holds sentences rather than names or a choice.

    >>> is_free_text(np.array([f"patient {n} says that it hurts" for n in range(40)], dtype=object))
    True
    >>> is_free_text(np.array([f"patient {n}" for n in range(40)], dtype=object))
    False
    """
    if not is_text(column):
        return False
    present = [cell for cell in column.tolist() if cell is not None]
    words = sum(len(cell.split()) for cell in present)
    return words >= LEAST_WORDS * len(present) and len(distinct_values(column)) > MOST_VALUES


def remark_free_text(columns: Mapping[str, Column], remark: Remark) -> None:
    """A line about columns whose words become inputs."""
    found = [name for name, column in columns.items() if is_free_text(column)]
    if found:
        verb = "holds" if len(found) == 1 else "hold"
        remark(
            f"{name_columns(found)} {verb} free text: {DIRECTIONS} numbers stand for the words of each cell, by tf-idf "
            "and a singular value decomposition."
        )


def encode_text(texts: Column, train: Column) -> Column:
    r"""Latent semantic analysis (Deerwester et al., 1990) fitted to the training rows: [N, DIRECTIONS].

    A text is the vector of its words, :math:`(1 + \log n_w) (1 + \log((1 + N) / (1 + N_w)))`, scaled to length 1: n_w
    is how often word w stands in it, and N_w how many of N texts have it. What remains are its parts along the
    directions in which the training texts are longest, so that texts with related words are near each other. Parts keep
    their proportions, times the square root of ``DIRECTIONS``: numbers of the usual size. Where few or short texts have
    fewer directions, the others are 0.
    """
    cells = np.array(["" if cell is None else cell for cell in texts.tolist()], dtype=object)
    encoded = np.zeros((len(cells), DIRECTIONS))
    if any(_WORD.search(cell) for cell in cells[train]):
        parts = _fit(cells[train]).transform(cells)
        encoded[:, : parts.shape[1]] = parts
    scaled: Column = encoded * DIRECTIONS**0.5
    return scaled


def _fit(cells: Column) -> "Pipeline":
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    words: Any = TfidfVectorizer(token_pattern=_WORD.pattern, sublinear_tf=True, strip_accents="unicode")
    count = words.fit_transform(cells).shape[1]
    return make_pipeline(words, TruncatedSVD(min(DIRECTIONS, count), random_state=0)).fit(cells)
