"""Ridge regression per arm: what LinTS and LinUCB share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies.arguments import check_number
from pfnts.policies.base import Policy
from pfnts.policies.decision import Matrix, Vector
from pfnts.policies.traffic import Traffic

# A rank-one update loses a little precision each time; one fresh inverse in this many keeps the loss below
# 1e-10 at hardly any cost.
_INVERT_EVERY = 256


class RidgeModels:
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
    >>> models = RidgeModels(n_arms=2, width=1, penalty=1.0)
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

    def sums(self) -> tuple[Matrix, Matrix]:
        """Copies of the precisions (K, d, d) and moments (K, d)."""
        return self._precision.copy(), self._moment.copy()

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

    def restore(self, precision: Matrix, moment: Matrix) -> None:
        """Take up sums (K, d, d) and (K, d) that were saved."""
        if precision.shape != self._precision.shape or moment.shape != self._moment.shape:
            raise ValueError(
                f"sums must be {self._precision.shape} and {self._moment.shape}, got {precision.shape}"
            )
        if not (np.isfinite(precision).all() and np.isfinite(moment).all()):
            raise ValueError("sums must be finite")
        if np.linalg.eigvalsh(precision).min() <= 0:
            raise ValueError("sums must be those of a ridge regression, its precision is not positive")
        self._precision, self._moment = precision.copy(), moment.copy()
        self._inverse = np.linalg.inv(self._precision).astype(np.float64)
        self._coefficients = (self._inverse @ self._moment[..., None])[..., 0]


class RidgePolicy(Policy):
    """A policy on `RidgeModels`; missing values count as zero, so centred columns are the safer choice."""

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        penalty: float,
        intercept: bool,
        traffic: Traffic,
        schema: Schema | Mapping[str, Any] | None,
    ) -> None:
        super().__init__(arms, traffic=traffic, schema=schema)
        self._penalty = check_number("penalty", penalty, positive=True)
        self._intercept = bool(intercept)
        self._summary: dict[str, Any] | None = None
        """What a file of version 0.1 kept instead of rows: precision, moment and counts of the first arms."""

    def _reset(self, width: int, n_arms: int) -> None:
        self._models = RidgeModels(n_arms=n_arms, width=width + self._intercept, penalty=self._penalty)
        if self._summary is not None:
            first = len(self._first_arms)
            precision, moment = self._models.sums()
            precision[:first], moment[:first] = self._summary["precision"], self._summary["moment"]
            self._models.restore(precision, moment)

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        for x, arm, reward in zip(self._design(X), arms, rewards, strict=True):
            self._models.observe(x, arm=int(arm), reward=float(reward))

    def _held(self, arms: Sequence[int]) -> NDArray[np.int64]:
        held = super()._held(arms)
        if self._summary is None:
            return held
        before = np.zeros(max(max(arms) + 1, len(self._first_arms)), dtype=np.int64)
        before[: len(self._first_arms)] = self._summary["counts"]
        return held + before[list(arms)]

    def _predict(self, X: Matrix, arms: Sequence[int]) -> tuple[Matrix, Matrix]:
        """Fitted mean and squared spread of arms at ``X`` (q, P), both (q, K)."""
        mean, spread = self._models.predict(self._design(X))
        return mean[:, list(arms)], spread[:, list(arms)]

    def _settings(self) -> dict[str, Any]:
        return {"penalty": self._penalty, "intercept": self._intercept, "summary": self._summary}

    @classmethod
    def _from_settings(cls, arms: Any, schema: Schema | None, settings: dict[str, Any]) -> Self:
        summary = settings.pop("summary", None)
        policy = cls(arms, schema=schema, **settings)
        if summary is not None:
            sums = {name: np.asarray(summary[name], dtype=np.float64) for name in ("precision", "moment")}
            counts = np.asarray(summary["counts"], dtype=np.int64)
            width = sums["moment"].shape[-1]
            if sums["precision"].shape != (len(arms), width, width) or sums["moment"].shape != (
                len(arms),
                width,
            ):
                raise TypeError("its sums do not fit together")
            if counts.shape != (len(arms),) or (counts < 0).any():
                raise TypeError("its counts are not those of the arms")
            policy._summary = {
                **{name: values.tolist() for name, values in sums.items()},
                "counts": counts.tolist(),
            }
            if schema is not None:
                policy._model(schema.width)
        return policy

    def _design(self, X: Matrix) -> Matrix:
        rows = np.ones((len(X), X.shape[1] + self._intercept))
        rows[:, int(self._intercept) :] = np.where(np.isnan(X), 0.0, X)
        return rows
