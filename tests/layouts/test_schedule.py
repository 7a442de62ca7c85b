from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfnts.layouts.schedule import check_refresh, next_refresh
from pfnts.posterior import prefix_grid


def points(n: int, refresh: float) -> list[int]:
    found, at = [], 0
    while (at := next_refresh(at, refresh)) <= n:
        found.append(at)
    return found


@given(st.integers(3, 5000), st.floats(1.01, 8.0))
def test_points_grow_by_the_factor_rounded_down_by_less_than_a_quarter_of_a_step(
    n: int, refresh: float
) -> None:
    found = points(n, refresh)
    assert found[0] == 3
    for before, after in pairwise(found[1:]):
        exact = max(before + 1, math.floor(refresh * before))
        assert exact - (exact - before) / 4 < after <= exact
        # The largest power of two up to 64 that is at most a quarter of the step.
        unit = max(u for u in (1, 2, 4, 8, 16, 32, 64) if u == 1 or 4 * u <= exact - before)
        assert after % unit == 0
        assert exact - after < unit


def test_long_steps_end_where_a_cache_has_no_tail() -> None:
    assert all(point % 64 == 0 for point in points(100_000, 1.5) if point > 1000)


@given(st.integers(4, 5000))
def test_doubling_is_the_grid_of_the_paper(n: int) -> None:
    assert points(n, 2.0)[1:] == prefix_grid(n, 2.0)[1:]


@given(st.integers(0, 5000), st.integers(0, 100), st.floats(1.01, 8.0))
def test_the_next_point_does_not_depend_on_where_between_points_one_stands(
    n: int, more: int, refresh: float
) -> None:
    following = next_refresh(n, refresh)
    assert following > n
    assert next_refresh(min(n + more, following - 1), refresh) == following


@pytest.mark.parametrize("refresh", [1.0, 0.5, math.nan, math.inf])
def test_the_factor_must_be_above_one(refresh: float) -> None:
    with pytest.raises(ValueError, match="refresh must be a finite number above 1, got"):
        check_refresh(refresh)
