"""Sizes at which models are refitted, and the fit that answers after a number of rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

TOGETHER = 1024
"""Predictions that are cheaper to compute and discard than to compute in a call of their own."""


class Fit(Protocol):
    """Coefficients fitted to the first rows of a history."""

    @property
    def size(self) -> int:
        """Number of these rows."""


F = TypeVar("F", bound=Fit)


def latest(fits: Sequence[F], size: int) -> F:
    """Return the last fit to at most ``size`` rows; the first of all is a fit to no rows."""
    return fits[bisect_right(fits, size, key=lambda fit: fit.size) - 1]


def four_per_doubling(n: int) -> list[int]:
    """Return every size up to 16, then four per doubling, up to n.

    Examples
    --------
    >>> four_per_doubling(40)[-7:]
    [15, 16, 20, 24, 28, 32, 40]
    """
    sizes, size = [], 1
    while size <= n:
        sizes.append(size)
        size += 1 if size < 16 else 2 ** (size.bit_length() - 1) // 4
    return sizes


def two_per_doubling(n: int) -> list[int]:
    """Return two sizes per doubling, up to n: for costly models.

    Examples
    --------
    >>> two_per_doubling(20)
    [1, 2, 3, 4, 6, 8, 12, 16]
    """
    doublings = [1 << k for k in range(n.bit_length())]
    return sorted(s for s in {*doublings, *(3 * d // 2 for d in doublings[1:])} if s <= n)


def grouped(cuts: Sequence[int], batch: int = 1) -> list[list[int]]:
    """Join steps between cuts while it is cheap to predict all their rows after all their sizes.

    Examples
    --------
    >>> grouped([0, 1, 2, 3, 4, 64, 80, 96])
    [[0, 1, 2, 3, 4, 64, 80, 96]]
    >>> grouped([2048, 2560, 3072])
    [[2048, 2560], [2560, 3072]]
    """
    groups: list[list[int]] = []
    for begin, end in pairwise(cuts):
        if groups and batch * len(groups[-1]) * (end - groups[-1][0]) <= TOGETHER:
            groups[-1].append(end)
        else:
            groups.append([begin, end])
    return groups
