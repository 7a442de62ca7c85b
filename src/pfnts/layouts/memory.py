"""When posteriors are recomputed, and which rows are forgotten."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pfnts.layouts.schedule import check_refresh

_FEWEST = 64
_HORIZON = 12
"""Half-lives after which all rows are gone: one in 2,000 would be left."""


@dataclass(frozen=True)
class Memory:
    """When what was learned reaches the decisions, and when it is forgotten.

    Examples
    --------
    >>> Memory(refresh=2, window=1000)
    Memory(refresh=2.0, window=1000, half_life=None, detector=2000.0)
    >>> Memory(window=100).next_cut(150), Memory(window=100).kept(200)[[0, -1]]
    (200, array([100, 199]))
    """

    refresh: float = 1.05
    """Factor by which a history grows before its posterior is recomputed; the paper's is 2."""
    window: int | None = None
    """Rows that are remembered at least: a model that holds twice as many is started anew from the last
    ones, of all arms together. No round costs more than with a history of twice the window."""
    half_life: int | None = None
    """Each time this many rows have come, half of the older ones leave, drawn by a hash of their numbers; at
    most about three times as many are held."""
    detector: float | None = 2000.0
    """A detector notices rewards that surprise the model, refreshes it, and starts it anew from the rows
    since then, with a warm-up, once these predict better by themselves. On average it takes at least this
    many rows from one false alarm to the next. None for no detector."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "refresh", check_refresh(self.refresh))
        for name in ("window", "half_life"):
            rows = getattr(self, name)
            if rows is not None and (isinstance(rows, bool) or not rows >= _FEWEST or rows % 1):
                raise ValueError(f"{name} must be a number of rows from {_FEWEST} on, or None, got {rows!r}")
            object.__setattr__(self, name, None if rows is None else int(rows))
        if self.window is not None and self.half_life is not None:
            raise ValueError(f"window must be None beside half_life={self.half_life}, got {self.window}")
        if self.detector is not None and not 1 <= self.detector < float("inf"):
            raise ValueError(f"detector must be a number of rows from 1 on, or None, got {self.detector!r}")

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


MEMORY = Memory()
"""The default of PFN-TS."""


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
