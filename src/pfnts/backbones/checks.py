"""What every backbone demands of its arguments, in the same words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from pfnts.backbones.base import Append, Matrix, Vector


def check_rows(X: ArrayLike, y: ArrayLike, *, columns: int | None) -> tuple[Matrix, Vector]:
    """Observations as arrays (m, P) and (m,); ``columns`` is None where the history starts."""
    X = check_queries(X, columns, name="X")
    y = np.asarray(y, dtype=np.float64)
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must have one number for each of the {len(X)} rows of X, got shape {y.shape}")
    if not np.isfinite(y).all():
        raise ValueError(f"y must be finite, got {y[~np.isfinite(y)][0]}; drop such rows")
    if columns is None and len(y) == 0:
        raise ValueError("X must have at least one row to start a history, got none")
    return X, y


def check_queries(X: ArrayLike, columns: int | None, *, name: str = "queries") -> Matrix:
    """Contexts as an array (q, P); NaN is a missing value."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"{name} must have two axes, rows and columns, got shape {X.shape}")
    if columns is not None and X.shape[1] != columns:
        raise ValueError(f"{name} must have {columns} columns like the history, got {X.shape[1]}")
    if np.isinf(X).any():
        raise ValueError(f"{name} must not be infinite; write a missing value as NaN")
    return X


def check_sizes(sizes: Sequence[int], held: int) -> NDArray[np.int64]:
    """Prefix sizes as an array, each between 1 and the rows held."""
    chosen = np.asarray(sizes)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise ValueError(f"sizes must be a list of whole numbers, got {sizes!r}")
    if chosen.size and not (chosen.min() >= 1 and chosen.max() <= held):
        raise ValueError(f"sizes must be between 1 and the {held} rows held, got {sizes!r}")
    return chosen.astype(np.int64)


def check_levels(levels: ArrayLike) -> Vector:
    """Quantile levels as an array."""
    level = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    if level.ndim != 1 or not ((level > 0) & (level < 1)).all():
        raise ValueError(f"levels must be one row of numbers strictly between 0 and 1, got {level}")
    return level


def check_question(
    queries: ArrayLike, sizes: Sequence[int], levels: ArrayLike, *, columns: int, held: int
) -> tuple[Matrix, NDArray[np.int64], Vector]:
    """Queries, prefix sizes and quantile levels as arrays."""
    x, chosen, level = check_queries(queries, columns), check_sizes(sizes, held), check_levels(levels)
    if len(level) and not len(chosen):
        raise ValueError(f"sizes must end with the prefix whose quantiles are wanted, got {sizes!r}")
    return x, chosen, level


def check_keep(keep: Sequence[int], columns: int) -> tuple[int, ...]:
    """Columns that are never mixed with others."""
    if not all(0 <= column < columns for column in keep):
        raise ValueError(f"keep must name columns from 0 to {columns - 1}, got {list(keep)}")
    return tuple(keep)


def check_appends(appends: Sequence[Append]) -> list[Append]:
    """Rows for sequences as arrays; each sequence at most once."""
    checked = []
    for one in appends:
        X, y = check_queries(one.X, None, name="X"), np.asarray(one.y, dtype=np.float64)
        if len(X) or y.size:
            X, y = check_rows(X, y, columns=None)
        one.sequence.append(X[:0], y[:0])  # raises if the sequence has another number of columns
        checked.append(replace(one, X=X, y=y, forecast=check_forecast(one.forecast, len(X))))
    if len({id(one.sequence) for one in checked}) < len(checked):
        raise ValueError("appends must name each sequence at most once; join its rows into one Append")
    return checked


def check_forecast(forecast: NDArray[np.bool_] | None, rows: int) -> NDArray[np.bool_] | None:
    """Rows whose forecast is wanted (m,), or None if there are none."""
    if forecast is None:
        return None
    wanted = np.asarray(forecast)
    if wanted.dtype != np.bool_ or wanted.shape != (rows,):
        raise ValueError(
            f"forecast must be {rows} booleans, one per row, got {wanted.dtype} of shape {wanted.shape}"
        )
    return wanted if wanted.any() else None
