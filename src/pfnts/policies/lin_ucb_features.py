"""Linear upper confidence bounds, one model for all arms, which are told apart by their features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix
from pfnts.contexts import Schema
from pfnts.events import ActionSet, History
from pfnts.layouts.interactions import products
from pfnts.policies.arguments import Arms, check_number
from pfnts.policies.model import Model, Shape
from pfnts.policies.policy import Policy
from pfnts.policies.ridge import RidgeRegressions
from pfnts.policies.rules import UpperBound
from pfnts.policies.traffic import NO_WARMUP, Traffic
from pfnts.posterior import GaussianPosterior


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
    schema, seed
        See `Policy`.

    Examples
    --------
    >>> policy = LinUCBFeatures({"a": [0.0], "b": [1.0]}, alpha=0.1)
    >>> outcomes = policy.update([[1.0], [1.0]], arm=["a", "b"], reward=[0.0, 5.0])
    >>> policy.decide([1.0], rng=np.random.default_rng(0), candidates=[[0.5], [2.0], [0.1]]).arm
    1
    """

    name = "lin-ucb-features"
    takes_features = True

    def __init__(
        self,
        arms: Arms,
        *,
        alpha: float = 1.0,
        penalty: float = 1.0,
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        if arms is not None and not isinstance(arms, Mapping):
            raise ValueError(f"arms must be a mapping of labels to features, or None, got {arms!r}")
        alpha, penalty = check_number("alpha", alpha), check_number("penalty", penalty, positive=True)
        super().__init__(
            arms,
            model=FeatureRidge(penalty=penalty),
            rule=UpperBound(alpha),
            traffic=traffic,
            schema=schema,
            settings={"alpha": alpha, "penalty": penalty},
            seed=seed,
        )


class FeatureRidge(Model):
    """A ridge regression on contexts, features of the arm, and their products."""

    takes_features = True

    def __init__(self, *, penalty: float, shape: Shape | None = None) -> None:
        self._penalty, self._size = penalty, 0
        columns = 0 if shape is None else (1 + shape.width) * (1 + shape.features)
        self._regression = RidgeRegressions(n_arms=1, width=columns, penalty=penalty)

    def fresh(self, shape: Shape) -> FeatureRidge:
        """Return a model without rows."""
        return FeatureRidge(penalty=self._penalty, shape=shape)

    def observe(self, history: History, start: int, end: int) -> None:
        """Add rows."""
        rows = slice(start, end)
        design = with_products(history.contexts[rows], history.features[rows])
        for row, reward in zip(design, history.rewards[rows], strict=True):
            self._regression.observe(row, arm=0, reward=float(reward))
        self._size = end

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> GaussianPosterior:  # noqa: ARG002
        """Return the posterior (q, K) of the mean rewards, for noise of variance 1."""
        rows = arms.rows(X)
        mean, spread = self._regression.predict(with_products(rows[:, : X.shape[1]], rows[:, X.shape[1] :]))
        shape = len(arms), len(X)
        return GaussianPosterior(
            mean=mean.reshape(shape).T, variance=spread.reshape(shape).T, size=max(self._size, 1)
        )

    def held(self, history: History, arms: ActionSet) -> Counts:
        """Return all rows, for every arm: warm-up is pooled."""
        return np.full(len(arms), history.size)

    def make_room(self, n_arms: int) -> bool:  # noqa: ARG002
        """Whether there is room: always, arms are told apart by their features."""
        return True


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
