"""How often intervals hold the truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def coverage(lower: ArrayLike, upper: ArrayLike, truth: ArrayLike) -> float:
    """Share of the truths that lie within their interval, ends included.

    Parameters
    ----------
    lower, upper
        Ends of the intervals, of one shape.
    truth
        What the intervals should hold, of the same shape.

    Examples
    --------
    >>> coverage([0.0, 0.0], [1.0, 1.0], [0.5, 2.0])
    0.5
    """
    low, high, value = (np.asarray(part, dtype=np.float64) for part in (lower, upper, truth))
    if not low.shape == high.shape == value.shape or value.size == 0:
        shapes = (low.shape, high.shape, value.shape)
        raise ValueError(f"lower, upper and truth must have one shape with at least one entry, got {shapes}")
    if (low > high).any():
        raise ValueError("lower must not exceed upper, got an interval with its ends the wrong way round")
    return float(((low <= value) & (value <= high)).mean())
