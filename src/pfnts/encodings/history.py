"""Everything a policy has observed, in the order of arrival."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


class History:
    """Contexts, arms and rewards in the order in which the rewards arrived.

    An arm's number never changes and is never given to another arm, so that removed arms keep their rows.

    Parameters
    ----------
    width
        Floats in an encoded context.
    n_arms
        Arms there have ever been.

    Examples
    --------
    >>> history = History(width=1, n_arms=2)
    >>> history.append(np.array([[0.5]]), np.array([1]), np.array([3.0]))
    >>> history.size, history.rewards
    (1, array([3.]))
    """

    def __init__(self, *, width: int, n_arms: int) -> None:
        self.n_arms = n_arms
        """Arms there have ever been, removed ones included."""
        self.size = 0
        """Rewards observed."""
        self._contexts = np.empty((64, width))
        self._arms = np.empty(64, dtype=np.int64)
        self._rewards = np.empty(64)

    @property
    def contexts(self) -> Matrix:
        """(n, P) encoded contexts."""
        return self._contexts[: self.size]

    @property
    def arms(self) -> NDArray[np.int64]:
        """(n,) numbers of the arms pulled."""
        return self._arms[: self.size]

    @property
    def rewards(self) -> Vector:
        """(n,) rewards."""
        return self._rewards[: self.size]

    def append(self, contexts: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        """Add rows at the end."""
        end = self.size + len(rewards)
        if end > len(self._rewards):
            spare = max(end, 2 * len(self._rewards)) - len(self._rewards)
            self._contexts = np.pad(self._contexts, ((0, spare), (0, 0)))
            self._arms = np.pad(self._arms, (0, spare))
            self._rewards = np.pad(self._rewards, (0, spare))
        self._contexts[self.size : end] = contexts
        self._arms[self.size : end] = arms
        self._rewards[self.size : end] = rewards
        self.size = end
