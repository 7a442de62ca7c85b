"""Which rows a model forgets, and when: a function of the number of rows alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_HORIZON = 12
"""Half-lives after which all rows are gone: one in 2,000 would be left."""


@dataclass(frozen=True)
class Forgetting:
    """A window, or a half-life, of rows. At a cut the models are started anew from the rows that stay.

    Examples
    --------
    >>> forgetting = Forgetting(window=100)
    >>> forgetting.next_cut(150), forgetting.next_cut(200), forgetting.kept(200)[[0, -1]]
    (200, 300, array([100, 199]))
    """

    window: int | None = None
    """A model that holds twice as many rows is started anew from the last ones, of all arms together."""
    half_life: int | None = None
    """Each time this many rows have come, half of the older ones leave, drawn by a hash of their numbers."""

    def next_cut(self, n: int) -> int | None:
        """Number of rows, above n, at which rows leave next; None for never."""
        step = self.window or self.half_life
        return None if step is None else max(2, n // step + 1) * step

    def kept(self, n: int) -> NDArray[np.int64]:
        """Numbers of the rows that stay at a cut after n rows, in order."""
        if self.window is not None:
            return np.arange(n - self.window, n)
        if self.half_life is None:
            return np.arange(n)
        rows = np.arange(max(0, n - _HORIZON * self.half_life), n)
        older = (n - 1 - rows) // self.half_life  # cuts that a row has outlived since it was new
        return rows[uniform_hash(rows) < 0.5**older]


def uniform_hash(numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Numbers as if drawn uniformly from [0, 1), always the same for the same: Steele's splitmix64.

    Examples
    --------
    >>> uniform_hash(np.array([0, 1])).round(3)
    array([0.883, 0.432])
    """
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return np.asarray((z >> np.uint64(11)) / 2.0**53, dtype=np.float64)
