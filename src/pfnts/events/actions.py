"""The arms that one decision is among."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema, Table
from pfnts.events.event import Label

Matrix = NDArray[np.float64]
CANDIDATE = -1
"""Number of every candidate that a decision brings along: it is no arm."""


@dataclass(frozen=True, eq=False)
class ActionSet(Sequence[int]):
    """Numbers of the arms of a decision, in the order of its propensities, and their features.

    Examples
    --------
    >>> actions = ActionSet((0, 2), np.array([[9.9], [4.5]]))
    >>> list(actions), actions.rows(np.array([[0.5, 1.0]]))
    ([0, 2], array([[0.5, 1. , 9.9],
           [0.5, 1. , 4.5]]))
    """

    numbers: tuple[int, ...]
    """(K,); `CANDIDATE` throughout where the decision brought its own."""
    features: Matrix
    """(K, A) floats; A is 0 where arms have no features."""
    labels: tuple[Label, ...] = ()
    """(K,) of the arms; of candidates, their positions."""
    candidates: Table | None = None
    """Features as a log keeps them, where the decision brought its own candidates; None for arms."""
    arm_schema: Schema | None = None
    """The schema that encoded these; it knows all their categories."""

    @classmethod
    def of(cls, numbers: Sequence[int]) -> ActionSet:
        """Arms without features."""
        return cls(tuple(numbers), np.empty((len(numbers), 0)))

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, place: Any) -> Any:
        return self.numbers[place]

    def take(self, places: Sequence[int]) -> ActionSet:
        """Keep some, in the order given."""
        return ActionSet(tuple(self.numbers[place] for place in places), self.features[list(places)])

    def rows(self, X: Matrix) -> Matrix:
        """Contexts (q, P) under every arm, arm by arm: (K q, P + A)."""
        return np.concatenate([np.tile(X, (len(self), 1)), np.repeat(self.features, len(X), axis=0)], axis=1)
