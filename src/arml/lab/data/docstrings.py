"""The documentation of SciPy's functions and classes: short texts of several kinds, on every machine that runs the lab.

The task is to tell from the description of a function which part of SciPy it is in. Labels for that would be made by
hand; what the rest of the documentation mentions is known for every text.
"""

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from arml.lab.data.table import column_names

PARTS = (
    "cluster.hierarchy",
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "sparse.linalg",
    "spatial",
    "spatial.distance",
    "special",
    "stats",
)
"""Modules; the first word of each is the class."""
NUM_WORDS = 12
"""Words of the rest of the documentation, each an auxiliary target."""
MOST_COMMON = 0.25
"""Words that more than this share of the texts mention belong to the form of documentation."""
_SECTION = re.compile(r"\n[A-Z][A-Za-z ]+\n-{3,}\n")
_WORD = re.compile(r"[a-z]{4,}")


class Text(NamedTuple):
    """The documentation of one function or class."""

    part: str
    """The part of SciPy."""
    description: str
    """What comes before the first section."""
    rest: str
    """The sections: parameters, returned values, notes, examples."""


def read_texts() -> list[Text]:
    """All texts with a description and further sections, in the order of modules and names, each once."""
    texts = {text.description: text for part in PARTS for text in _texts_of(part)}
    return list(texts.values())


def _texts_of(part: str) -> Iterator[Text]:
    module = importlib.import_module(f"scipy.{part}")
    for name in sorted(module.__all__):
        documentation = inspect.getdoc(getattr(module, name)) or ""
        description, *rest = _SECTION.split(documentation)
        if description.strip() and rest:
            yield Text(part.split(".", maxsplit=1)[0], " ".join(description.split()), "\n".join(rest))


def mentioned_words(texts: list[Text]) -> list[str]:
    """The words that most texts mention in their sections, without stop words, words of form, and names of parts."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    told = {text.part for text in texts} | ENGLISH_STOP_WORDS
    counts = Counter(word for text in texts for word in _words(text.rest) - told)
    rare = {word: count for word, count in counts.items() if count <= MOST_COMMON * len(texts)}
    return sorted(rare, key=lambda word: (-rare[word], word))[:NUM_WORDS]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def write_docstrings(path: Path) -> tuple[str, ...]:
    """Writes a table of all texts, unless it is there, and returns its auxiliary targets: all columns after the second.

    ``part`` is the main target, ``description`` the text to learn from.
    """
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]

    if path.exists():
        return column_names(path)[2:]
    texts = read_texts()
    words = mentioned_words(texts)
    rows = [(text.part, text.description, *(word in _words(text.rest) for word in words)) for text in texts]
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=["part", "description", *words]).to_csv(path, index=False)
    return tuple(words)
