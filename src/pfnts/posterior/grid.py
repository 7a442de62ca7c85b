"""The geometric grid of prefix sizes on which SubCLT looks at a predictive sequence."""

from __future__ import annotations

import math


def prefix_grid(n: int, base: float = 2.0) -> list[int]:
    """Prefix sizes ``2 = t_0 < t_1 < ... < t_J <= n``, each about ``base`` times the one before.

    The paper's rule is ``t_{j+1} = max(t_j + 1, floor(base * t_j))`` while it does not exceed ``n``. Where
    not even one block fits, the grid ends at ``n`` itself, so that there is always a block.

    Parameters
    ----------
    n
        Length of the history, at least 3.
    base
        Growth factor, above 1; smaller means more prefixes.

    Examples
    --------
    >>> prefix_grid(100, 2)
    [2, 4, 8, 16, 32, 64]
    >>> prefix_grid(5, 3)
    [2, 5]
    """
    if n < 3:
        raise ValueError(f"n must be at least 3 for a block of prefixes to exist, got {n}; warm up longer")
    if not (math.isfinite(base) and base > 1):
        raise ValueError(f"base must be a finite number above 1, got {base}")
    grid = [2]
    while (step := max(grid[-1] + 1, math.floor(base * grid[-1]))) <= n:
        grid.append(step)
    return grid if len(grid) > 1 else [2, n]
