"""An environment is three arrays: what arrives, what each arm is worth, and what each arm would pay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Environment:
    """A bandit problem, drawn once, so that every policy meets the same luck."""

    name: str
    """The scenario's name, as `make` knows it."""
    contexts: NDArray[np.float64]
    """(T, P); NaN where a value is missing."""
    means: NDArray[np.float64]
    """(T, K) mean reward of every arm in every round."""
    rewards: NDArray[np.float64]
    """(T, K) the reward each arm would pay in each round."""

    def __post_init__(self) -> None:
        if self.means.shape != self.rewards.shape or len(self.contexts) != len(self.means):
            raise ValueError(
                "contexts (T, P), means (T, K) and rewards (T, K) must agree, got "
                f"{self.contexts.shape}, {self.means.shape} and {self.rewards.shape}"
            )

    @property
    def horizon(self) -> int:
        """Number of rounds T."""
        return len(self.contexts)

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return int(self.means.shape[1])
