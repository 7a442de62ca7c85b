from __future__ import annotations

import json
import warnings
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfnts.contexts import Column, IdColumnWarning, Schema, UnseenCategoryWarning, read
from pfnts.contexts.codes import code
from pfnts.contexts.schema import Rows

RECORD = {"age": 41.0, "visits": 3, "vip": True, "plan": "paid"}
SCHEMA = Schema.of({"age": "numeric", "visits": "numeric", "vip": "boolean", "plan": ["free", "paid"]})


def test_plain_arrays_pass_through_as_copies() -> None:
    X = np.arange(6.0).reshape(3, 2)
    schema = Schema.infer(X)
    encoded = schema.encode(X)
    np.testing.assert_array_equal(encoded, X)
    encoded[0, 0] = 99
    assert X[0, 0] == 0
    assert schema == Schema.of({"0": "numeric", "1": "numeric"})
    np.testing.assert_array_equal(schema.encode(X.astype(np.float32)), X)
    np.testing.assert_array_equal(schema.encode(X.astype(int)), X)
    np.testing.assert_array_equal(schema.encode(X[0].tolist()), X[:1])


def test_kinds_are_inferred_from_values() -> None:
    frame = pd.DataFrame(
        {
            "number": [1, 2],
            "flag": [True, False],
            "word": ["x", "y"],
            "code": pd.Categorical([1, 2]),
            "nothing": [None, None],
            "maybe": [None, True],
            "when": ["2026-03-01", None],
            "gaps": [1.5, "NA"],
        }
    )
    kinds = {column.name: column.kind for column in Schema.infer(frame).columns}
    assert kinds == {
        "number": "numeric",
        "flag": "boolean",
        "word": "categorical",
        "code": "categorical",
        "nothing": "any",
        "maybe": "boolean",
        "when": "date",
        "gaps": "numeric",
    }
    alike = ["number", "flag", "word"]
    assert Schema.infer(pl.from_pandas(frame[alike])) == Schema.infer(frame[alike])


def test_categories_take_free_places_as_they_appear_and_the_width_stays() -> None:
    schema = Schema.infer({"plan": "free"})
    for i, plan in enumerate(["free", "paid", *(f"trial {i}" for i in range(6))]):
        schema = schema.extended({"plan": plan})
        np.testing.assert_array_equal(schema.encode({"plan": plan}), np.eye(8)[[i]])


def test_a_category_beyond_the_places_is_zeros_and_warned_of_once_per_column() -> None:
    schema = Schema.of({"plan": ["free", "paid"]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for plan in ("gold", "silver", "bronze"):
            assert schema.extended({"plan": plan}) is schema
            np.testing.assert_array_equal(schema.encode({"plan": plan}), [[0, 0]])
    assert [warning.category for warning in caught] == [UnseenCategoryWarning]
    assert caught[0].filename == __file__
    assert "column 'plan' has met a category beyond its 2 places" in str(caught[0].message)


def test_an_inferred_column_keeps_places_for_what_its_first_batch_did_not_show() -> None:
    schema = Schema.infer([{"plan": f"plan {i % 12}"} for i in range(60)])
    extended = schema.extended([{"plan": "new"}])
    assert extended.width == schema.width > 12
    assert extended.encode({"plan": "new"}).sum() == 1


def test_encoding_and_extending_change_nothing() -> None:
    schema = Schema.infer({"plan": "free"})
    before = schema.to_json()
    schema.extended({"plan": "paid"}).encode({"plan": "paid"})
    with pytest.raises(ValueError, match="must be a category"):
        schema.extended([{"plan": "gold"}, {"plan": b"x"}]).encode([{"plan": "gold"}, {"plan": b"x"}])
    np.testing.assert_array_equal(schema.encode({"plan": "paid"}), np.zeros((1, 8)))
    assert schema.to_json() == before


def test_a_batch_gives_places_in_the_order_of_its_rows() -> None:
    plans = ["free", "paid", "free", "trial"]
    together = Schema.infer({"plan": "free"}).extended([{"plan": plan} for plan in plans])
    singly = Schema.infer({"plan": "free"})
    for plan in plans:
        singly = singly.extended(read({"plan": plan}))
    assert together == singly


def test_an_id_column_is_named_in_a_warning_unless_it_is_declared() -> None:
    frame = pd.DataFrame({"age": range(30), "user": [f"u{i}" for i in range(30)]})
    with pytest.warns(IdColumnWarning, match=r"columns \['user'\] look like ids: .* in schema=") as caught:
        schema = Schema.infer(frame)
    assert len(caught) == 1
    assert schema.width == 33
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Schema.infer(frame.head(19))  # too few rows to say
        Schema.infer(pd.DataFrame({"city": [f"c{i % 300}" for i in range(900)]}))
        Schema.of({"age": "numeric", "user": frame["user"].tolist()}).encode(frame)


def cities(count: int) -> list[dict[str, str]]:
    return [{"city": f"c{i % count}"} for i in range(3 * count)]


@pytest.mark.parametrize("count", [9, 30, 33, 64, 65, 300, 3000])
def test_any_number_of_categories_is_told_apart(count: int) -> None:
    schema = Schema.infer(cities(count))
    assert schema.width == min(max(8, count + 4), 32)
    rows = schema.encode(cities(count))
    assert len(np.unique(rows, axis=0)) == count
    np.testing.assert_array_equal(rows[:count], rows[count : 2 * count])
    np.testing.assert_array_equal(schema.closed().encode(cities(count)).sum(1).round(9), rows.sum(1).round(9))
    assert Schema.from_json(schema.to_json()) == schema
    declared = Schema.of({"city": [f"c{i}" for i in range(count)]})
    assert declared.width == min(count, 32)
    assert len(np.unique(declared.encode(cities(count)), axis=0)) == count


def test_the_most_frequent_categories_have_places() -> None:
    rows = [{"city": f"c{i}"} for i in range(100) for _ in range(2 + 3 * (i >= 68))]
    assert set(Schema.infer(rows).columns[0].categories) == {f"c{i}" for i in range(68, 100)}


def test_codes_follow_from_the_text_alone_and_are_nearly_uncorrelated() -> None:
    # Digits of shake_128 of the text in UTF-8; the same in every process.
    digits = np.array([35701, 63402, 30464, 30763, 44164, 41624, 43137, 25366])
    np.testing.assert_allclose(code("São Paulo", 8), (digits - 32767.5) / 65536 * 1.5**0.5, rtol=1e-12)
    codes = np.array([code(f"c{i}", 32) for i in range(2000)])
    assert abs(codes.mean()) < 0.005
    np.testing.assert_allclose((codes**2).sum(1).mean(), 1, atol=0.02)
    inner = codes @ codes.T - np.diag((codes**2).sum(1))
    np.testing.assert_allclose(inner.std(), 32**-0.5, rtol=0.05)


def test_categories_without_a_place_are_visible() -> None:
    schema = Schema.of({"plan": ["free", "paid"], "city": "categorical", "age": "numeric"})
    rows = [
        {"plan": plan, "city": city, "age": 1} for plan, city in (("free", "x"), ("gold", "y"), (None, "x"))
    ]
    assert schema.unplaced(rows) == {"plan": ["gold"]}
    assert schema.unplaced(rows[0]) == {}
    many = [{"plan": "free", "city": f"c{i}", "age": 1} for i in range(18)]
    assert schema.unplaced(many) == {"city": ["c16", "c17"]}
    full = schema.extended(many)
    assert full.unplaced(many) == {"city": ["c16", "c17"]}
    with pytest.warns(
        UnseenCategoryWarning, match="'city' has met a category beyond its 16 places; all such"
    ):
        codes = full.encode(many[16:])[:, 2:18]
    np.testing.assert_array_equal(codes, [code("c16", 16), code("c17", 16)])


def test_a_column_that_was_missing_at_first_takes_numbers_dates_and_texts() -> None:
    for first in (None, float("nan"), "", pd.NaT):
        schema = Schema.infer({"seen": first, "age": 3})
        assert [column.kind for column in schema.columns] == ["any", "numeric"]
        for value, expected in (
            (datetime(2026, 3, 1, 12), 20513.5),
            ("2026-03-01T12:00", 20513.5),
            (pd.Timestamp("2026-03-01 12:00"), 20513.5),
            (True, 1),
            (7, 7),
            ("7.5", 7.5),
            ("north", code("north", 1)[0]),
            (None, np.nan),
        ):
            np.testing.assert_array_equal(
                schema.extended({"seen": value, "age": 3}).encode({"seen": value, "age": 3}), [[expected, 3]]
            )
        assert Schema.from_json(schema.to_json()) == schema
        with pytest.raises(ValueError, match=r"'seen' must be a number, .*; decode it to a text"):
            schema.encode({"seen": b"x", "age": 3})
    empty = pd.DataFrame({"seen": pd.Series([pd.NaT, pd.NaT]), "age": [1, 2]})
    later = empty.assign(seen=pd.Timestamp("2026-03-01"))
    assert Schema.infer(empty).encode(later)[:, 0].tolist() == [20513, 20513]


@pytest.mark.parametrize("size", [1.1e100, 1e155, 1e308, -1e200])
def test_numbers_whose_squares_overflow_are_refused_but_replayed(size: float) -> None:
    rule = r"must be at most 1e\+100 in size or missing .*; clip or drop the value"
    schema = Schema.of({"age": "numeric", "plan": ["free"]})
    rows = [{"age": 1.0, "plan": "free"}, {"age": size, "plan": "free"}]
    with pytest.raises(ValueError, match=f"row 2: context column 'age' {rule}"):
        schema.encode(rows)
    with pytest.raises(ValueError, match=f"context column 'age' {rule}"):
        Rows.of(rows[1], schema)
    floats = Schema.infer(np.ones(2))
    with pytest.raises(ValueError, match=f"row 2: context column '1' {rule}"):
        floats.encode(np.array([[1.0, np.nan], [2.0, size]]))
    with pytest.raises(ValueError, match=f"context column '0' {rule}"):
        Rows.of(np.array([size, 1.0]), floats)
    # A log of an earlier version may hold such a number.
    assert schema.learn(read(rows))[0][1, 0] == size
    assert schema.encode({"age": 1e100, "plan": None})[0, 0] == 1e100


@pytest.mark.parametrize("context", [[1.0, 2.0], np.array([1.0, 2.0]), np.ones((3, 2)), [(1, 2)]])
def test_values_without_names_do_not_fit_named_columns(context: Any) -> None:
    for schema in (Schema.infer({"a": 1.0, "b": 2.0}), Schema.of({"a": "numeric", "b": "numeric"})):
        with pytest.raises(ValueError, match=r"must name its columns, which are \['a', 'b'\], got 2 values"):
            schema.encode(context)
    assert Schema.of({"0": "numeric", "1": "numeric"}).encode(context).shape[1] == 2


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (
            {"age": 41.0},
            r"the 4 columns .*, it lacks \['visits', 'vip', 'plan'\]: give None for a missing value$",
        ),
        (
            {**RECORD, "x": 1},
            r"the 4 columns .*, unknown are \['x'\]: leave them out, or declare .* schema=$",
        ),
        (
            {"age": 41.0, "visit": 3, "vip": True, "plan": "paid"},
            r"it lacks \['visits'\]: .*; unknown are \['visit'\]: .*; 'visit' may be meant for 'visits'$",
        ),
        ({}, r"must have the 4 columns .*, it lacks \['age', 'visits', 'vip', 'plan'\]"),
        ({**RECORD, "age": "old"}, "'age' must be numeric, got 'old'"),
        ({**RECORD, "age": date(2026, 3, 1)}, "'age' must be numeric, .* declare the column as \"date\""),
        ({**RECORD, "vip": 3}, "'vip' must be true, false or missing"),
        ([RECORD, {**RECORD, "age": np.inf}], "row 2: context column 'age' must be finite or missing"),
        ({**RECORD, "age": 10**400}, "'age' must be finite or missing"),
        ({**RECORD, "age": 10**5000}, "'age' must be finite or missing"),
        (np.ones(3), "must name its columns"),
        (np.ones((2, 2, 2)), "one row .* or a matrix"),
        (np.float64(3), "one row .* or a matrix"),
        ("words", "must be a mapping"),
        (3.0, "must be a mapping"),
        ([{"age": 1.0}, {"old": 1.0}], r"must all have the keys \['age'\], row 2 is"),
        ([[1.0, 2.0], [1.0]], "must all have one length"),
    ],
)
def test_errors_name_the_column_and_the_rule(context: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SCHEMA.encode(context)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (
            [{"mixed": 1}, {"mixed": "one"}],
            "must hold values of one kind, got categorical and numeric: 1, 'one'",
        ),
        ([{"mixed": date(2026, 3, 1)}, {"mixed": "soon"}], "of one kind, got categorical and date"),
        (np.empty((0, 2)), "at least one row"),
        ({}, "at least one row and one column"),
        ([], "at least one row and one column"),
        ({"x": [1, 2, 3]}, "'x' must be a number, .*; several contexts are a list of mappings"),
    ],
)
def test_what_cannot_be_inferred_is_an_error(context: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Schema.infer(context)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Column("x", "ordinal"), "kind of column 'x'"),  # type: ignore[arg-type]
        (lambda: Column("x", "categorical", ("a", "a"), 2), "must be distinct"),
        (lambda: Column("x", "categorical", ("a", "b"), 1), "slots of column 'x'"),
        (lambda: Column("x", "categorical", ("a", "b"), 10**9), "slots of column 'x'"),
        (lambda: Schema((Column("x", "numeric"), Column("x", "numeric"))), "distinct column names"),
        (lambda: Schema(()), "at least one column"),
        (lambda: Schema.of(["x"]), r"schema must be a mapping .*, got \['x'\]"),  # type: ignore[arg-type]
        (lambda: Schema.of("numeric"), "schema must be a mapping"),  # type: ignore[arg-type]
        (lambda: Schema.of({}), "schema must be a mapping"),
        (lambda: Schema.of({"x": None}), "column 'x' a kind .* or the list of its categories, got None"),
        (lambda: Schema.of({"x": []}), r"or the list of its categories, got \[\]"),
        (lambda: Schema.of({"x": {"a", "b"}}), "or the list of its categories, got "),
        (lambda: Schema.of({"x": ["a", None]}), "categories of column 'x' must be texts, .*, got None"),
        (lambda: Schema.of({"x": [1, 1.0]}), "categories of column 'x' must be distinct"),
        (lambda: Schema.of({1: "numeric", "1": "numeric"}), "distinct column names"),
    ],
)
def test_impossible_schemas_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["numeric", "boolean", "date"]), st.just(())),
            st.tuples(st.just("categorical"), st.lists(st.text(), unique=True).map(tuple)),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_json_brings_a_schema_back(columns: list[Any]) -> None:
    schema = Schema(
        tuple(
            Column(f"c{j}", kind, categories, max(1, len(categories)))
            for j, (kind, categories) in enumerate(columns)
        )
    )
    assert Schema.from_json(schema.to_json()) == schema
    assert schema.width == len(schema.features)


def test_a_schema_of_version_0_2_is_read() -> None:
    written = (
        '[{"name": "age", "kind": "numeric", "categories": [], "slots": 1}, '
        '{"name": "clinic", "kind": "categorical", "categories": ["1", "True", "nan"], "slots": 70}]'
    )
    schema = Schema.from_json(written)
    assert schema.to_json() == written
    for value, place in ((1, 0), (1.0, 0), ("1.0", 0), (True, 1), ("nan", 2)):
        row = [[3, *np.eye(70)[place]]]
        np.testing.assert_array_equal(schema.encode({"age": 3, "clinic": value}), row)


COLUMN = {"name": "a", "kind": "categorical", "categories": ["x"], "slots": 2}


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "null",
        "3",
        "[]",
        "[1]",
        '"columns"',
        "[" * 100_000,
        json.dumps([{**COLUMN, "slots": 10**9}]),
        json.dumps([{**COLUMN, "slots": 1e9}]),
        json.dumps([{**COLUMN, "slots": True}]),
        json.dumps([{**COLUMN, "slots": None}]),
        json.dumps([{**COLUMN, "categories": None}]),
        json.dumps([{**COLUMN, "categories": [["x"]]}]),
        json.dumps([{**COLUMN, "kind": "numeric"}]),
        json.dumps([{**COLUMN, "kind": {}}]),
        json.dumps([{**COLUMN, "name": None}]),
        json.dumps([COLUMN, COLUMN]),
        json.dumps([{"name": "a"}]),
        json.dumps([{**COLUMN, "name": str(j), "slots": 9_999} for j in range(11)]),
        json.dumps(
            [{"name": str(j), "kind": "numeric", "categories": [], "slots": 1} for j in range(100_001)]
        ),
    ],
    ids=range(20),
)
def test_a_forged_schema_is_one_clear_error(forged: str) -> None:
    with pytest.raises(ValueError, match="schema must be JSON as to_json writes it"):
        Schema.from_json(forged)
