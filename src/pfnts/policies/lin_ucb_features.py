"""Linear upper confidence bounds, one model for all arms, which are told apart by their features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.arms.interactions import products
from pfnts.contexts import Schema
from pfnts.events import ActionSet
from pfnts.policies import rules
from pfnts.policies.arguments import Arms, check_number
from pfnts.policies.base import Policy
from pfnts.policies.decision import Choices, Mask, Matrix, Vector
from pfnts.policies.ridge import RidgeModels
from pfnts.policies.traffic import NO_WARMUP, Traffic


class LinUCBFeatures(Policy):
    """The arm with the largest z' b + alpha sqrt(z' A^-1 z), one ridge regression for all arms.

    z holds a constant, the context, the arm's features, and the products of context and features. Arms with
    equal bounds share the decision evenly; missing values count as zero.

    Parameters
    ----------
    arms
        A mapping of labels to features; None where every decision brings its own candidates.
    alpha
        How many standard deviations of a reward the bound lies above the mean.
    penalty
        Prior precision of each coefficient.
    traffic
        Warm-up, pooled over all arms, and shares of the rounds that are not left to the bounds.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> policy = LinUCBFeatures({"a": [0.0], "b": [1.0]}, alpha=0.1)
    >>> outcomes = policy.update([[1.0], [1.0]], arm=["a", "b"], reward=[0.0, 5.0])
    >>> policy.decide([1.0], rng=np.random.default_rng(0), candidates=[[0.5], [2.0], [0.1]]).arm
    1
    """

    name = "lin-ucb-features"
    rule = "greedy"
    judges_features = True

    def __init__(
        self,
        arms: Arms,
        *,
        alpha: float = 1.0,
        penalty: float = 1.0,
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if arms is not None and not isinstance(arms, Mapping):
            raise ValueError(f"arms must be a mapping of labels to features, or None, got {arms!r}")
        super().__init__(arms, traffic=traffic, schema=schema)
        self._alpha = check_number("alpha", alpha)
        self._penalty = check_number("penalty", penalty, positive=True)

    def _reset(self, width: int, n_arms: int) -> None:  # noqa: ARG002
        columns = (1 + width) * (1 + self._shape[2])
        self._ridge = RidgeModels(n_arms=1, width=columns, penalty=self._penalty)

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:  # noqa: ARG002
        features = self._fold().features[self._learned : self._learned + len(X)]
        for row, reward in zip(with_products(X, features), rewards, strict=True):
            self._ridge.observe(row, arm=0, reward=float(reward))

    def _grow(self, n_arms: int) -> bool:  # noqa: ARG002
        return True

    def _held(self, arms: Any) -> NDArray[np.int64]:
        return np.full(len(arms), self._fold().size)

    def _choose(self, X: Matrix, arms: ActionSet, eligible: Mask, uniforms: Matrix) -> Choices:
        rows = arms.rows(X)
        mean, spread = self._ridge.predict(with_products(rows[:, : X.shape[1]], rows[:, X.shape[1] :]))
        bound = (mean + self._alpha * np.sqrt(spread)).reshape(len(arms), len(X)).T
        return rules.greedy(bound, eligible, uniforms[:, -1])

    def _settings(self) -> dict[str, Any]:
        return {"alpha": self._alpha, "penalty": self._penalty}


def with_products(X: Matrix, features: Matrix) -> Matrix:
    """All products (n, (1 + P) (1 + A)) of contexts (n, P) with features (n, A), a constant in each.

    Examples
    --------
    >>> with_products(np.array([[2.0]]), np.array([[3.0, 5.0]]))
    array([[ 1.,  3.,  5.,  2.,  6., 10.]])
    """
    one = np.ones((len(X), 1))
    left, right = (np.concatenate([one, np.nan_to_num(part)], axis=1) for part in (X, features))
    return products(left, right)
