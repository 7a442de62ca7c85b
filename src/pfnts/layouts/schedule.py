"""Sizes of a history at which its posterior is recomputed."""

from __future__ import annotations

import math

FIRST_POSTERIOR = 3
"""Rows that a posterior needs: with fewer, SubCLT's prefix grid has no block."""


def check_refresh(refresh: float) -> float:
    """Return the growth factor of refresh points, or raise an error."""
    if not (math.isfinite(refresh) and refresh > 1):
        raise ValueError(f"refresh must be a finite number above 1, got {refresh}")
    return float(refresh)


def next_refresh(n: int, refresh: float) -> int:
    """Return the first refresh point after n rows: 3, 4, and then each about ``refresh`` times the last.

    Points are round where a step is long, in numbers that the network's caches are made of. With
    ``refresh=2`` they are those of the paper's prefix grid.

    Examples
    --------
    >>> points = [0]
    >>> while points[-1] < 900:
    ...     points.append(next_refresh(points[-1], 1.5))
    >>> points[1:]
    [3, 4, 6, 9, 13, 19, 28, 42, 60, 88, 128, 192, 288, 416, 608, 896, 1344]
    """
    if n < FIRST_POSTERIOR:
        return FIRST_POSTERIOR
    point = FIRST_POSTERIOR + 1
    while point <= n:
        following = max(point + 1, math.floor(refresh * point))
        # A power of two up to 64 that shortens the step by less than a quarter of it.
        unit = 1 << max(0, min(6, ((following - point) // 4).bit_length() - 1))
        point = following - following % unit
    return point


def last_refresh(n: int, refresh: float) -> int:
    """Return the last refresh point up to n rows, of which there must be enough for one.

    Examples
    --------
    >>> last_refresh(127, 1.5), last_refresh(128, 1.5)
    (88, 128)
    """
    point = following = FIRST_POSTERIOR
    while following <= n:
        point, following = following, next_refresh(following, refresh)
    return point
