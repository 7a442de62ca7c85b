"""A problem in which arms cost something and all pulls together may cost so much, with its optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.environments.base import Environment, checked_horizon, generator


@dataclass(frozen=True)
class BudgetedEnvironment:
    """An environment with costs and a budget.

    Examples
    --------
    >>> problem = budgeted(horizon=200, rng=0)
    >>> problem.environment.arms, problem.costs
    (('none', 'mail', 'call'), array([0. , 0.2, 1. ]))
    >>> problem.optimum > problem.earned(np.zeros(200, dtype=np.int64))
    True
    """

    environment: Environment
    """Contexts, mean rewards and rewards; costs are not deducted there."""
    costs: NDArray[np.float64]
    """(K,) what a pull of each arm costs."""
    budget: float
    """What all pulls together may cost."""

    @property
    def optimum(self) -> float:
        """Mean reward less cost of the best that anybody can do who knows all contexts and means.

        A linear programme: each round takes arms in shares, so that no policy within the budget earns more.
        """
        means = self.environment.means
        rounds, arms = means.shape
        from scipy import sparse  # slow to import, and few need it
        from scipy.optimize import linprog

        found = linprog(
            -(means - self.costs).ravel(),
            A_ub=np.tile(self.costs, rounds)[None],
            b_ub=[self.budget],
            A_eq=sparse.kron(sparse.eye_array(rounds), np.ones((1, arms))),
            b_eq=np.ones(rounds),
            method="highs",
        )
        return float(-found.fun)

    def spent(self, arms: NDArray[np.int64]) -> float:
        """Cost of pulling ``arms`` (T,)."""
        return float(self.costs[arms].sum())

    def earned(self, arms: NDArray[np.int64]) -> float:
        """Mean reward less cost of pulling ``arms`` (T,)."""
        means = self.environment.means
        return float(means[np.arange(len(arms)), arms].sum()) - self.spent(arms)


def budgeted(*, horizon: int, rng: Generator | int, share: float = 0.15) -> BudgetedEnvironment:
    """Whom to write to and whom to call: both pay off with some people, and not all of them can be called.

    Parameters
    ----------
    horizon
        Number of rounds.
    rng
        Where contexts and rewards come from, or its seed.
    share
        Budget as a share of what calling everybody would cost.
    """
    rounds, rng = checked_horizon(horizon), generator(rng)
    X = rng.random((rounds, 5))
    none = 1 + X[:, 0]
    mail = none + 0.9 * (X[:, 1] > 0.5) * X[:, 2]
    call = none + 6.0 * X[:, 2] * np.sin(np.pi * X[:, 3]) ** 2
    means = np.column_stack([none, mail, call])
    rewards = means + 0.5 * rng.standard_normal(means.shape)
    environment = Environment("budget", X, means, rewards, arms=("none", "mail", "call"))
    return BudgetedEnvironment(environment, np.array([0.0, 0.2, 1.0]), share * rounds)
