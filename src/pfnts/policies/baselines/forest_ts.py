"""Tree ensemble Thompson sampling (TETS; Nilsson et al. 2024) with a random forest or boosted trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix, Vector
from pfnts.contexts import Schema
from pfnts.events import ActionSet, History, Label
from pfnts.layouts.memory import Memory
from pfnts.policies.arguments import check_count, check_number
from pfnts.policies.baselines.ensembles import BoostingSettings, Ensemble, fit_boosted, fit_forest
from pfnts.policies.baselines.leaf_statistics import Indices
from pfnts.policies.baselines.refits import REFITTED, Refits, check_refitted, check_warmup
from pfnts.policies.model import Model, Shape
from pfnts.policies.policy import Policy
from pfnts.policies.prefetch import PrefetchCache
from pfnts.policies.rules import Thompson
from pfnts.policies.traffic import TRAFFIC, Traffic
from pfnts.posterior import GaussianPosterior

Layout = Literal["disjoint", "joint"]
FitTrees: TypeAlias = Callable[[Matrix, Vector, int], Ensemble]
"""Fits an ensemble to rows (n, P) and rewards (n,), with a seed."""
_BOOSTING = BoostingSettings()


class RFTS(Policy):
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
    traffic, schema, seed
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
        seed: int | None = None,
    ) -> None:
        n_trees, min_leaf = check_count("n_trees", n_trees), check_count("min_leaf", min_leaf)
        traffic, memory = check_warmup(traffic), check_refitted(memory, policy="RFTS")
        fit = partial(_forest, n_trees, min_leaf)

        super().__init__(
            arms,
            model=EnsembleModel(fit, layout=layout, nu=nu, memory=memory, warmup=traffic.warmup),
            rule=Thompson(),
            traffic=traffic,
            schema=schema,
            settings={"n_trees": n_trees, "min_leaf": min_leaf, **_settings(layout, nu, memory)},
            seed=seed,
        )


class XGBoostTS(Policy):
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
    traffic, schema, seed
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
        seed: int | None = None,
    ) -> None:
        traffic, memory = check_warmup(traffic), check_refitted(memory, policy="XGBoostTS")

        super().__init__(
            arms,
            model=EnsembleModel(
                partial(_boosted, boosting), layout=layout, nu=nu, memory=memory, warmup=traffic.warmup
            ),
            rule=Thompson(),
            traffic=traffic,
            schema=schema,
            settings={**asdict(boosting), **_settings(layout, nu, memory)},
            seed=seed,
        )


class EnsembleModel(Model):
    """The leaf statistics of a tree ensemble for each arm, or of one for all arms.

    The mean reward at x is normal: its mean is the sum over trees of the leaf's mean, its variance nu^2 times
    the sum of the leaf's variance over its count. Between refits each reward joins the leaves it falls into.
    """

    def __init__(
        self,
        fit: FitTrees,
        *,
        layout: Layout,
        nu: float,
        memory: Memory,
        warmup: int,
        n_arms: int = 0,
    ) -> None:
        if layout not in ("disjoint", "joint"):
            raise ValueError(f'layout must be "disjoint" or "joint", got {layout!r}')
        self._fit, self._layout, self._n_arms = fit, layout, n_arms
        self._nu = check_number("nu", nu)
        shared = layout == "joint"
        self._refits = Refits(self._fit_arm, self._extend, shared=shared, memory=memory, warmup=warmup)
        self._fits = self._refits.begin()
        self._announced: PrefetchCache[Indices] | None = None
        self._rows = np.zeros(n_arms, dtype=np.int64)

    def fresh(self, shape: Shape) -> EnsembleModel:
        """Return a model without rows."""
        memory, warmup = self._refits.memory, self._refits.warmup
        return EnsembleModel(
            self._fit, layout=self._layout, nu=self._nu, memory=memory, warmup=warmup, n_arms=shape.arms
        )

    def observe(self, history: History, start: int, end: int) -> None:
        """Note rows."""
        self._fits.observe(history, start, end)
        self._rows += np.bincount(history.arms[start:end], minlength=self._n_arms)

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> GaussianPosterior:  # noqa: ARG002
        """Return the posterior (q, K) of the mean rewards."""
        mean, variance = np.empty((2, len(X), len(arms)))
        rewards = self._fits.rewards()
        mean[:], variance[:] = rewards.mean(), rewards.var()
        models = {arm: model for arm in arms if (model := self._fits.current(arm)) is not None}

        def leaves(wanted: list[int], X: Matrix) -> list[Indices]:
            return [models[arm].leaves(self._rows_for(X, np.full(len(X), arm))) for arm in wanted]

        if self._announced is None:
            found = dict(zip(models, leaves(list(models), X), strict=True))
        else:
            # Leaves are what the rows since the refit do not change.
            versions = {arm: self._fits.point(arm) for arm in models}
            found = self._announced.find(X, versions, leaves, lambda values, rows: values[rows])
        for arm, leaf in found.items():
            column = arms.index(arm)
            mean[:, column], variance[:, column] = models[arm].statistics.moments(leaf)
        size = np.maximum(self._rows[list(arms)], 1)
        return GaussianPosterior(mean=mean, variance=self._nu**2 * variance, size=size)

    def make_room(self, n_arms: int) -> bool:
        """Whether there is room: unless the arm is among the columns."""
        if self._layout == "joint":
            return False
        self._rows = np.concatenate([self._rows, np.zeros(n_arms - self._n_arms, dtype=np.int64)])
        self._n_arms = n_arms
        return True

    def announce(self, X: Matrix) -> None:
        """Find the leaves of contexts to come in batches."""
        self._announced = PrefetchCache(X)

    def _fit_arm(self, arm: int, X: Matrix, arms: Counts, rewards: Vector, seed: int) -> Ensemble:
        return self._fit(*self._table(arm, X, arms, rewards), seed)

    def _extend(self, model: Ensemble, arm: int, X: Matrix, arms: Counts, rewards: Vector) -> None:
        model.observe(*self._table(arm, X, arms, rewards))

    def _table(self, arm: int, X: Matrix, arms: Counts, rewards: Vector) -> tuple[Matrix, Vector]:
        """Return rows and rewards that the ensemble of an arm, or of all arms, learns from."""
        if self._layout == "joint":
            return self._rows_for(X, arms), rewards
        return X[arms == arm], rewards[arms == arm]

    def _rows_for(self, X: Matrix, arms: Counts) -> Matrix:
        """Return contexts (n, P), where one ensemble is for all arms with the arm (n,) before them."""
        return X if self._layout == "disjoint" else np.concatenate([np.eye(self._n_arms)[arms], X], axis=1)


def _boosted(settings: BoostingSettings, X: Matrix, y: Vector, seed: int) -> Ensemble:
    return fit_boosted(X, y, settings=settings, seed=seed)


def _forest(n_trees: int, min_leaf: int, X: Matrix, y: Vector, seed: int) -> Ensemble:
    return fit_forest(X, y, n_trees=n_trees, min_leaf=min_leaf, seed=seed)


def _settings(layout: Layout, nu: float, memory: Memory) -> dict[str, Any]:
    return {"layout": layout, "nu": float(nu), **asdict(memory)}
