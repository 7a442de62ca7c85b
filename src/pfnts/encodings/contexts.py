"""One reading of every container a context may arrive in: columns by name, row or batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    """Contexts as named columns.

    Examples
    --------
    >>> table = read({"age": 41, "plan": "free"})
    >>> table.names, table.single
    (('age', 'plan'), True)
    """

    names: tuple[str, ...]
    """Column names; positions ("0", "1", ...) where the container has none."""
    columns: tuple[Any, ...]
    """One numpy array or list of values per column, all of one length."""
    n_rows: int
    """Number of contexts."""
    single: bool
    """Whether the container was one context and not a batch."""
    positional: bool
    """Whether the names are positions, so that the columns may stand for any schema of that length."""
    nominal: frozenset[str] = frozenset()
    """Columns that the container itself declares categorical."""


def read(contexts: Any) -> Table:
    """Read a numpy row or matrix, a mapping, a list of mappings or rows, or a pandas or polars object."""
    if isinstance(contexts, np.ndarray):
        return _from_array(contexts)
    if isinstance(contexts, Mapping):
        return _from_mappings([contexts], single=True)
    if hasattr(contexts, "columns") and hasattr(contexts, "dtypes"):
        return _from_frame(contexts)
    if hasattr(contexts, "index") and hasattr(contexts, "iloc"):  # a pandas row
        return _from_mappings([dict(zip(contexts.index, contexts.to_list(), strict=True))], single=True)
    if hasattr(contexts, "to_list"):  # a polars series has no names for its values
        contexts = contexts.to_list()
    if hasattr(contexts, "__array__"):  # a torch tensor and the like
        return _from_array(np.asarray(contexts))
    if isinstance(contexts, Sequence) and not isinstance(contexts, str | bytes):
        return _from_sequence(contexts)
    raise ValueError(
        "context must be a numpy row or matrix, a mapping, a list of either, "
        f"or a pandas or polars row or frame, got {type(contexts).__name__}"
    )


def _from_array(array: NDArray[Any]) -> Table:
    if array.ndim not in (1, 2):
        raise ValueError(
            f"context must be one row (P,) or a matrix (n, P), got an array of shape {array.shape}; "
            "wrap a single feature in a list"
        )
    matrix = np.atleast_2d(array)
    return Table(
        names=tuple(str(j) for j in range(matrix.shape[1])),
        columns=tuple(matrix.T),
        n_rows=len(matrix),
        single=array.ndim == 1,
        positional=True,
    )


def _from_sequence(values: Sequence[Any]) -> Table:
    if len(values) and isinstance(values[0], Mapping):
        return _from_mappings(values, single=False)
    if len(values) and isinstance(values[0], np.ndarray | list | tuple):
        rows = [list(row) for row in values]
        if len({len(row) for row in rows}) > 1:
            raise ValueError(
                f"context rows must all have one length, got lengths {sorted({len(row) for row in rows})}"
            )
        return _positional([list(column) for column in zip(*rows, strict=True)], len(rows), single=False)
    return _positional([[value] for value in values], 1, single=True)


def _positional(columns: list[list[Any]], n_rows: int, *, single: bool) -> Table:
    names = tuple(str(j) for j in range(len(columns)))
    return Table(names=names, columns=tuple(columns), n_rows=n_rows, single=single, positional=True)


def _from_mappings(rows: Sequence[Mapping[Any, Any]], *, single: bool) -> Table:
    keys = list(rows[0])
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping) or row.keys() != rows[0].keys():
            raise ValueError(
                f"context rows must all have the keys {sorted(map(str, keys))}, row {i} is {row!r}; "
                "give None for a missing value"
            )
        for key, value in row.items():
            if isinstance(value, list | tuple | np.ndarray):
                raise ValueError(
                    f"context {key!r} must be one value, got a {type(value).__name__} of {len(value)}; "
                    "several contexts are a list of mappings or a frame"
                )
    return Table(
        names=tuple(str(key) for key in keys),
        columns=tuple([row[key] for row in rows] for key in keys),
        n_rows=len(rows),
        single=single,
        positional=False,
    )


def _from_frame(frame: Any) -> Table:
    names = list(frame.columns)
    columns = []
    nominal = set()
    for name in names:
        column = frame[name]
        if any(word in str(column.dtype).lower() for word in ("categor", "enum")):
            nominal.add(str(name))
        values = column.to_numpy()
        columns.append(values if values.dtype.kind in "fiub" else column.to_list())
    return Table(
        names=tuple(str(name) for name in names),
        columns=tuple(columns),
        n_rows=len(frame),
        single=False,
        positional=False,
        nominal=frozenset(nominal),
    )
