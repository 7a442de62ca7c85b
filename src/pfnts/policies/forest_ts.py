"""Tree ensemble Thompson sampling (TETS; Nilsson et al. 2024) with a random forest or boosted trees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from pfnts.arms.memory import Memory
from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies.arguments import check_count, check_number
from pfnts.policies.decision import Matrix, Vector
from pfnts.policies.ensembles import BoostingSettings, Ensemble, fit_boosted, fit_forest
from pfnts.policies.leaf_statistics import Indices
from pfnts.policies.refitting import REFITTED, Arms, RefittingPolicy
from pfnts.policies.traffic import TRAFFIC, Traffic
from pfnts.posterior import GaussianPosterior

Layout = Literal["disjoint", "joint"]
_BOOSTING = BoostingSettings()


class EnsembleTS(RefittingPolicy[Ensemble]):
    """Thompson sampling from the leaf statistics of a tree ensemble.

    The mean reward at x is normal: its mean is the sum over trees of the leaf's mean, its variance nu^2 times
    the sum of the leaf's variance over its count. Between refits each reward joins the leaves it falls into.
    """

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        layout: Layout,
        nu: float,
        memory: Memory,
        traffic: Traffic,
        schema: Schema | Mapping[str, Any] | None,
    ) -> None:
        if layout not in ("disjoint", "joint"):
            raise ValueError(f'layout must be "disjoint" or "joint", got {layout!r}')
        super().__init__(arms, shared=layout == "joint", memory=memory, traffic=traffic, schema=schema)
        self._layout: Layout = layout
        self._nu = check_number("nu", nu)

    @abstractmethod
    def _fit_trees(self, X: Matrix, y: Vector, *, seed: int) -> Ensemble:
        """Fit an ensemble to rows ``X`` (n, P) and rewards ``y`` (n,)."""

    def _fit(self, arm: int, X: Matrix, arms: Arms, rewards: Vector, *, seed: int) -> Ensemble:
        return self._fit_trees(*self._table(arm, X, arms, rewards), seed=seed)

    def _learn(self, model: Ensemble, arm: int, X: Matrix, arms: Arms, rewards: Vector) -> None:
        model.observe(*self._table(arm, X, arms, rewards))

    def _table(self, arm: int, X: Matrix, arms: Arms, rewards: Vector) -> tuple[Matrix, Vector]:
        """Rows and rewards that the ensemble of an arm, or of all arms, learns from."""
        if self._layout == "joint":
            return self._with_arm(X, arms), rewards
        return X[arms == arm], rewards[arms == arm]

    def _posterior(self, X: Matrix, arms: Sequence[int]) -> GaussianPosterior:
        mean, variance = np.empty((2, len(X), len(arms)))
        mean[:], variance[:] = self._any_reward().mean(), self._any_reward().var()
        models = {arm: model for arm in arms if (model := self._current(arm)) is not None}

        def leaves(wanted: list[int], X: Matrix) -> list[Indices]:
            return [models[arm].leaves(self._asked(X, arm)) for arm in wanted]

        # Leaves are what the rows since the refit do not change.
        versions = {arm: (self._point(arm), self._shape) for arm in models}
        for arm, found in self._ahead(X, versions, leaves, lambda values, rows: values[rows]).items():
            column = arms.index(arm)
            mean[:, column], variance[:, column] = models[arm].statistics.moments(found)
        return GaussianPosterior(
            mean=mean, variance=self._nu**2 * variance, size=np.maximum(self._held(arms), 1)
        )

    def _asked(self, X: Matrix, arm: int) -> Matrix:
        return X if self._layout == "disjoint" else self._with_arm(X, np.full(len(X), arm))

    def _with_arm(self, X: Matrix, arms: Arms) -> Matrix:
        """Put the arm before the context (n, P), as one of so many columns."""
        return np.concatenate([np.eye(self._shape[1])[arms], X], axis=1)

    def _settings(self) -> dict[str, Any]:
        return {"layout": self._layout, "nu": self._nu, **asdict(self._memory)}


class RFTS(EnsembleTS):
    """Thompson sampling with a random forest.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    n_trees
        Trees of a forest.
    min_leaf
        Fewest rewards in a leaf.
    layout
        "disjoint" fits a forest per arm; "joint" one for all, with the arm among its features.
    nu
        Factor on the standard deviation of the draws.
    memory
        How much the history of all arms grows before the forests are refitted.
    traffic, schema
        See `Policy`.

    Examples
    --------
    >>> policy = RFTS(arms=2, n_trees=10, traffic=Traffic(warmup=1))
    >>> outcomes = policy.update([[0.1], [0.7]], arm=[0, 1], reward=[0.0, 2.0])
    >>> policy.decide([0.5], rng=np.random.default_rng(0)).posterior.mean
    array([0., 2.])
    """

    name = "rf-ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        n_trees: int = 100,
        min_leaf: int = 2,
        layout: Layout = "disjoint",
        nu: float = 1.0,
        memory: Memory = REFITTED,
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(arms, layout=layout, nu=nu, memory=memory, traffic=traffic, schema=schema)
        self._n_trees, self._min_leaf = check_count("n_trees", n_trees), check_count("min_leaf", min_leaf)

    def _fit_trees(self, X: Matrix, y: Vector, *, seed: int) -> Ensemble:
        return fit_forest(X, y, n_trees=self._n_trees, min_leaf=self._min_leaf, seed=seed)

    def _settings(self) -> dict[str, Any]:
        return {"n_trees": self._n_trees, "min_leaf": self._min_leaf, **super()._settings()}


class XGBoostTS(EnsembleTS):
    """Thompson sampling with gradient boosted trees.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    boosting
        Number, depth and weight of the trees.
    layout
        "disjoint" fits an ensemble per arm; "joint" one for all, with the arm among its features.
    nu
        Factor on the standard deviation of the draws.
    memory
        How much the history of all arms grows before the trees are refitted.
    traffic, schema
        See `Policy`.

    Examples
    --------
    >>> policy = XGBoostTS(arms=2, boosting=BoostingSettings(rounds=10), traffic=Traffic(warmup=1))
    >>> outcomes = policy.update([[0.1], [0.7]], arm=[0, 1], reward=[0.0, 2.0])
    >>> policy.decide([0.5], rng=np.random.default_rng(0)).posterior.mean
    array([0., 2.])
    """

    name = "xgboost-ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        boosting: BoostingSettings = _BOOSTING,
        layout: Layout = "disjoint",
        nu: float = 1.0,
        memory: Memory = REFITTED,
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(arms, layout=layout, nu=nu, memory=memory, traffic=traffic, schema=schema)
        self._boosting = boosting

    def _fit_trees(self, X: Matrix, y: Vector, *, seed: int) -> Ensemble:
        return fit_boosted(X, y, settings=self._boosting, seed=seed)

    def _settings(self) -> dict[str, Any]:
        return {**asdict(self._boosting), **super()._settings()}
