"""One reading of every container that contexts may arrive in: columns by name, row or batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts.values import plain_value, shown

_ARRAYS = "fiub"
"""Kinds of numpy arrays that stay arrays; all other columns become lists."""
_LARGE = 1e300
"""Numbers below this size are neither missing nor infinite."""


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
    """Whether the container was one context and not a batch."""
    positional: bool = False
    """Whether the names are positions."""
    nominal: frozenset[str] = frozenset()
    """Columns that the container itself declares categorical."""
    written: bool = False
    """Whether texts stand for values of any kind, as in a CSV file."""

    @classmethod
    def of(cls, columns: Mapping[Any, Sequence[Any]], *, written: bool = False) -> Table:
        """Make a table of columns in memory: names to lists or arrays of one length."""
        values = tuple(_values(column) for column in columns.values())
        lengths = {str(name): len(column) for name, column in zip(columns, values, strict=True)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns must all have one length, got {lengths}")
        n_rows = next(iter(lengths.values()), 0)
        return cls(_distinct(columns), values, n_rows, written=written)

    def __getitem__(self, name: str) -> Any:
        """Give the values of one column."""
        return self.columns[self._places[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def select(self, names: Iterable[str]) -> Table:
        """Keep some columns, in the order given."""
        names = tuple(names)
        return replace(self, names=names, columns=tuple(self[name] for name in names))

    def take(self, rows: NDArray[np.intp]) -> Table:
        """Keep some rows, in the order given."""
        columns = tuple(
            column[rows] if isinstance(column, np.ndarray) else [column[i] for i in rows.tolist()]
            for column in self.columns
        )
        return replace(self, columns=columns, n_rows=len(rows), single=False)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: j for j, name in enumerate(self.names)}


def read(contexts: Any) -> Table:
    """Read one context or a batch from whatever holds them.

    Parameters
    ----------
    contexts
        A numpy row or matrix, a tensor, a mapping, a list of mappings or rows, a pandas row, or a pandas,
        polars or Arrow table. A table already read comes back as it is.

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
        return Table(names, tuple([value] for value in contexts.values()), 1, single=True)
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


def plain(context: Any) -> dict[str, Any] | list[Any]:
    """Write one context as plain JSON values: numbers, texts, booleans, None; dates as ISO text.

    A schema encodes it to the same floats as the context itself.

    Parameters
    ----------
    context
        One context, in any container that `read` knows.

    Examples
    --------
    >>> plain({"age": np.int64(41), "seen": np.datetime64("2026-03-01"), "plan": None})
    {'age': 41, 'seen': '2026-03-01', 'plan': None}
    >>> plain(np.array([0.5, np.nan]))
    [0.5, None]
    """
    table = read(context)
    if not table.single:
        raise ValueError(f"context must be one context, got a batch of {table.n_rows}; take them one by one")
    return plain_rows(table)[0]


def plain_rows(contexts: Any) -> list[dict[str, Any] | list[Any]]:
    """Write each context of a batch as `plain` writes one.

    Examples
    --------
    >>> plain_rows([{"price": np.float64(2.0)}, {"price": None}])
    [{'price': 2.0}, {'price': None}]
    """
    table = read(contexts)
    columns = [_plain_column(*named) for named in zip(table.names, table.columns, strict=True)]
    rows = zip(*columns, strict=True) if columns else [()] * table.n_rows
    if table.positional:
        return [list(row) for row in rows]
    return [dict(zip(table.names, row, strict=True)) for row in rows]


def compact(contexts: Any) -> Table:
    """Copy contexts, their values as `plain` writes them, in as little memory as possible.

    Examples
    --------
    >>> compact([{"price": 2.0}, {"price": 3.5}]).columns
    (array([2. , 3.5]),)
    """
    table = read(contexts)
    return replace(table, columns=tuple(map(_packed, map(_plain_column, table.names, table.columns))))


def _plain_column(name: str, values: Any) -> list[Any]:
    try:
        return [
            value
            if type(value) in (str, bool) or (type(value) in (float, int) and abs(value) < _LARGE)
            else plain_value(value)
            for value in (values.tolist() if isinstance(values, np.ndarray) else values)
        ]
    except ValueError as error:
        raise ValueError(f"context column {name!r} {error}") from None


def _packed(values: list[Any]) -> Any:
    """Give floats, and integers that floats can hold, as an array, all else as they are."""
    kinds = set(map(type, values))
    if kinds == {float} or (kinds == {int} and max(map(abs, values)) < 2**53):
        return np.array(values)
    return values


def _values(column: Any) -> Any:
    """Give numbers and booleans as an array, all else as a list."""
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise ValueError(f"a column must be one-dimensional, got an array of shape {column.shape}")
        if column.dtype.kind in _ARRAYS:
            return column
        # Dates stay numpy's own: as Python's they would lose what Python cannot hold.
        return list(column) if column.dtype.kind == "M" else column.tolist()
    return list(column)


def _from_array(array: NDArray[Any]) -> Table:
    if array.ndim not in (1, 2) or array.dtype.names:
        raise ValueError(
            f"context must be one row (P,) or a matrix (n, P), got an array of shape {array.shape} and type "
            f"{array.dtype}; wrap a single feature in a list, make a frame of a structured array"
        )
    matrix = np.atleast_2d(array)
    return _positional([_values(column) for column in matrix.T], len(matrix), single=array.ndim == 1)


def _from_sequence(values: Sequence[Any]) -> Table:
    first = values[0] if len(values) else None
    if isinstance(first, Mapping) or _named_row(first) is not None:
        return _from_mappings([_named_row(row) or row for row in values])
    if isinstance(first, list | tuple) or (isinstance(first, np.ndarray) and first.ndim):
        for i, row in enumerate(values):
            if not isinstance(row, np.ndarray | list | tuple) or len(row) != len(first):
                raise ValueError(
                    f"context rows must all have one length, that of the first is {len(first)}, "
                    f"row {i + 1} is {shown(row)}"
                )
        return _positional([list(column) for column in zip(*values, strict=True)], len(values), single=False)
    return _positional([[value] for value in values], 1, single=True)


def _positional(columns: list[Any], n_rows: int, *, single: bool) -> Table:
    names = tuple(map(str, range(len(columns))))
    return Table(names, tuple(columns), n_rows, single=single, positional=True)


def _named_row(row: Any) -> dict[Any, Any] | None:
    """Give a pandas row as a mapping; None for anything else."""
    if not (hasattr(row, "iloc") and hasattr(row, "index") and hasattr(row, "to_list")):
        return None
    if not row.index.is_unique:
        raise ValueError(f"context columns must have distinct names, got {list(row.index)}; rename them")
    return dict(zip(row.index, row.to_list(), strict=True))


def _distinct(names: Iterable[Any]) -> tuple[str, ...]:
    """Names as texts; two that are the same text are an error."""
    texts = tuple(map(str, names))
    repeated = sorted({name for name in texts if texts.count(name) > 1})
    if repeated:
        raise ValueError(f"context columns must have distinct names, {repeated} are not; rename them")
    return texts


def _from_mappings(rows: Sequence[Any]) -> Table:
    keys = rows[0].keys()
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping) or row.keys() != keys:
            raise ValueError(
                f"context rows must all have the keys {sorted(map(str, keys))}, row {i + 1} is {shown(row)}; "
                "give None for a missing value"
            )
    columns = tuple([row[key] for row in rows] for key in keys)
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
