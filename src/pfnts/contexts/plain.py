"""Contexts as JSON values, for logs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from pfnts.contexts.table import Table, read
from pfnts.contexts.values import plain_value

_SAFE = 1e300
"""Numbers below this size are neither missing nor infinite."""


def plain(context: Any) -> dict[str, Any] | list[Any]:
    """Write one context as JSON values: numbers, texts, booleans, None; dates as ISO text.

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
    if not table.single and table.n_rows != 1:
        raise ValueError(f"context must be one context, got a batch of {table.n_rows}; take them one by one")
    return plain_rows(table)[0]


def plain_rows(contexts: Any) -> list[dict[str, Any] | list[Any]]:
    """Write every context of a batch as `plain` does.

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
    """Copy contexts in little memory, their values as `plain` writes them.

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
            if type(value) in (str, bool) or (type(value) in (float, int) and abs(value) < _SAFE)
            else plain_value(value)
            for value in (values.tolist() if isinstance(values, np.ndarray) else values)
        ]
    except ValueError as error:
        raise ValueError(f"context column {name!r} {error}") from None


def _packed(values: list[Any]) -> Any:
    """Return floats, and integers that floats can hold, as an array; other values as a list."""
    kinds = set(map(type, values))
    if kinds == {float} or (kinds == {int} and max(map(abs, values)) < 2**53):
        return np.array(values)
    return values
