"""An environment is three arrays: what arrives, what each arm is worth, and what each arm would pay."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.events import Label


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
    arm_features: NDArray[np.float64] | None = None
    """(K, A) features of the arms, where they have any."""
    available: NDArray[np.bool_] | None = None
    """(T, K) whether each arm is there in each round; None if all are there throughout."""

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

        if self.arm_features is not None and len(self.arm_features) != self.n_arms:
            raise ValueError(
                f"arm_features must have a row for each of {self.n_arms} arms, got {len(self.arm_features)}"
            )
        if self.available is not None and (
            self.available.shape != self.means.shape or not self.available.any(axis=1).all()
        ):
            raise ValueError(
                f"available must be {self.means.shape} with an arm in every round, got {self.available.shape}"
            )

    def first_arms(self, *, features: bool) -> int | list[Label] | dict[Label, list[float]]:
        """What a policy is made with: the arms of the first round, with their features if it judges by them.

        Examples
        --------
        >>> array = np.zeros((3, 2))
        >>> environment = Environment("x", array, array, array, arm_features=np.array([[7.0], [8.0]]))
        >>> environment.first_arms(features=True), environment.first_arms(features=False)
        ({0: [7.0], 1: [8.0]}, 2)
        """
        if features and self.arm_features is not None:
            return {self.labels[arm]: self.arm_features[arm].tolist() for arm in self.there(0)}
        return self.n_arms if self.available is None else [self.labels[arm] for arm in self.there(0)]

    def there(self, t: int) -> list[int]:
        """Numbers of the arms in round t."""
        return (
            list(range(self.n_arms)) if self.available is None else np.flatnonzero(self.available[t]).tolist()
        )

    @property
    def labels(self) -> tuple[Label, ...]:
        """(K,) names of the arms, or their numbers."""
        return tuple(range(self.n_arms)) if self.arms is None else self.arms

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
