"""Shortlist of many arms: those with the largest upper quantiles by a ridge regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix, Vector
from pfnts.events import ActionSet
from pfnts.layouts.interactions import Scaling

_MOST_PRODUCTS = 128
_PENALTY = 1.0
"""Prior precision of each coefficient, in units of standardised columns and rewards."""
_ARM_ROWS = 4.0
"""Rows that an arm's own effect is shrunk by."""


@dataclass(frozen=True)
class RidgeScores:
    """A fit of rewards to columns and products of columns, with an effect of each arm where asked.

    Products are those of a column of the context with one of the arm, and of two of the arm: the others move
    all arms of a decision alike. Of more than 128, those are taken that correlate most with the rewards.
    """

    scaling: Scaling
    """Centre and scale of the W columns."""
    products: Counts
    """(2, p) columns that are multiplied."""
    inverse: Matrix
    """(D, D) of the precision of the coefficients."""
    coefficients: Vector
    """(D,)"""
    level: float
    """Mean of the rewards."""
    spread: float
    """Their standard deviation; 1 where they are all equal."""
    noise: float
    """Variance of the residuals, in units of the variance of rewards."""
    effects: Vector
    """(N,) of each arm number; empty where arms have none."""
    rows: Vector
    """(N,) of each arm number, likewise."""

    @classmethod
    def fit(cls, X: Matrix, arms: Counts, rewards: Vector, *, width: int, effects: int) -> RidgeScores:
        """Fit rows (n, W), of which the first ``width`` columns are the context.

        Parameters
        ----------
        X, arms, rewards
            Rows (n, W), arm numbers (n,) and rewards (n,).
        width
            Columns of the context; the others are the arm's.
        effects
            Arms that have effects of their own; 0 for none.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> fit = RidgeScores.fit(X, np.zeros(200, dtype=int), X[:, 0] * X[:, 1], width=1, effects=0)
        >>> int(fit.upper(np.array([[2.0, -1.0], [2.0, 3.0]]), np.zeros(2, dtype=int)).argmax())
        1
        """
        scaling = Scaling.of(X)
        Z = scaling(X)
        spread = float(rewards.std()) or 1.0
        y = (rewards - rewards.mean()) / spread
        products = _products(Z, y, width=width)
        design = _design(Z, products)
        inverse = np.linalg.inv(design.T @ design + _PENALTY * np.eye(design.shape[1]))
        coefficients = inverse @ (design.T @ y)
        residuals = y - design @ coefficients
        known = arms >= 0
        rows, sums = (
            np.bincount(arms[known], weights=weights, minlength=effects)[:effects]
            for weights in (None, residuals[known])
        )
        return cls(
            scaling=scaling,
            products=products,
            inverse=np.asarray(inverse, dtype=np.float64),
            coefficients=np.asarray(coefficients, dtype=np.float64),
            level=float(rewards.mean()),
            spread=spread,
            noise=float(residuals.var()) + 1e-12,
            effects=sums / (rows + _ARM_ROWS),
            rows=rows.astype(np.float64),
        )

    def shortlist(
        self, X: Matrix, arms: ActionSet, eligible: Mask, *, size: int, costs: Vector | None
    ) -> Counts:
        """Positions (q, size), ascending, of the eligible arms with the largest upper quantiles at ``X``.

        They follow from the fit, the contexts and the arms: nothing is drawn, and of equal ones the first is
        taken. ``costs`` (K,) is deducted from the mean reward of each arm.
        """
        numbers = np.asarray(arms.numbers, dtype=np.int64)
        upper = np.stack([self.upper(arms.rows(x[None]), numbers) for x in X])
        scores = np.where(eligible, upper if costs is None else upper - costs, -np.inf)
        return np.sort(np.argsort(-scores, axis=1, kind="stable")[:, :size], axis=1)

    def upper(self, X: Matrix, arms: Counts) -> Vector:
        """Upper quantile (m,) of the mean reward at rows (m, W): a standard deviation above its mean."""
        design = _design(self.scaling(X), self.products)
        mean = design @ self.coefficients
        variance = np.maximum(((design @ self.inverse) * design).sum(axis=1), 0.0)
        if len(self.effects):
            known = (arms >= 0) & (arms < len(self.effects))
            place = np.where(known, arms, 0)
            mean = mean + np.where(known, self.effects[place], 0.0)
            variance = variance + 1 / (np.where(known, self.rows[place], 0.0) + _ARM_ROWS)
        upper: Vector = self.level + self.spread * (mean + np.sqrt(self.noise * variance))
        return upper


def _products(Z: Matrix, y: Vector, *, width: int) -> Counts:
    """Columns to multiply, (2, p)."""
    weighted = (Z * y[:, None]).T @ Z[:, width:]
    first, second = np.divmod(np.arange(weighted.size), max(weighted.shape[1], 1))
    second = second + width
    # A pair of the arm's columns is listed once.
    pairs = np.stack([first, second])[:, (first < width) | (first <= second)]
    strength = np.abs(weighted)[pairs[0], pairs[1] - width]
    return pairs[:, np.sort(np.argsort(-strength, kind="stable")[:_MOST_PRODUCTS])]


def _design(Z: Matrix, products: Counts) -> Matrix:
    return np.concatenate([np.ones((len(Z), 1)), Z, Z[:, products[0]] * Z[:, products[1]]], axis=1)
