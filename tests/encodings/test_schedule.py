from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pfnts.encodings.schedule import Schedule

from pfnts.posterior import prefix_grid

BASES, RATIOS = st.floats(1.05, 6.0), st.floats(1.01, 8.0)


@settings(deadline=None)
@given(st.integers(3, 300), BASES)
def test_with_the_ratio_of_the_grid_points_are_where_its_last_point_moves(n: int, base: float) -> None:
    slow = sorted({prefix_grid(m, base)[-1] for m in range(3, n + 1)})
    assert Schedule(base, base).points(n) == slow
    assert Schedule(base, math.inf).points(n) == slow


@settings(deadline=None)
@given(st.integers(3, 300), BASES, RATIOS)
def test_points_hold_the_grid_and_grow_by_no_more_than_the_ratio(n: int, base: float, refresh: float) -> None:
    points = Schedule(base, refresh).points(n)
    assert set(prefix_grid(n, base)[1:]) <= set(points)
    assert points[0] == 3
    assert points[-1] <= n < max(points[-1] + 1, points[-1] * refresh) + 1
    for before, after in pairwise(points):
        assert before < after <= max(before + 1, before * refresh)


@settings(deadline=None)
@given(st.integers(3, 300), st.integers(0, 300), BASES, RATIOS)
def test_a_longer_history_keeps_the_points_it_had(n: int, more: int, base: float, refresh: float) -> None:
    schedule = Schedule(base, refresh)
    points = [point for point in schedule.points(n + more) if point <= n]
    # Before the first block is complete the grid ends at the history's own size.
    assert points == schedule.points(n)


def test_no_refresh_before_three_rows() -> None:
    assert Schedule().points(2) == []


@pytest.mark.parametrize("refresh", [1.0, 0.5, math.nan])
def test_ratio_must_be_above_one(refresh: float) -> None:
    with pytest.raises(ValueError, match="refresh must be above 1, got"):
        Schedule(refresh=refresh)
