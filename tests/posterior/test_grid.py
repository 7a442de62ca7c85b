"""The prefix grid against the paper's formula."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pfnts.posterior import prefix_grid

LENGTHS = st.integers(3, 200_000)
BASES = st.floats(1.01, 20.0)


def test_base_two_doubles() -> None:
    assert prefix_grid(100, 2) == [2, 4, 8, 16, 32, 64]
    assert prefix_grid(64, 2) == [2, 4, 8, 16, 32, 64]
    assert prefix_grid(63, 2) == [2, 4, 8, 16, 32]


def test_base_one_and_a_half_rounds_down_and_moves_at_least_by_one() -> None:
    assert prefix_grid(50, 1.5) == [2, 3, 4, 6, 9, 13, 19, 28, 42]


def test_base_three_triples() -> None:
    assert prefix_grid(200, 3) == [2, 6, 18, 54, 162]


def test_grid_without_a_block_ends_at_the_history() -> None:
    assert prefix_grid(5, 3) == [2, 5]
    assert prefix_grid(3) == [2, 3]


@given(n=LENGTHS, base=BASES)
def test_grid_rises_from_two_to_at_most_n(n: int, base: float) -> None:
    grid = prefix_grid(n, base)
    assert grid[0] == 2
    assert grid[-1] <= n
    assert len(grid) >= 2
    assert all(a < b for a, b in pairwise(grid))


@given(n=LENGTHS, base=BASES)
def test_next_point_would_exceed_the_history(n: int, base: float) -> None:
    last = prefix_grid(n, base)[-1]
    assert max(last + 1, math.floor(base * last)) > n


@given(n=LENGTHS, more=st.integers(0, 100_000), base=BASES)
def test_longer_history_keeps_the_points_it_had(n: int, more: int, base: float) -> None:
    first = max(3, math.floor(2 * base))
    if n < first:  # the one block that ends at n itself moves with n
        return
    short, long = prefix_grid(n, base), prefix_grid(n + more, base)
    assert long[: len(short)] == short


@given(n=LENGTHS)
def test_number_of_points_is_logarithmic(n: int) -> None:
    assert len(prefix_grid(n, 2)) == max(2, math.floor(math.log2(n)))


@pytest.mark.parametrize("n", [-1, 0, 2])
def test_short_history_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match=f"n must be at least 3.*got {n}"):
        prefix_grid(n)


@pytest.mark.parametrize("base", [1.0, 0.5, -2.0, math.inf, math.nan])
def test_base_must_exceed_one(base: float) -> None:
    with pytest.raises(ValueError, match="base must be a finite number above 1, got"):
        prefix_grid(10, base)
