"""Contexts announced in advance, and what was computed at them while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pfnts.arrays import Matrix

T = TypeVar("T")


@dataclass(frozen=True)
class _Block(Generic[T]):
    """Values at the announced contexts from ``begin`` to ``end``."""

    version: Hashable
    begin: int
    end: int
    values: T


class PrefetchCache(Generic[T]):
    """Values of several models (of each arm, say) at announced contexts, by the version of each model.

    A stretch of contexts is computed at a time. When a model's version changes, it alone is asked again,
    about the contexts that are still to come. What is found is the same with and without the cache.

    Parameters
    ----------
    X
        Encoded contexts (Q, P), best in the order in which they will come.

    Examples
    --------
    >>> cache = PrefetchCache(np.array([[1.0], [2.0], [3.0]]))
    >>> def ask(keys, X):
    ...     print("asked", keys, X.ravel())
    ...     return [10 * X.ravel() for _ in keys]
    >>> cache.find(np.array([[1.0]]), {"a": 0}, ask, np.take)["a"]
    asked ['a'] [1. 2. 3.]
    array([10.])
    >>> cache.find(np.array([[2.0]]), {"a": 0}, ask, np.take)["a"]
    array([20.])
    """

    def __init__(self, X: Matrix) -> None:
        self._X = X
        self._places: dict[bytes, list[int]] = {}
        for place, x in enumerate(X):
            self._places.setdefault(x.tobytes(), []).append(place)
        self._next = 0
        self._blocks: dict[Hashable, _Block[T]] = {}

    def find(
        self,
        X: Matrix,
        versions: Mapping[Any, Hashable],
        ask: Callable[[list[Any], Matrix], Sequence[T]],
        take: Callable[[T, NDArray[np.int64]], T],
        *,
        ahead: int = 256,
    ) -> dict[Any, T]:
        """Values at contexts ``X`` (q, P) by the keys of ``versions``; ``ask(keys, X)`` computes new ones.

        ``take(values, rows)`` cuts some rows out of values. ``ahead`` contexts are computed at a time, about
        as many as come before a version changes.
        """
        places = self._locate(X)
        if places is None:
            return dict(zip(versions, ask(list(versions), X), strict=True))
        first, last = int(places.min()), int(places.max())
        stale = [
            key
            for key, version in versions.items()
            if (block := self._blocks.get(key)) is None
            or block.version != version
            or not block.begin <= first <= last < block.end
        ]
        if stale:
            # Where others are still good, up to where they are, so that all run out together.
            ends = [block.end for key, block in self._blocks.items() if key not in stale and key in versions]
            end = max(last + 1, min([*ends, first + ahead, len(self._X)]))
            for key, values in zip(stale, ask(stale, self._X[first:end]), strict=True):
                self._blocks[key] = _Block(versions[key], first, end, values)
        return {key: take(self._blocks[key].values, places - self._blocks[key].begin) for key in versions}

    def _locate(self, X: Matrix) -> NDArray[np.int64] | None:
        """Places of the contexts among those announced, from the last found on; None if one is missing."""
        found = []
        at = self._next
        for x in X:
            places = self._places.get(x.tobytes())
            if places is None:
                return None
            # Contexts may repeat: the next of its kind, or the last if all have passed.
            place = next((p for p in places if p >= at), places[-1])
            found.append(place)
            at = place + 1
        self._next = min(found[0], len(self._X) - 1) if found else self._next
        return np.array(found, dtype=np.int64)
