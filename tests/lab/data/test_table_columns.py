"""Numbers, text and dates, however they are written."""

import math
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest

from arml.lab.data.table_columns import describe_readings, is_date, is_text, plain_cells

NAN = math.nan
WRITTEN = {
    "thousands": (["12,345", "1,234,567", "80"], ",", [12345, 1234567, 80], "'1,234,567' is read as 1234567"),
    "thousands and decimals": (["1,234.5", "6.25"], ",", [1234.5, 6.25], "'1,234.5' is read as 1234.5"),
    "decimal commas": (["1,5", "2,25", "3"], ";", [1.5, 2.25, 3], "'1,5' is read as 1.5"),
    "decimal commas in quotes": (["1,5", "2,25"], ",", [1.5, 2.25], "'1,5' is read as 1.5"),
    "points as thousands": (["1.234,5", "2.000.000"], ";", [1234.5, 2e6], "'1.234,5' is read as 1234.5"),
    "three decimals": (["1,234", "5,678"], ";", [1.234, 5.678], "'1,234' is read as 1.234"),
    "thousands for sure": (["1,234", "5.5"], ";", [1234, 5.5], "'1,234' is read as 1234"),
    "percent": (["12 %", "3.5%"], ",", [12, 3.5], "'12 %' is read as 12"),
    "money": (["$1,200", "$ 15"], ",", [15, 1200][::-1], "'$ 15' is read as 15"),
    "spaces": (["12 345", "6"], ",", [12345, 6], "'12 345' is read as 12345"),
    "marks of gaps": (["1", "?", "2.5", "-"], ",", [1, NAN, 2.5, NAN], "'-', '?' is read as missing"),
    "minus": (["-1,5", "+2,5"], ";", [-1.5, 2.5], "'+2,5' is read as 2.5"),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_numbers_may_be_written_in_many_ways(case):
    texts, separator, numbers, line = WRITTEN[case]
    readings = []
    found = plain_cells(pd.Series([*texts, None], name="c"), readings.append, separator=separator)
    np.testing.assert_allclose(found, [*numbers, NAN])
    assert describe_readings(readings) == [f"Column 'c' holds numbers: {line}."]


TEXTS = {
    "words": ["a", "b"],
    "digits": ["10", "9"],
    "some digits": ["10", "a", "b"],
    "versions": ["1.2.3", "1.2.4"],
    "marks alone": ["-", "?"],
    "dates and others": ["2020-01-01", "never"],
    "lists": ["1,2", "1,2,3", "x"],
}


@pytest.mark.parametrize("case", TEXTS)
def test_other_texts_stay_texts(case):
    lines = []
    found = plain_cells(pd.Series(TEXTS[case], name="c"), lines.append)
    assert is_text(found)
    assert found.tolist() == TEXTS[case]
    assert not lines


DATES = {
    "ISO": ["2020-02-29", "2020-03-01"],
    "with times": ["2020-02-29T10:00:00", "2020-03-01 11:30"],
    "points": ["29.2.2020", "1.3.2020"],
    "month first": ["02/29/2020", "03/01/2020"],
    "day first": ["29/02/2020", "01/03/2020"],
    "objects": [date(2020, 2, 29), date(2020, 3, 1)],
    "stamps": [pd.Timestamp(2020, 2, 29), pd.Timestamp(2020, 3, 1)],
    "months": pd.PeriodIndex(["2020-02", "2020-03"], freq="M"),
}


@pytest.mark.parametrize("case", DATES)
def test_dates_may_be_written_in_many_ways(case):
    found = plain_cells(pd.Series(DATES[case], name="c"), lambda _: None)
    assert is_date(found)
    assert found.astype("datetime64[M]").astype(str).tolist() == ["2020-02", "2020-03"]


def test_missing_dates_are_missing_and_durations_are_seconds():
    found = plain_cells(pd.Series(["2020-02-29", None], name="c"), lambda _: None)
    assert np.isnat(found).tolist() == [False, True]
    durations = pd.Series([timedelta(minutes=1), timedelta(days=1)], name="c")
    assert plain_cells(durations, lambda _: None).tolist() == [60, 86_400]
