"""Codes of categories: how more categories than a column has places share these places."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=10_000)
def code(category: str, places: int) -> NDArray[np.float64]:
    """Compute the code (places,) of a category: random numbers of mean 0 and variance 1 / places.

    It depends on the category's text alone, so that it is the same in every process and after every restart.

    Examples
    --------
    >>> np.array_equal(code("north", 8), code("north", 8)), np.array_equal(code("north", 8), code("south", 8))
    (True, False)
    """
    digits = np.frombuffer(
        hashlib.shake_128(category.encode("utf-8", "surrogatepass")).digest(2 * places), dtype="<u2"
    )
    found: NDArray[np.float64] = (
        (digits - 32767.5) / 65536 * np.sqrt(12 / places)
    )  # uniform on (-1/2, 1/2), then scaled
    found.flags.writeable = False
    return found
