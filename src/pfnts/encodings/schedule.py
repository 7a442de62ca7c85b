"""When what is believed about an arm is worked out anew."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from pfnts.posterior import prefix_grid

FIRST_POSTERIOR = 3
"""Rows without which the prefix grid has no block, and so an arm no posterior."""


@dataclass(frozen=True)
class Schedule:
    """Refresh points: sizes of a history at which its posterior changes; rows between two of them wait.

    They are the points of the prefix grid, and so many between them that a history grows by no more than
    the factor ``refresh``. The paper refreshes at the grid alone, as does ``refresh=base``.

    Parameters
    ----------
    base
        Ratio of the prefix grid.
    refresh
        Ratio of refresh points, above 1; smaller forgets less of what is known and takes longer.

    Examples
    --------
    >>> Schedule(base=2.0, refresh=2.0).points(40)
    [3, 4, 8, 16, 32]
    >>> Schedule(base=2.0, refresh=1.5).points(40)
    [3, 4, 6, 8, 12, 16, 24, 32]
    """

    base: float = 2.0
    refresh: float = 1.5

    def __post_init__(self) -> None:
        prefix_grid(FIRST_POSTERIOR, self.base)
        if not self.refresh > 1:
            raise ValueError(f"refresh must be above 1, got {self.refresh}")

    def points(self, n: int) -> list[int]:
        """Refresh points up to n. Before the first block of the grid is complete every row is one."""
        if n < FIRST_POSTERIOR:
            return []
        grid = prefix_grid(n, self.base)
        points = list(range(FIRST_POSTERIOR, grid[1]))
        for begin, end in pairwise([*grid[1:], n + 1]):
            point = begin
            while point < end:
                points.append(point)
                point = max(point + 1, math.floor(min(self.refresh * point, end)))
        return points
