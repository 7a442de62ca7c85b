"""One rule for every kind of value, whatever it arrives as."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pfnts.contexts import Schema
from pfnts.contexts.values import MISSING_TEXTS, category, days

NOTHING = [
    None,
    float("nan"),
    np.float32("nan"),
    pd.NA,
    pd.NaT,
    np.datetime64("NaT"),
    Decimal("NaN"),
    Decimal("sNaN"),
]


def encoded(kind: Any, value: Any) -> list[float]:
    return Schema.of({"x": kind}).encode({"x": value})[0].tolist()


@pytest.mark.parametrize("missing", [*NOTHING, *sorted(MISSING_TEXTS), "  "], ids=repr)
def test_missing_is_nan_in_a_column_of_any_kind(missing: Any) -> None:
    for kind in ("numeric", "boolean", "date", ["a", "b"]):
        assert all(math.isnan(value) for value in encoded(kind, missing))
    schema = Schema.infer([{"x": 1.5}, {"x": missing}])
    assert schema.columns[0].kind == "numeric"
    assert Schema.infer({"x": "a"}).extended({"x": missing}).columns[0].categories == ("a",)


def test_a_missing_text_that_the_schema_lists_is_a_category() -> None:
    assert encoded(["EU", "NA"], "NA") == [0, 1]
    assert all(math.isnan(value) for value in encoded(["EU", "NA"], None))


@pytest.mark.parametrize(
    "three",
    [3, 3.0, "3", "3.0", " 3 ", np.int8(3), np.float32(3), np.uint64(3), Decimal("3.00"), Fraction(3)],
    ids=repr,
)
def test_integers_that_became_floats_or_texts_are_the_same_category(three: Any) -> None:
    assert encoded([1, 2, 3], three) == [0, 0, 1]
    assert encoded(["1", "2", "3"], three) == [0, 0, 1]
    assert encoded([1.0, 2.0, three], 3) == [0, 0, 1]


def test_pandas_integers_that_became_floats_take_no_second_place() -> None:
    schema = Schema.infer(pd.DataFrame({"clinic": pd.Categorical([1, 2])}))
    later = pd.DataFrame({"clinic": [1, None, 2]})
    assert later["clinic"].dtype == float
    assert schema.extended(later) == schema
    np.testing.assert_array_equal(schema.encode(later)[[0, 2], :2], np.eye(2))


@pytest.mark.parametrize(
    ("one", "other"),
    [("007", 7), ("1.10", 1.1), (True, 1), ("1e3", 1000), ("A", "a"), (2**60 + 1, float(2**60))],
)
def test_other_values_are_other_categories(one: Any, other: Any) -> None:
    assert category(one) != category(other)


@pytest.mark.parametrize("true", [True, np.True_, 1, 1.0, "true", "True", "TRUE", " true", "1"], ids=repr)
def test_truth(true: Any) -> None:
    assert encoded("boolean", true) == [1]


def test_truth_is_a_category_of_its_own() -> None:
    for true in (True, np.True_, "true", "True", "TRUE"):
        assert encoded([False, True, 1], true) == [0, 1, 0]
    assert encoded([False, True, 1], 1.0) == [0, 0, 1]


@pytest.mark.parametrize(
    "noon",
    [
        datetime(2026, 3, 1, 12),
        datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        pd.Timestamp("2026-03-01 12:00"),
        pd.Timestamp("2026-03-01 13:00", tz="Europe/Berlin"),
        np.datetime64("2026-03-01T12:00:00.000000000"),
        np.datetime64("2026-03-01T12"),
        "2026-03-01T12:00",
        "2026/03/01 12:00",
        "2026-03-01 12:00:00.000000000",
        "2026-03-01T12:00:00Z",
        "2026-03-01T14:00+02:00",
    ],
    ids=repr,
)
def test_a_moment_is_its_number_of_days_since_1970(noon: Any) -> None:
    expected = (date(2026, 3, 1) - date(1970, 1, 1)).days + 0.5
    assert Schema.infer({"x": noon}).encode({"x": noon}).tolist() == [[expected]]
    frame = pd.DataFrame({"x": [noon, None]})
    assert Schema.infer(frame).columns[0].kind == "date"
    np.testing.assert_array_equal(Schema.infer(frame).encode(frame), [[expected], [np.nan]])


@pytest.mark.parametrize(
    "text",
    [
        "2026-13-01",
        "2026/13/01",
        "2026-03/01",
        "2026/3/1",
        "2026-03",
        "20260301",
        "01.03.2026",
        "2026-03-01x",
        "12:00",
    ],
)
def test_other_texts_are_no_dates(text: str) -> None:
    assert days(text) is None
    with pytest.raises(ValueError, match=f"'x' must be date, got {text!r}"):
        encoded("date", text)


def test_days_before_1970_and_of_every_year_are_exact() -> None:
    assert days(date(1, 1, 1)) == -719162
    assert days(datetime(1969, 12, 31, 18, tzinfo=UTC)) == -0.25


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"1", "decode it to a text"),
        (1j, "real and its imaginary part"),
        (np.complex64(1), "real and its imaginary part"),
        (time(8, 30), "give the hour"),
        (timedelta(days=1), "give its length as a number"),
        (np.timedelta64(1, "D"), "give its length as a number"),
        (pd.Timedelta(1), "give its length as a number"),
        (pd.Period("2026-03"), "turn it into a number, a text or a date"),
        (pd.Interval(0, 1), "turn it into a number, a text or a date"),
        (np.datetime64("300000-01-01"), "turn it into a number, a text or a date"),
        ([1, 2], "several contexts are a list of mappings"),
        ({"a": 1}, "several contexts are a list of mappings"),
        (np.ones(2), "several contexts are a list of mappings"),
        (object(), "turn it into a number, a text or a date"),
    ],
)
def test_what_no_column_can_hold_is_refused_with_a_remedy(value: Any, words: str) -> None:
    for kind in ("numeric", "boolean", "date", ["a", "b"]):
        with pytest.raises(ValueError, match=f"column 'x' must be .*{words}"):
            encoded(kind, value)
    with pytest.raises(ValueError, match=f"column 'x' must be a number, a boolean, .*, got .*{words}"):
        Schema.infer({"x": value})


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, "inf", "1e999", 10**400, -(10**5000), Decimal("1e999")], ids=range(7)
)
def test_infinite_is_not_missing(value: Any) -> None:
    with pytest.raises(ValueError, match=r"'x' must be finite or missing .*; clip or drop the value"):
        encoded("numeric", value)


@pytest.mark.parametrize("text", ["old", "1_000", "\N{ARABIC-INDIC DIGIT ONE}", "0x10", "1,5", "true"])
def test_texts_that_are_no_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="'x' must be numeric, got"):
        encoded("numeric", text)


def test_texts_are_numbers_where_the_schema_says_so_and_categories_otherwise() -> None:
    assert encoded("numeric", " 1.5") == [1.5]
    assert Schema.infer({"x": "1.5"}).columns[0].kind == "categorical"
