"""Sizes of a history at which its posterior is recomputed."""

from __future__ import annotations

import math

FIRST_POSTERIOR = 3
"""Rows that a posterior needs: with fewer, SubCLT's prefix grid has no block."""


def check_refresh(refresh: float) -> float:
    """Return the growth factor of refresh points, or complain."""
    if not (math.isfinite(refresh) and refresh > 1):
        raise ValueError(f"refresh must be a finite number above 1, got {refresh}")
    return float(refresh)


def next_refresh(n: int, refresh: float) -> int:
    """Return the first refresh point after n rows: 3, 4, and then each about ``refresh`` times the last.

    With ``refresh=2`` these are the points of the paper's prefix grid.

    Examples
    --------
    >>> points = [0]
    >>> while points[-1] < 40:
    ...     points.append(next_refresh(points[-1], 1.5))
    >>> points[1:]
    [3, 4, 6, 9, 13, 19, 28, 42]
    """
    if n < FIRST_POSTERIOR:
        return FIRST_POSTERIOR
    point = FIRST_POSTERIOR + 1
    while point <= n:
        point = max(point + 1, math.floor(refresh * point))
    return point
