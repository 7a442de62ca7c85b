"""Columns of a log in which no row may be empty, checked row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts.column import each
from pfnts.contexts.table import Table
from pfnts.contexts.values import category, days, has_zone, is_missing, number, shown

Vector = NDArray[np.float64]


class BadLogError(ValueError):
    """A log is invalid; the message names the row, counted from 1 below the header."""


def check_roles(table: Table, used: Sequence[str], context: Sequence[str] = ()) -> None:
    """Raise if a column is missing or has several roles, or if the table has no rows."""
    for name in (*used, *context):
        if name not in table:
            raise BadLogError(f"column {name!r} must be in the log, which has {list(table.names)}")
    twice = sorted({name for name in used if (*used, *context).count(name) > 1})
    if twice:
        raise BadLogError(f"a column must have one role, {twice[0]!r} has several; name another one")
    if not table.n_rows:
        raise BadLogError("log must have at least one row, it has a header only")


def texts(table: Table, name: str) -> list[str]:
    """Return the categories (T,) of a column; raise if a row has none."""
    found = each(table[name], lambda value: None if is_missing(value) else category(value))
    if None in found:
        raise _bad_cell(table, name, found.index(None), "a text or a number")
    return [str(text) for text in found]


def numbers(table: Table, name: str) -> Vector:
    """Return the finite numbers (T,) of a column; raise if a row has none."""
    floats = np.array(each(table[name], number), dtype=np.float64)
    for i in np.flatnonzero(~np.isfinite(floats)).tolist():
        raise _bad_cell(table, name, i, "a finite number")
    return floats


def times(table: Table, name: str) -> Vector:
    """Return numbers (T,), or the seconds of dates and datetimes; the first row decides which."""
    values = table[name]
    if number(values[0]) is not None:
        return numbers(table, name)
    moments = each(values, days)
    for i, moment in enumerate(moments):
        if moment is None:
            what = "numbers throughout, or ISO dates or datetimes, such as 2026-03-01 or 2026-03-01T08:30"
            raise _bad_cell(table, name, i, what)
        if has_zone(values[i]) != has_zone(values[0]):
            raise BadLogError(
                f"row {i + 1}: column {name!r} must have a time zone in every row or in none, "
                f"got {values[i]!r} after {values[0]!r}"
            )
    return np.array(moments, dtype=np.float64) * 86_400


def _bad_cell(table: Table, name: str, i: int, rule: str) -> BadLogError:
    value = table[name][i]
    if is_missing(value):
        return BadLogError(f"row {i + 1}: column {name!r} must not be empty")
    return BadLogError(f"row {i + 1}: column {name!r} must hold {rule}, got {shown(value)}")
