"""SciPy's documentation as a table of texts."""

import pandas as pd

from arml.lab.data.docstrings import MOST_COMMON, NUM_WORDS, PARTS, mentioned_words, read_texts, write_docstrings


def test_every_text_is_one_function_without_its_sections():
    texts = read_texts()
    assert len(texts) > 1000, "installed with documentation"
    assert {text.part for text in texts} == {part.split(".")[0] for part in PARTS}
    assert len({text.description for text in texts}) == len(texts)
    assert not any("Parameters\n-----" in text.description for text in texts)
    (found,) = [text for text in texts if text.description.startswith("Return the Discrete Cosine Transform of arb")]
    assert found.part == "fft"
    assert "The input array." in found.rest
    assert "The input array." not in found.description


def test_targets_are_words_of_the_rest(tmp_path):
    path = tmp_path / "new" / "docstrings.csv"
    words = write_docstrings(path)
    texts = read_texts()
    frame = pd.read_csv(path)
    assert len(words) == NUM_WORDS
    assert tuple(frame.columns) == ("part", "description", *words)
    assert frame["part"].tolist() == [text.part for text in texts]
    for word in words:
        assert frame[word].tolist() == [word in _words_by_hand(text.rest) for text in texts]
        assert 0.05 < frame[word].mean() <= MOST_COMMON
    assert words == tuple(mentioned_words(texts))
    path.write_text("part,description,mine\nfft,a b c,1\n")
    assert write_docstrings(path) == ("mine",), "a table that is there stays, and its runs can be continued"


def _words_by_hand(text):
    letters = "".join(letter if "a" <= letter <= "z" else " " for letter in text.lower())
    return {word for word in letters.split() if len(word) >= 4}
