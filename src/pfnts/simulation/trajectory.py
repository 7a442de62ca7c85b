"""The result of a simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Trajectory:
    """The rounds of one policy in one environment.

    Examples
    --------
    >>> trajectory = Trajectory(
    ...     arms=np.array([0, 1]), rewards=np.array([0.5, 2.0]), regret=np.array([1.0, 0.0]),
    ...     propensities=np.full((2, 2), 0.5), fixed=np.array([1.0, 2.0]), seconds=0.1,
    ... )
    >>> trajectory.horizon, trajectory.total_regret, float(trajectory.fixed.min())
    (2, 1.0, 1.0)
    """

    arms: NDArray[np.int64]
    """(T,) index of the arm pulled."""
    rewards: NDArray[np.float64]
    """(T,) reward received."""
    regret: NDArray[np.float64]
    """(T,) mean reward lost in each round against the best arm."""
    propensities: NDArray[np.float64]
    """(T, K) probability with which the policy would have pulled each arm; NaN where it does not say."""
    fixed: NDArray[np.float64]
    """(K,) regret of pulling the same arm in all these rounds: what a policy without contexts could reach."""
    seconds: float
    """Wall-clock time of all rounds together."""

    def __post_init__(self) -> None:
        rounds = {len(self.arms), len(self.rewards), len(self.regret), len(self.propensities)}
        if len(rounds) != 1:
            raise ValueError(
                "arms, rewards, regret and propensities must have one entry a round, got lengths "
                f"{len(self.arms)}, {len(self.rewards)}, {len(self.regret)} and {len(self.propensities)}"
            )
        if self.fixed.shape != self.propensities.shape[1:]:
            raise ValueError(
                f"fixed must have one entry an arm, {self.propensities.shape[1:]}, got {self.fixed.shape}"
            )

    @property
    def horizon(self) -> int:
        """Number of rounds T."""
        return len(self.arms)

    @property
    def total_regret(self) -> float:
        """Regret summed over all rounds."""
        return float(self.regret.sum())

    @property
    def cumulative_regret(self) -> NDArray[np.float64]:
        """(T,) regret summed up to each round."""
        return np.cumsum(self.regret)
