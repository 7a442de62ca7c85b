"""Outcome models for the direct and the doubly robust estimator."""

from __future__ import annotations

import copy
from typing import Any, Protocol, Self

import numpy as np

from pfnts.ope.log import Codes, Log, Matrix, Vector, moments


class Regressor(Protocol):
    """What scikit-learn's regressors have in common."""

    def fit(self, X: Any, y: Any) -> Any:
        """Fit to rows (n, P) and rewards (n,)."""

    def predict(self, X: Any) -> Any:
        """Predict (n,) at rows (n, P)."""


class Ridge:
    """Ridge regression on standardised features with a free intercept; missing values count as the mean.

    Parameters
    ----------
    penalty
        Added to the diagonal of the Gram matrix; 1 is one observation's worth.

    Examples
    --------
    >>> model = Ridge(penalty=0.0).fit(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0]))
    >>> model.predict(np.array([[3.0]])).round(6)
    array([7.])
    """

    def __init__(self, *, penalty: float = 1.0) -> None:
        if not penalty >= 0:
            raise ValueError(f"penalty must not be negative, got {penalty}")
        self.penalty = penalty

    def fit(self, X: Matrix, y: Vector) -> Self:
        """Fit to rows (n, P) and rewards (n,)."""
        self._centre, self._scale = moments(X)
        Z = self._design(X)
        self._intercept = float(y.mean())
        gram = Z.T @ Z + self.penalty * np.eye(Z.shape[1])
        # Least squares rather than an inverse: no penalty and a constant column are no error.
        self._coefficients = np.asarray(np.linalg.lstsq(gram, Z.T @ (y - self._intercept), rcond=None)[0])
        return self

    def predict(self, X: Matrix) -> Vector:
        """Predict (n,) at rows (n, P)."""
        return np.asarray(self._intercept + self._design(X) @ self._coefficients, dtype=np.float64)

    def _design(self, X: Matrix) -> Matrix:
        return np.where(np.isnan(X), 0.0, X - self._centre) / self._scale


def cross_fitted(log: Log, *, model: Regressor | None = None, folds: int = 2) -> Matrix:
    """Predict the reward (T, K) of every action, each row by models that saw none of its person's rows.

    Parameters
    ----------
    log
        What was done.
    model
        An unfitted regressor, copied for every action and fold; ridge regression when left out.
    folds
        Parts into which people (rounds, where there are no people) are dealt in turn.

    Examples
    --------
    >>> log = Log(
    ...     contexts=np.zeros((4, 1)), features=("x",), arms=(0, 1), actions=np.array([0, 0, 1, 1]),
    ...     rewards=np.array([1.0, 2.0, 3.0, 4.0]), propensities=np.full(4, 0.5),
    ... )
    >>> cross_fitted(log)
    array([[2., 4.], [1., 3.], [2., 4.], [1., 3.]])
    """
    part = dealt(log, folds=folds)
    predicted = np.empty((log.rounds, log.n_arms))
    for fold in range(folds):
        held, seen = part == fold, part != fold
        for arm in range(log.n_arms):
            rows = seen & (log.actions == arm)
            if rows.any():
                fitted = copy.deepcopy(Ridge() if model is None else model)
                fitted.fit(log.contexts[rows], log.rewards[rows])
                predicted[held, arm] = fitted.predict(log.contexts[held])
            else:
                # Nothing is known of an action that nobody in the other folds was given.
                predicted[held, arm] = log.rewards[seen].mean()
    return predicted


def dealt(log: Log, *, folds: int) -> Codes:
    """Fold (T,) of every row: people in turn, copies of a person together."""
    people, rank = np.unique(log.groups if log.origins is None else log.origins, return_inverse=True)
    if not 2 <= folds <= len(people):
        raise ValueError(f"folds must be between 2 and the {len(people)} people or rounds, got {folds}")
    return np.asarray(rank % folds, dtype=np.int64)
