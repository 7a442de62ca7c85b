"""The same rows in every container encode to the same floats."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pfnts.contexts import Schema, Table, plain, read, read_file
from pfnts.contexts.schema import Rows

RECORD = {"age": 41.0, "visits": 3, "vip": True, "plan": "paid", "seen": date(2026, 3, 1)}
KINDS = {"age": "numeric", "visits": "numeric", "vip": "boolean", "plan": ["free", "paid"], "seen": "date"}
SCHEMA = Schema.of(KINDS)
ENCODED = [[41.0, 3.0, 1.0, 0.0, 1.0, 20513.0]]
POSITIONAL = Schema.of({str(j): kind for j, kind in enumerate(KINDS.values())})


@pytest.mark.parametrize(
    ("context", "single"),
    [
        (RECORD, True),
        (dict(reversed(RECORD.items())), True),
        ([RECORD], False),
        (pd.Series(RECORD), True),
        ([pd.Series(RECORD)], False),
        (pd.DataFrame([RECORD]).iloc[0], True),
        (pd.DataFrame([RECORD]), False),
        (pd.DataFrame([RECORD])[list(reversed(RECORD))], False),
        (pl.DataFrame([RECORD]), False),
        (pl.DataFrame([RECORD]).row(0, named=True), True),
        (pa.Table.from_pylist([RECORD]), False),
        (pd.DataFrame([RECORD]).astype({"plan": "category", "visits": "Int64"}), False),
        (pd.DataFrame([RECORD]).convert_dtypes(dtype_backend="pyarrow"), False),
        (pl.DataFrame([RECORD]).with_columns(pl.col("plan").cast(pl.Categorical)), False),
        (pl.DataFrame([RECORD]).with_columns(pl.col("visits").cast(pl.Decimal(10, 2))), False),
    ],
)
def test_named_containers(context: Any, single: bool) -> None:
    np.testing.assert_array_equal(SCHEMA.encode(context), ENCODED)
    assert read(context).single is single
    assert not read(context).positional


@pytest.mark.parametrize(
    ("context", "single"),
    [
        (tuple(RECORD.values()), True),
        ([list(RECORD.values())], False),
        (np.array(list(RECORD.values()), dtype=object), True),
        (pl.DataFrame([RECORD]).row(0), True),
        (pl.DataFrame([RECORD]).rows(), False),
    ],
)
def test_positional_containers(context: Any, single: bool) -> None:
    np.testing.assert_array_equal(POSITIONAL.encode(context), ENCODED)
    assert read(context).single is single
    assert read(context).positional


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
def test_tensors(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[1, 0], [0, 1]]).to(dtype)
    schema = Schema.of({"0": "numeric", "1": "numeric"})
    np.testing.assert_array_equal(schema.encode(tensor), np.eye(2))
    if dtype.is_floating_point:
        np.testing.assert_array_equal(schema.encode(tensor[0].requires_grad_()), [[1, 0]])


def test_integer_column_names_are_names_and_not_positions() -> None:
    frame = pd.DataFrame({1: [10.0], 0: [20.0]})
    assert Schema.infer(frame).features == ("1", "0")
    np.testing.assert_array_equal(Schema.of({"0": "numeric", "1": "numeric"}).encode(frame), [[20, 10]])


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "distinct column names"),
        (pd.DataFrame({1: [1], "1": [2]}), "distinct names"),
        (pd.Series([1, 2], index=["a", "a"]), "distinct names"),
        (pl.DataFrame({"a": [1]}).lazy(), "a table in memory .* collect a lazy frame"),
        (np.array([("a", 1)], dtype=[("x", "U1"), ("y", "i4")]), "make a frame of a structured array"),
        (torch.tensor(1.0), "one row .* or a matrix"),
        ([RECORD, [1, 2]], r"must all have the keys .* row 2 is \[1, 2\]"),
        ([[1, 2], RECORD], "must all have one length"),
        ((x for x in [1, 2]), "must be a mapping, a numpy row or matrix"),
        ({1, 2}, "must be a mapping, a numpy row or matrix"),
        (b"ab", "must be a mapping, a numpy row or matrix"),
        (None, "must be a mapping, a numpy row or matrix"),
        ([RECORD, None], "row 2 is None; leave the row out"),
        ([None, RECORD], "row 1 is None; leave the row out"),
        ([None, [1, 2]], "must all have one length, .* row 1 is None"),
    ],
)
def test_what_is_no_context(context: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Schema.infer(context)


PLANS = ["free", "paid", "gold, old", 'say "hi"', "ünïcödé", "two\nlines"]
ROW = st.fixed_dictionaries(
    {
        "age": st.none() | st.floats(-1e100, 1e100),
        "visits": st.none() | st.integers(-(2**53), 2**53),
        "vip": st.none() | st.booleans(),
        "plan": st.none() | st.sampled_from(PLANS),
        "clinic": st.none() | st.integers(1, 5),
        "seen": st.none() | st.datetimes(datetime(1678, 1, 1), datetime(2262, 1, 1)),
    }
)
ROWS = st.lists(ROW, min_size=1, max_size=8)
WIDE = Schema.of(
    {
        "age": "numeric",
        "visits": "numeric",
        "vip": "boolean",
        "plan": PLANS,
        "clinic": [1, 2, 3, 4, 5],
        "seen": "date",
    }
)
POLARS = {
    "age": pl.Float64,
    "visits": pl.Int64,
    "vip": pl.Boolean,
    "plan": pl.String,
    "clinic": pl.Int64,
    "seen": pl.Datetime,
}


def by_file(rows: list[dict[str, Any]], write: Callable[[pl.DataFrame, Path], object], name: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        write(pl.DataFrame(rows, schema=POLARS), Path(folder) / name)
        return read_file(Path(folder) / name)


def zipped(frame: pl.DataFrame, path: Path) -> None:
    path.write_bytes(gzip.compress(frame.write_csv().encode()))


CONTAINERS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "reversed columns": lambda rows: [dict(reversed(row.items())) for row in rows],
    "pandas": lambda rows: pd.DataFrame(rows),
    "pandas objects": lambda rows: pd.DataFrame(rows, dtype=object),
    "pandas nullable": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "polars": lambda rows: pl.DataFrame(rows, schema=POLARS),
    "arrow": lambda rows: pl.DataFrame(rows, schema=POLARS).to_arrow(),
    "csv": lambda rows: by_file(rows, lambda frame, path: frame.write_csv(path), "rows.csv"),
    "csv of pandas": lambda rows: by_file(
        rows, lambda frame, path: frame.to_pandas().to_csv(path, index=False), "rows.csv"
    ),
    "csv.gz": lambda rows: by_file(rows, zipped, "rows.csv.gz"),
    "parquet": lambda rows: by_file(rows, lambda frame, path: frame.write_parquet(path), "rows.parquet"),
    "json": lambda rows: [json.loads(json.dumps(plain(row))) for row in rows],
}


@pytest.mark.parametrize("container", CONTAINERS)
@settings(max_examples=25, deadline=None)
@given(rows=ROWS)
def test_the_same_rows_encode_to_the_same_floats(container: str, rows: list[dict[str, Any]]) -> None:
    np.testing.assert_array_equal(WIDE.encode(CONTAINERS[container](rows)), WIDE.encode(rows))


@settings(max_examples=50, deadline=None)
@given(rows=ROWS)
def test_a_batch_encodes_as_its_rows_do_one_by_one(rows: list[dict[str, Any]]) -> None:
    np.testing.assert_array_equal(WIDE.encode(rows), np.concatenate([WIDE.encode(row) for row in rows]))


@settings(max_examples=50, deadline=None)
@given(rows=ROWS)
def test_a_file_infers_what_its_values_infer(rows: list[dict[str, Any]]) -> None:
    # A first row with every value: a column of missing ones has no kind of its own.
    full = {"age": 1.5, "visits": 3, "vip": True, "plan": "free", "clinic": 2, "seen": datetime(2026, 3, 1)}
    expected = Schema.infer([full, *rows])
    for container in ("polars", "arrow", "csv", "parquet"):
        assert Schema.infer(CONTAINERS[container]([full, *rows])) == expected


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(-1e100, 1e100),
    st.floats(width=32, allow_infinity=False).map(np.float32),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.dates(),
    st.datetimes(timezones=st.none() | st.timezones()),
    st.decimals(-(10**9), 10**9, allow_nan=True, places=3),
)


@settings(max_examples=300, deadline=None)
@given(value=SCALARS)
def test_plain_values_survive_json_and_encode_alike(value: Any) -> None:
    context = {"x": value, "y": 1}
    again = json.loads(json.dumps(plain(context), allow_nan=False))
    schema = Schema.infer(context)
    np.testing.assert_array_equal(schema.encode(again), schema.encode(context))
    categorical = Schema.of({"x": "categorical", "y": "numeric"}).extended(context)
    np.testing.assert_array_equal(categorical.encode(again), categorical.encode(context))
    assert categorical.extended(again) == categorical


def test_plain_keeps_positions_and_refuses_batches() -> None:
    assert plain(np.array([1.0, np.nan])) == [1.0, None]
    assert plain(pd.Series({"a": np.int64(1), "b": pd.NaT})) == {"a": 1, "b": None}
    assert plain(torch.tensor([1.5])) == [1.5]
    with pytest.raises(ValueError, match="must be one context, got a batch of 2"):
        plain(np.ones((2, 3)))
    with pytest.raises(ValueError, match="context column 'a' must be finite or missing, got inf"):
        plain({"a": np.inf})
    with pytest.raises(ValueError, match=r"context column 'a' must be a number, .* decode it to a text"):
        plain({"a": b"x"})


def test_masked_values_are_missing_in_every_container() -> None:
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    expected = [[1, np.nan], [3, 4]]
    schema = Schema.of({"0": "numeric", "1": "numeric"})
    np.testing.assert_array_equal(schema.encode(masked), expected)
    np.testing.assert_array_equal(schema.encode(masked.astype(int)), expected)
    np.testing.assert_array_equal(schema.encode(masked[0]), expected[:1])
    np.testing.assert_array_equal(Schema.infer(masked).encode(masked), expected)
    named = Schema.of({"a": "numeric", "seen": "date", "plan": ["free"]})
    row = {"a": np.ma.masked, "seen": np.ma.masked, "plan": np.ma.masked}
    np.testing.assert_array_equal(named.encode(row), [[np.nan] * 3])
    assert plain(row) == dict.fromkeys(row)
    days = np.ma.array(np.array(["2026-03-01", "2026-03-02"], dtype="datetime64[D]"), mask=[True, False])
    table = Table.of({"seen": days, "plan": np.ma.array(["free", "free"], mask=[False, True])})
    assert table["plan"] == ["free", None]
    np.testing.assert_array_equal(
        Schema.of({"seen": "date"}).encode(table.select(["seen"])), [[np.nan], [20514]]
    )


@pytest.mark.parametrize("wrap", [np.array, torch.tensor, np.float64, np.ma.array], ids=lambda f: f.__name__)
def test_arrays_without_dimensions_are_their_value(wrap: Callable[[float], Any]) -> None:
    for schema in (Schema.of({"age": "numeric"}), Schema.infer({"age": wrap(1.5)})):
        assert schema.encode({"age": wrap(1.5)}).tolist() == [[1.5]]
        assert schema.encode([{"age": wrap(1.5)}, {"age": None}])[0].tolist() == [1.5]
    assert Schema.of({"0": "numeric", "1": "numeric"}).encode([wrap(1.5), 2]).tolist() == [[1.5, 2]]
    assert plain({"age": wrap(1.5)}) == {"age": 1.5}


@pytest.mark.parametrize(
    "empty",
    [[], (), pd.DataFrame(), pd.DataFrame([RECORD]).head(0), pl.DataFrame([RECORD]).head(0), pl.DataFrame()],
    ids=range(6),
)
def test_no_rows_encode_as_no_rows_and_infer_nothing(empty: Any) -> None:
    assert SCHEMA.encode(empty).shape == (0, 6)
    assert Rows.of(empty, SCHEMA).contexts == []
    with pytest.raises(ValueError, match="at least one row and one column"):
        Schema.infer(empty)
    with pytest.raises(ValueError, match="context must be a single one, got a batch of 0"):
        Rows.of(empty, SCHEMA, single=True)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame([RECORD]), pl.DataFrame([RECORD]), pa.Table.from_pylist([RECORD]), [RECORD]]
)
def test_a_batch_of_one_row_is_accepted_as_one_context(frame: Any) -> None:
    rows = Rows.of(frame, SCHEMA, single=True)
    assert rows.single
    np.testing.assert_array_equal(rows.X, ENCODED)
    assert plain(frame) == plain(RECORD)
    assert not Rows.of(frame, SCHEMA).single
    matrix = Rows.of(np.ones((1, 2)), Schema.infer(np.ones((1, 2))), single=True)
    assert matrix.single
    with pytest.raises(ValueError, match="must be a single one, got a batch of 2; use decide_batch"):
        Rows.of(np.ones((2, 2)), None, single=True)
