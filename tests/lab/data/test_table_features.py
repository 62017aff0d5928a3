"""Which columns are of use, and what the network sees of them."""

import numpy as np
import pandas as pd
import pytest
import torch

from arml.lab.data import table
from arml.lab.data.table_features import choose_useful, encode, expand_dates, remark_giveaways
from arml.lab.data.targets import Target

ROWS = 200


def find_left_out(**columns):
    lines = []
    useful = choose_useful({name: np.array(column) for name, column in columns.items()}, lines.append)
    return set(columns) - set(useful), lines


def test_identifiers_are_left_out_and_measurements_are_not():
    rng = np.random.default_rng(0)
    left, lines = find_left_out(
        row=np.arange(ROWS, dtype=float),
        customer_id=rng.permutation(10 * ROWS)[:ROWS].astype(float),
        price=rng.permutation(10 * ROWS)[:ROWS].astype(float),
        size=rng.normal(size=ROWS),
        width=rng.integers(5, size=ROWS).astype(float),
    )
    assert left == {"row", "customer_id"}
    assert lines == [
        "Columns 'row', 'customer_id': a different whole number in every row, left out. "
        "--features names the columns to learn from."
    ]


def test_short_tables_have_no_row_numbers():
    assert find_left_out(x=np.arange(19.0)) == (set(), [])


def test_names_are_left_out_and_categories_are_not():
    texts = [f"note {number // 1.5:g}" for number in range(ROWS)]
    towns = [f"town {number % 60}" for number in range(ROWS)]
    left, lines = find_left_out(note=np.array(texts, dtype=object), town=np.array(towns, dtype=object))
    assert left == {"note"}
    assert "Column 'note': a different text in most rows" in lines[0]


def test_a_long_list_of_names_is_cut():
    _, (line,) = find_left_out(**{f"c{number}": np.ones(30) for number in range(9)})
    assert line.startswith("Columns 'c0', 'c1', 'c2', 'c3', 'c4' and 4 more: one value only")


def test_text_never_becomes_hundreds_of_inputs():
    towns = np.array([f"town {min(number, 80)}" for number in range(ROWS)], dtype=object)
    x = encode({"town": towns}, torch.arange(100, ROWS))
    assert x.shape[1] == 1, "one town in the training rows"
    x = encode({"town": towns}, torch.arange(ROWS))
    assert x.shape[1] == 30
    assert x.sum(dim=1).tolist() == [1] * ROWS
    assert sorted(x.sum(dim=0).tolist())[-2:] == [52, 120]  # town 80, and the 52 towns that share an input


def test_dates_become_day_month_and_weekday_where_they_vary():
    days = np.array(["2024-02-28", "2024-02-29", "NaT", "2024-02-26"], dtype="datetime64[s]")
    lines = []
    found = expand_dates({"x": np.arange(4.0), "when": days}, lines.append)
    assert list(found) == ["x", "when (day)", "when (weekday)"], "all in February"
    np.testing.assert_array_equal(found["when (weekday)"], [2, 3, np.nan, 0])
    np.testing.assert_array_equal(np.diff(found["when (day)"])[0], 1)
    assert lines == ["Column 'when' holds dates: read as 'when (day)', 'when (weekday)'."]


def test_a_column_of_dates_is_a_feature(tmp_path):
    frame = pd.DataFrame({"m": [0, 1, 0, 1], "when": ["1.1.2020", "15.2.2021", "3.3.2022", "4.4.2020"]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(table.TableRemark, match="'when' holds dates"):
        assert table.load(tmp_path / "t.csv", main="m", aux=[]).inputs(torch.arange(4)).shape == (4, 3)


def test_many_texts_bring_a_line(tmp_path):
    frame = pd.DataFrame({"m": [0, 1] * 100, "town": [f"t{number % 40}" for number in range(200)]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(table.TableRemark, match="'town' has 40 different texts: the 29 most frequent become inputs"):
        assert table.load(tmp_path / "t.csv", main="m", aux=[]).inputs(torch.arange(200)).shape == (200, 30)


def find_giveaways(target, **columns):
    lines = []
    remark_giveaways({name: np.array(column) for name, column in columns.items()}, "sold", target, lines.append)
    return lines


def test_an_input_that_is_the_answer_in_other_words_is_named():
    answers = torch.arange(ROWS) % 2
    target = Target(torch.where(torch.arange(ROWS) < 150, answers.float(), torch.nan), ("no", "yes"))
    words = np.where(answers == 1, "out", "in").astype(object)
    nearly = words.copy()
    nearly[7] = "in"
    unlabelled = words.copy()
    unlabelled[180:] = "in"
    lines = find_giveaways(
        target,
        status=words,
        mostly=nearly,
        later=unlabelled,
        number=-answers.double().numpy(),
        row=np.arange(ROWS, dtype=float),
    )
    assert lines == [
        "Columns 'status', 'later', 'number': inputs, each of which tells 'sold' in every labelled row. If they are "
        "not known when predicting, the errors below are too good: make them tasks with --aux, or name the inputs with "
        "--features."
    ]
    (line,) = find_giveaways(target, status=words)
    assert line.startswith("Column 'status': an input that tells 'sold' in every labelled row. If it is not known")


def test_a_number_in_other_units_is_named_and_a_noisy_one_is_not():
    rng = np.random.default_rng(0)
    price = rng.normal(size=ROWS)
    missing = np.where(np.arange(ROWS) == 3, np.nan, price)
    found = find_giveaways(
        Target(torch.from_numpy(price)),
        cents=3 - 100 * price,
        near=price + 0.1,
        text=price.astype(str).astype(object),
        gap=missing,
        noisy=price + 0.01 * rng.normal(size=ROWS),
    )
    assert [line.split(":")[0] for line in found] == ["Columns 'cents', 'near'"]


def test_a_few_rows_prove_nothing():
    assert not find_giveaways(Target(torch.arange(10.0) % 2, ("no", "yes")), copy=np.arange(10.0) % 2)
