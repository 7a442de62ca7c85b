"""Containers of contexts, each read as columns by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts.values import shown, unwrapped

_ARRAYS = "fiub"
"""Kinds of numpy arrays that stay arrays; all other columns become lists."""
_SCALARS = frozenset({str, int, float, bool, NoneType, date, datetime})
"""Types of values that need no unwrapping."""


@dataclass(frozen=True)
class Table:
    """Contexts as named columns.

    Examples
    --------
    >>> table = read({"age": 41, "plan": "free"})
    >>> table.names, table.single, table["plan"]
    (('age', 'plan'), True, ['free'])
    """

    names: tuple[str, ...]
    """Column names; positions ("0", "1", ...) where the container has none."""
    columns: tuple[Any, ...]
    """One numpy array of numbers or booleans, or list of values, per column, all of one length."""
    n_rows: int
    """Number of contexts."""
    single: bool = False
    """One context, not a batch."""
    positional: bool = False
    """Names are positions."""
    nominal: frozenset[str] = frozenset()
    """Columns that the container itself declares categorical."""
    written: bool = False
    """Texts stand for values of any kind, as in a CSV file."""

    @classmethod
    def of(cls, columns: Mapping[Any, Sequence[Any]], *, written: bool = False) -> Table:
        """Return the table of columns by name: lists or arrays of one length."""
        values = tuple(_values(column) for column in columns.values())
        lengths = {str(name): len(column) for name, column in zip(columns, values, strict=True)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must all have one length, got {lengths}")
        n_rows = next(iter(lengths.values()), 0)
        return cls(_distinct(columns), values, n_rows, written=written)

    def __getitem__(self, name: str) -> Any:
        """Return the values of one column."""
        return self.columns[self._places[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def select(self, names: Iterable[str]) -> Table:
        """Return some columns, in the order given."""
        names = tuple(names)
        return replace(self, names=names, columns=tuple(self[name] for name in names))

    def take(self, rows: NDArray[np.intp]) -> Table:
        """Return some rows, in the order given."""
        columns = tuple(
            column[rows] if isinstance(column, np.ndarray) else [column[i] for i in rows.tolist()]
            for column in self.columns
        )
        return replace(self, columns=columns, n_rows=len(rows), single=False)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}


def read(contexts: Any) -> Table:
    """Read one context or a batch.

    Parameters
    ----------
    contexts
        A numpy row or matrix, a tensor, a mapping, a list of mappings or rows, a pandas row, or a pandas,
        polars or Arrow table. A `Table` is returned unchanged.

    Examples
    --------
    >>> read([{"age": 41}, {"age": None}]).columns, read([41, "free"]).names
    (([41, None],), ('0', '1'))
    """
    if isinstance(contexts, Table):
        return contexts
    if isinstance(contexts, np.ndarray):
        return _from_array(contexts)
    if isinstance(contexts, Mapping):
        names = tuple(contexts) if all(type(name) is str for name in contexts) else _distinct(contexts)
        return Table(names, tuple(_scalars([value]) for value in contexts.values()), 1, single=True)
    if isinstance(contexts, Sequence) and not isinstance(contexts, str | bytes | bytearray):
        return _from_sequence(contexts)
    if (named := _named_row(contexts)) is not None:
        return read(named)
    if hasattr(contexts, "detach"):  # a tensor, perhaps on another device or with gradients
        tensor = contexts.detach().cpu()
        return _from_array((tensor.double() if tensor.is_floating_point() else tensor).numpy())
    if hasattr(type(contexts), "columns") or hasattr(type(contexts), "column_names"):
        return _from_frame(contexts)
    if hasattr(contexts, "to_list"):  # a polars series has no names for its values
        return _from_sequence(contexts.to_list())
    if hasattr(contexts, "__array__"):
        return _from_array(np.asarray(contexts))
    raise ValueError(
        "context must be a mapping, a numpy row or matrix, a list of either, a pandas row, "
        f"or a pandas, polars or Arrow table, got {shown(contexts)}"
    )


def _values(column: Any) -> Any:
    """Return numbers and booleans as an array, all else as a list."""
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise ValueError(f"a column must be one-dimensional, got an array of shape {column.shape}")
        if isinstance(column, np.ma.MaskedArray):
            numeric = column.dtype.kind in _ARRAYS
            column = np.ma.filled(column.astype(float), np.nan) if numeric else column
        if column.dtype.kind in _ARRAYS:
            return column
        # Dates stay numpy's own: as Python's they would lose what Python cannot hold.
        return _scalars(list(column) if column.dtype.kind == "M" else column.tolist())
    return _scalars(list(column))


def _scalars(values: list[Any]) -> list[Any]:
    """Return values without the containers of numpy and torch that hold a single one."""
    return values if _SCALARS.issuperset(map(type, values)) else list(map(unwrapped, values))


def _from_array(array: NDArray[Any]) -> Table:
    if array.ndim not in (1, 2) or array.dtype.names:
        raise ValueError(
            f"context must be one row (P,) or a matrix (n, P), got an array of shape {array.shape} and type "
            f"{array.dtype}; wrap a single feature in a list, make a frame of a structured array"
        )
    matrix = array[None] if array.ndim == 1 else array
    return _positional([_values(column) for column in matrix.T], len(matrix), single=array.ndim == 1)


def _from_sequence(values: Sequence[Any]) -> Table:
    if not len(values):
        return _positional([], 0, single=False)
    first = next((value for value in values if value is not None), None)
    if isinstance(first, Mapping) or _named_row(first) is not None:
        return _from_mappings([_named_row(row) or row for row in values])
    if isinstance(first, list | tuple) or (isinstance(first, np.ndarray) and first.ndim):
        for i, row in enumerate(values):
            if not isinstance(row, np.ndarray | list | tuple) or len(row) != len(first):
                raise ValueError(
                    f"context rows must all have one length, that of the first is {len(first)}, "
                    f"row {i + 1} is {shown(row)}"
                )
        columns = [_scalars(list(column)) for column in zip(*values, strict=True)]
        return _positional(columns, len(values), single=False)
    return _positional([_scalars([value]) for value in values], 1, single=True)


def _positional(columns: list[Any], n_rows: int, *, single: bool) -> Table:
    names = tuple(map(str, range(len(columns))))
    return Table(names, tuple(columns), n_rows, single=single, positional=True)


def _named_row(row: Any) -> dict[Any, Any] | None:
    """Return a pandas row as a mapping; None for anything else."""
    if not (hasattr(row, "iloc") and hasattr(row, "index") and hasattr(row, "to_list")):
        return None
    if not row.index.is_unique:
        raise ValueError(f"context columns must have distinct names, got {list(row.index)}; rename them")
    return dict(zip(row.index, row.to_list(), strict=True))


def _distinct(names: Iterable[Any]) -> tuple[str, ...]:
    """Return names as texts; raise if two are the same text."""
    texts = tuple(map(str, names))
    repeated = sorted({name for name in texts if texts.count(name) > 1})
    if repeated:
        raise ValueError(f"context columns must have distinct names, {repeated} are not; rename them")
    return texts


def _from_mappings(rows: Sequence[Any]) -> Table:
    keys = next(row for row in rows if row is not None).keys()
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping) or row.keys() != keys:
            raise ValueError(
                f"context rows must all have the keys {sorted(map(str, keys))}, row {i + 1} is {shown(row)}; "
                + ("leave the row out" if row is None else "give None for a missing value")
            )
    columns = tuple(_scalars([row[key] for row in rows]) for key in keys)
    return Table(_distinct(keys), columns, len(rows))


def _from_frame(contexts: Any) -> Table:
    import narwhals as nw  # here, since the way of numpy rows and mappings must stay short

    try:
        frame = nw.from_native(contexts, eager_only=True)
        names = frame.columns
    except (TypeError, nw.exceptions.NarwhalsError) as error:
        raise ValueError(
            f"context must be a table in memory with distinct column names, got {type(contexts).__name__} "
            f"({error}); collect a lazy frame first"
        ) from None
    columns, nominal = [], set()
    for name, series in zip(names, frame.iter_columns(), strict=True):
        if isinstance(series.dtype, nw.Categorical | nw.Enum):
            nominal.add(str(name))
        # With nulls, an array would turn integers and booleans into floats or objects.
        whole = (series.dtype.is_integer() or series.dtype == nw.Boolean) and not series.null_count()
        columns.append(_values(series.to_numpy()) if whole or series.dtype.is_float() else series.to_list())
    return Table(_distinct(names), tuple(columns), len(frame), nominal=frozenset(nominal))
