"""An environment is three arrays: what arrives, what each arm is worth, and what each arm would pay."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
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
    arms: tuple[str, ...] | None = None
    """(K,) what the arms are called, where they have names."""
    features: tuple[str, ...] | None = None
    """(P,) what the features are called, where they have names."""

    def __post_init__(self) -> None:
        if self.means.shape != self.rewards.shape or len(self.contexts) != len(self.means):
            raise ValueError(
                "contexts (T, P), means (T, K) and rewards (T, K) must agree, got "
                f"{self.contexts.shape}, {self.means.shape} and {self.rewards.shape}"
            )
        if self.arms is not None and len(self.arms) != self.n_arms:
            raise ValueError(f"arms must name all {self.n_arms} arms, got {len(self.arms)} names")
        if self.features is not None and len(self.features) != self.contexts.shape[1]:
            raise ValueError(
                f"features must name all {self.contexts.shape[1]} features, got {len(self.features)} names"
            )

    @property
    def horizon(self) -> int:
        """Number of rounds T."""
        return len(self.contexts)

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return int(self.means.shape[1])


def generator(rng: object) -> Generator:
    """Give a generator back, or make one from a seed.

    Examples
    --------
    >>> generator(0).random() == np.random.default_rng(0).random()
    True
    """
    if isinstance(rng, Generator):
        return rng
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise ValueError(f"rng must be a numpy.random.Generator or a seed from 0 on, got {rng!r}")


def checked_horizon(horizon: object) -> int:
    """Give a number of rounds back, or say what is wrong with it.

    Examples
    --------
    >>> checked_horizon(100)
    100
    """
    try:
        rounds = operator.index(horizon)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"horizon must be a positive integer, got {horizon!r}") from None
    if rounds < 1:
        raise ValueError(f"horizon must be a positive integer, got {horizon}")
    return rounds
