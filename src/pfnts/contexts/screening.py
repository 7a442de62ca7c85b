"""Columns of a table that describe its rows, and those that do not: ids, dates, propensities, rewards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts.column import Column
from pfnts.contexts.inference import MANY_ROWS, infer_column, is_id
from pfnts.contexts.schema import Schema
from pfnts.contexts.table import Table

Vector = NDArray[np.float64]

_ID_NAME = re.compile(r"(?:^|[\W_])(?i:id|uuid|guid)$|[a-z](?:Id|ID)$|^(?i:index)?$|^Unnamed: 0$")
_PROPENSITY_NAME = re.compile(
    r"propensit|p_?score|^p$|^prob(?:ability)?$|(?:action|arm|logg\w+)_?prob|prob_?(?:action|arm)", re.I
)
_COPY = 0.999
"""Correlation with the reward above which a column is taken for a copy of it."""


@dataclass(frozen=True)
class Rounds:
    """Actions and rewards of a log, to recognise columns that follow from them."""

    actions: NDArray[np.int64]
    """(T,) codes"""
    rewards: Vector
    """(T,)"""
    propensities: Vector | None = None
    """(T,) of the action taken, if known."""


def describing(
    table: Table,
    names: Iterable[str] | None = None,
    *,
    dates: bool = True,
    rounds: Rounds | None = None,
) -> tuple[Schema, dict[str, str]]:
    """Infer a closed schema of the columns that describe a row; also return why others are left out.

    Left out are ids (texts that hardly repeat, and numbers in a column that is called so) and, in a log,
    propensities and copies of the reward.

    Parameters
    ----------
    table
        The whole table.
    names
        Candidates; all columns when left out.
    dates
        Whether dates describe a row.
    rounds
        Actions and rewards of the rows, if the table is a log.

    Examples
    --------
    >>> table = Table.of({"user_id": [7, 7, 9], "paid": [1, 0, 1], "seen": ["2026-03-01"] * 3})
    >>> schema, left_out = describing(table, dates=False)
    >>> schema.features, left_out
    (('paid',), {'user_id': 'an id', 'seen': 'a date'})
    """
    columns, left_out = [], {}
    for name in table.names if names is None else names:
        values = table[name]
        column = infer_column(name, values, nominal=name in table.nominal, written=table.written)
        if is_id(values) if column.kind == "categorical" else _is_number_of_id(column):
            left_out[name] = "an id"
        elif column.kind == "date" and not dates:
            left_out[name] = "a date"
        elif rounds is not None and (reason := _leak(column, values, rounds)):
            left_out[name] = reason
        else:
            columns.append(column)
    if not columns:
        raise ValueError(f"table must have a column that describes its rows, left out are {left_out}")
    return Schema(tuple(columns)).closed(), left_out


def left_out_words(left_out: dict[str, str], remedy: str) -> str:
    """Return the one warning about the columns that were left out."""
    listed = ", ".join(f"{name!r} ({reason})" for name, reason in left_out.items())
    return f"left out of the contexts: {listed}; {remedy}"


def _is_number_of_id(column: Column) -> bool:
    return column.kind == "numeric" and _ID_NAME.search(column.name) is not None


def _leak(column: Column, values: Any, rounds: Rounds) -> str | None:
    """Return what a column repeats of the rounds, if anything."""
    floats = column.encode(values)
    if column.kind == "numeric" and is_propensity(column.name, floats[:, 0], rounds):
        return "a propensity"
    if any(_is_copy(floats[:, j], rounds.rewards) for j in range(floats.shape[1])):
        return "a copy of the reward"
    return None


def is_propensity(name: str, values: Vector, rounds: Rounds) -> bool:
    """Return whether a column (T,) looks like the probability of an action, by its name or by its values.

    By its values it does if it is the known propensity wherever some action was taken, or if the mean of its
    inverse over the rounds with an action is one, for every action.
    """
    if not ((values >= 0) & (values <= 1)).all():
        return False
    known, actions = rounds.propensities, rounds.actions
    if known is not None:
        alike = np.isclose(values, known, rtol=1e-6) & (known < 1)
        if any(alike[actions == k].all() for k in set(actions.tolist())):
            return True
    if _PROPENSITY_NAME.search(name):
        return True
    # Rewards and flags have zeros; a column that hardly varies passes for independent of the actions.
    if len(values) < 10 * MANY_ROWS or values.min() <= 0 or values.std() < values.mean() / 4:
        return False
    counts = np.bincount(actions)
    sums = np.bincount(actions, 1 / values)[counts > 0] / len(values)
    deviations = np.sqrt(np.bincount(actions, (1 - values) / values**2)[counts > 0]) / len(values)
    near = np.abs(sums - 1) <= np.maximum(4 * deviations, 0.05)
    total = 4 * float(np.linalg.norm(deviations)) / len(sums)
    return len(sums) > 1 and bool(near.all()) and abs(sums.mean() - 1) <= max(total, 0.05)


def _is_copy(values: Vector, rewards: Vector) -> bool:
    present = ~np.isnan(values)
    x, y = values[present], rewards[present]
    if len(x) < MANY_ROWS or not np.ptp(x) or not np.ptp(y):
        return False
    x, y = x / np.abs(x).max(), y / np.abs(y).max()
    return bool(np.ptp(x) and np.ptp(y)) and abs(float(np.corrcoef(x, y)[0, 1])) > _COPY
