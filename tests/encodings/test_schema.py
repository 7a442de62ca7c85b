from __future__ import annotations

import datetime
import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pfnts.encodings import Column, Schema
from pfnts.encodings.contexts import read

RECORD = {"age": 41.0, "visits": 3, "vip": True, "plan": "paid"}
SCHEMA = Schema.of({"age": "numeric", "visits": "numeric", "vip": "boolean", "plan": ["free", "paid"]})
ENCODED = [[41.0, 3.0, 1.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("context", "single"),
    [
        (RECORD, True),
        (dict(reversed(RECORD.items())), True),
        ([RECORD], False),
        (pd.Series(RECORD), True),
        (pd.DataFrame([RECORD]).iloc[0], True),
        (pd.DataFrame([RECORD]), False),
        (pl.DataFrame([RECORD]), False),
        (pl.DataFrame([RECORD]).row(0, named=True), True),
        (pl.DataFrame([RECORD]).row(0), True),
        (tuple(RECORD.values()), True),
        ([list(RECORD.values())], False),
        (np.array(list(RECORD.values()), dtype=object), True),
        (pd.DataFrame([RECORD]).astype({"plan": "category", "visits": "Int64"}), False),
        (pl.DataFrame([RECORD]).with_columns(pl.col("plan").cast(pl.Categorical)), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_container_gives_the_same_floats(context: Any, single: bool) -> None:
    np.testing.assert_array_equal(SCHEMA.encode(context), ENCODED)
    assert read(context).single is single


@pytest.mark.parametrize(
    "context",
    [
        {"age": None, "visits": None, "vip": None, "plan": None},
        {"age": np.nan, "visits": pd.NA, "vip": np.nan, "plan": pd.NaT},
        pd.DataFrame({"age": [np.nan], "visits": [pd.NA], "vip": [None], "plan": [None]}),
        pd.DataFrame({"age": [None], "visits": pd.array([pd.NA], "Int64"), "vip": [None], "plan": [np.nan]}),
        pl.DataFrame({"age": [None], "visits": [None], "vip": [None], "plan": [None]}),
    ],
    ids=["none", "nan", "pandas", "pandas nullable", "polars"],
)
def test_missing_values_are_nan_in_every_place(context: Any) -> None:
    np.testing.assert_array_equal(SCHEMA.encode(context), np.full((1, 5), np.nan))


def test_plain_arrays_pass_through_as_copies() -> None:
    X = np.arange(6.0).reshape(3, 2)
    schema = Schema.infer(X)
    encoded = schema.encode(X)
    np.testing.assert_array_equal(encoded, X)
    encoded[0, 0] = 99
    assert X[0, 0] == 0
    assert schema == Schema.numeric(2)
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
        }
    )
    kinds = {column.name: column.kind for column in Schema.infer(frame).columns}
    assert kinds == {
        "number": "numeric",
        "flag": "boolean",
        "word": "categorical",
        "code": "categorical",
        "nothing": "numeric",
        "maybe": "boolean",
    }
    assert Schema.infer(pl.from_pandas(frame[["number", "flag", "word"]])) == Schema.infer(
        frame[["number", "flag", "word"]]
    )


def test_categories_take_free_places_as_they_appear_and_the_width_stays() -> None:
    schema = Schema.infer({"plan": "free"})
    for i, plan in enumerate(["free", "paid", *(f"trial {i}" for i in range(10))]):
        schema = schema.extended(read({"plan": plan}))
        encoded = schema.encode({"plan": plan})
        assert encoded.shape == (1, 8)
        expected = np.zeros(8)
        if i < 8:
            expected[i] = 1
        np.testing.assert_array_equal(encoded[0], expected)


def test_a_batch_gives_places_in_the_order_of_its_rows() -> None:
    plans = ["free", "paid", "free", "trial"]
    together = Schema.infer({"plan": "free"}).extended(read([{"plan": plan} for plan in plans]))
    singly = Schema.infer({"plan": "free"})
    for plan in plans:
        singly = singly.extended(read({"plan": plan}))
    assert together == singly


def test_unseen_category_of_a_given_list_is_all_zeros() -> None:
    schema = SCHEMA.extended(read({**RECORD, "plan": "unheard of"}))
    assert schema is SCHEMA
    np.testing.assert_array_equal(schema.encode({**RECORD, "plan": "unheard of"})[0, 3:], [0, 0])


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"age": 41.0}, "must have the 4 features"),
        ({**RECORD, "extra": 1}, "must have the 4 features"),
        ({**RECORD, "age": "old"}, "'age' must be numeric, got 'old'"),
        ({**RECORD, "vip": 3}, "'vip' must be true, false or missing"),
        ({**RECORD, "age": np.inf}, "finite or missing .* 'age'"),
        (np.ones(3), "must have the 4 features"),
        (np.ones((2, 2, 2)), "one row .* or a matrix"),
        (np.float64(3), "one row .* or a matrix"),
        ("words", "must be a numpy row"),
        (3.0, "must be a numpy row"),
        ([{"age": 1.0}, {"old": 1.0}], "must all have the keys"),
        ([[1.0, 2.0], [1.0]], "must all have one length"),
    ],
)
def test_errors_name_the_column_and_the_rule(context: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SCHEMA.encode(context)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({"when": datetime.date(2025, 1, 1)}, "holds dates"),
        ([{"mixed": 1}, {"mixed": "one"}], "numbers or categories, got both"),
        (np.empty((0, 2)), "at least one row"),
        ({}, "at least one column"),
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
        (lambda: Schema((Column("x", "numeric"), Column("x", "numeric"))), "distinct names"),
    ],
)
def test_impossible_schemas_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("numeric"), st.just(())),
            st.tuples(st.just("boolean"), st.just(())),
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
    assert json.loads(schema.to_json())
    assert schema.width == len(schema.features)


def test_a_mapping_of_lists_is_not_taken_for_one_context() -> None:
    with pytest.raises(
        ValueError, match="context 'x' must be one value, got a list of 3; several contexts are"
    ):
        read({"x": [1, 2, 3]})
