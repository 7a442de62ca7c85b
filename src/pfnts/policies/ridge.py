"""Ridge regression per arm: the model of LinTS and LinUCB."""

from __future__ import annotations

import numpy as np

from pfnts.arrays import Mask, Matrix, Vector
from pfnts.events import ActionSet, History
from pfnts.policies.arguments import check_number
from pfnts.policies.model import Model, Shape
from pfnts.posterior import GaussianPosterior

# A rank-one update loses a little precision each time; one fresh inverse in this many keeps the loss below
# 1e-10 at hardly any cost.
_INVERT_EVERY = 256


class RidgeRegressions:
    """One ridge regression per arm, kept up to date by rank-one updates.

    Parameters
    ----------
    n_arms
        Number of arms K.
    width
        Length d of a row.
    penalty
        Prior precision of each coefficient.

    Examples
    --------
    >>> models = RidgeRegressions(n_arms=2, width=1, penalty=1.0)
    >>> models.observe(np.ones(1), arm=1, reward=4.0)
    >>> mean, spread = models.predict(np.ones((1, 1)))
    >>> mean, spread
    (array([[0., 2.]]), array([[1. , 0.5]]))
    """

    def __init__(self, *, n_arms: int, width: int, penalty: float) -> None:
        self._precision = np.tile(penalty * np.eye(width), (n_arms, 1, 1))
        self._inverse = np.tile(np.eye(width) / penalty, (n_arms, 1, 1))
        self._moment = np.zeros((n_arms, width))
        self._coefficients = np.zeros((n_arms, width))
        self._since_inverted = np.zeros(n_arms, dtype=np.int64)

    def observe(self, x: Vector, *, arm: int, reward: float) -> None:
        """Add one row ``x`` (d,) of an arm."""
        self._precision[arm] += np.outer(x, x)
        self._moment[arm] += reward * x
        self._since_inverted[arm] += 1
        if self._since_inverted[arm] == _INVERT_EVERY:
            self._inverse[arm] = np.linalg.inv(self._precision[arm])
            self._since_inverted[arm] = 0
        else:
            # Sherman and Morrison
            side = self._inverse[arm] @ x
            self._inverse[arm] -= np.outer(side, side / (1 + x @ side))
        self._coefficients[arm] = self._inverse[arm] @ self._moment[arm]

    def predict(self, rows: Matrix) -> tuple[Matrix, Matrix]:
        """Fitted mean and squared spread x' A^-1 x at ``rows`` (q, d), both (q, K)."""
        mean: Matrix = rows @ self._coefficients.T
        # (K, q, d): one product per arm; rounding must not make a spread negative
        sides = rows @ self._inverse
        spread: Matrix = np.maximum((sides * rows).sum(axis=2).T, 0.0)
        return mean, spread


class RidgeModel(Model):
    """A ridge regression per arm; missing values count as zero, so centred columns are the safer choice.

    The mean reward of an arm at x is N(x' b, nu^2 x' A^-1 x), A = penalty I + sum x x'.

    Parameters
    ----------
    penalty
        Prior precision of each coefficient.
    intercept
        Whether a constant joins the features.
    nu
        Standard deviation of a reward.
    shape
        Sizes; None for a model that learns nothing.
    """

    def __init__(
        self, *, penalty: float, intercept: bool, nu: float = 1.0, shape: Shape | None = None
    ) -> None:
        self._penalty = check_number("penalty", penalty, positive=True)
        self._intercept, self._nu = bool(intercept), nu
        width, n_arms = (0, 0) if shape is None else (shape.width + self._intercept, shape.arms)
        self._regressions = RidgeRegressions(n_arms=n_arms, width=width, penalty=self._penalty)
        self._rows = np.zeros(n_arms, dtype=np.int64)

    def fresh(self, shape: Shape) -> RidgeModel:
        """Return a model without rows."""
        return RidgeModel(penalty=self._penalty, intercept=self._intercept, nu=self._nu, shape=shape)

    def observe(self, history: History, start: int, end: int) -> None:
        """Add rows."""
        rows = slice(start, end)
        design = self._design(history.contexts[rows])
        for x, arm, reward in zip(design, history.arms[rows], history.rewards[rows], strict=True):
            self._regressions.observe(x, arm=int(arm), reward=float(reward))
            self._rows[arm] += 1

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> GaussianPosterior:  # noqa: ARG002
        """Return the posterior (q, K) of the mean rewards."""
        mean, spread = self._regressions.predict(self._design(X))
        numbers = list(arms)
        return GaussianPosterior(
            mean=mean[:, numbers],
            variance=self._nu**2 * spread[:, numbers],
            size=np.maximum(self._rows[numbers], 1),
        )

    def _design(self, X: Matrix) -> Matrix:
        rows = np.ones((len(X), X.shape[1] + self._intercept))
        rows[:, int(self._intercept) :] = np.where(np.isnan(X), 0.0, X)
        return rows
