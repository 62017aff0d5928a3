"""Columns of free text become numbers that stand for their words."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.testing import assert_close

from arml.lab.data import table
from arml.lab.data.table_features import choose_useful, encode
from arml.lab.data.table_text import DIRECTIONS, encode_text, is_free_text

TOPICS = (
    "waves pass filters of low frequency",
    "roots and extrema of smooth functions",
    "random samples of normal laws",
)


def texts_of(topics, seed=0):
    """A sentence per topic number: half of the topic's words, a number that no other text has, and filler."""
    rng = np.random.default_rng(seed)
    chosen = [rng.permutation(TOPICS[topic].split())[:4] for topic in topics]
    return np.array([f"{' '.join(words)} here w{place}" for place, words in enumerate(chosen)], dtype=object)


def test_sentences_are_free_text_and_choices_names_and_numbers_are_not():
    sentences = texts_of([0, 1, 2] * 20)
    assert is_free_text(sentences)
    assert is_free_text(np.array([*sentences[:50], None, None], dtype=object)), "missing cells do not count"
    assert not is_free_text(sentences[:30]), "as few different values as a choice may have"
    assert not is_free_text(np.array([f"town of {number}" for number in range(60)], dtype=object))
    assert not is_free_text(np.arange(60.0))


def test_texts_with_the_same_words_are_near():
    """The nearest neighbour by cosine is about the same topic, also for texts from which no words were learned."""
    topics = np.array([0, 1, 2] * 40)
    x = encode_text(texts_of(topics), np.arange(90))
    directions = x / np.linalg.norm(x, axis=1, keepdims=True)
    nearest = (directions[90:] @ directions[:90].T).argmax(axis=1)
    np.testing.assert_array_equal(topics[nearest], topics[90:])


def test_lengths_are_by_words_alone():
    """A text that is repeated has the same direction; one whose words were never seen, or without words, is 0."""
    texts = texts_of([0, 1, 2] * 20)
    new = np.array([f"{texts[0]} {texts[0]}", "zzz yyy", "", None, "? !"], dtype=object)
    x = encode_text(np.concatenate([texts, new]), np.arange(60))
    assert x.shape == (65, DIRECTIONS)
    np.testing.assert_allclose(np.linalg.norm(x[:60], axis=1), DIRECTIONS**0.5, rtol=0.05)
    np.testing.assert_allclose(x[60], x[0], atol=0.05 * DIRECTIONS**0.5)
    np.testing.assert_array_equal(x[61:], np.zeros((4, DIRECTIONS)))


def test_few_short_texts_have_few_directions():
    texts = np.array(["red hat", "blue hat", "red sea", "blue sea"], dtype=object)
    x = encode_text(texts, np.arange(4))
    assert np.isfinite(x).all()
    assert (np.abs(x).sum(axis=0) > 1e-6).sum() <= 4
    np.testing.assert_array_equal(encode_text(np.array(["?", None], dtype=object), np.arange(2)), 0)


def test_only_training_rows_decide():
    texts = texts_of([0, 1, 2] * 20)
    other = texts.copy()
    other[40:] = "words that nobody has ever seen before"
    train = np.arange(40)
    np.testing.assert_allclose(encode_text(texts, train)[:40], encode_text(other, train)[:40], atol=1e-9)


def test_text_comes_after_numbers_and_choices():
    texts = texts_of([0, 1, 2] * 20)
    size, colour = np.arange(60.0) / 7, np.array(["red", "blue"] * 30, dtype=object)
    columns = {"note": texts, "colour": colour, "size": size}
    assert list(choose_useful(columns, pytest.fail)) == ["note", "colour", "size"]
    x = encode(columns, torch.arange(60))
    assert x.shape == (60, 1 + 2 + DIRECTIONS)
    assert_close(x[:, :3], encode({"colour": colour, "size": size}, torch.arange(60)))


def test_a_table_with_comments_brings_a_line(tmp_path):
    frame = pd.DataFrame({"late": [0, 1, 1] * 20, "comment": texts_of([0, 1, 2] * 20)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(table.TableRemark, match="Column 'comment' holds free text: 64 numbers stand for the words"):
        examples = table.load(tmp_path / "t.csv", main="late", aux=[])
    assert examples.inputs(torch.arange(60)).shape == (60, DIRECTIONS)
