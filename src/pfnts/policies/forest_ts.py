"""Tree ensemble Thompson sampling (TETS; Nilsson et al. 2024) with a random forest or boosted trees."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.encodings import Schema
from pfnts.policies import rules
from pfnts.policies.base import Choice, Label, Mask, Matrix, Vector
from pfnts.policies.ensembles import Ensemble, fit_boosted, fit_forest
from pfnts.policies.leaf_statistics import Indices
from pfnts.policies.refresh import RefittingPolicy
from pfnts.posterior import GaussianPosterior

Layout = Literal["disjoint", "joint"]


class EnsembleTS(RefittingPolicy[Indices]):
    """Thompson sampling from the leaf statistics of a tree ensemble.

    The mean reward at x is believed normal: the sum over trees of the leaf's mean, and nu^2 times the sum
    of the leaf's variance over its count. Between refits each reward joins the leaves it falls into.
    """

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        layout: Layout,
        nu: float,
        refresh: float,
        warmup: int,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None,
    ) -> None:
        if layout not in ("disjoint", "joint"):
            raise ValueError(f'layout must be "disjoint" or "joint", got {layout!r}')
        if not nu >= 0 or not np.isfinite(nu):
            raise ValueError(f"nu must be a number from 0 on, got {nu}")
        super().__init__(arms, refresh=refresh, warmup=warmup, explore=explore, schema=schema)
        self._layout: Layout = layout
        self._nu = float(nu)
        self._ensembles: dict[int, Ensemble] = {}

    def posterior(self, contexts: Any) -> GaussianPosterior:
        """Posterior of the mean rewards, arrays (K,) for one context and (n, K) for a batch.

        It is that of the last decision's model, with the rewards that joined its leaves since.
        """
        X, single = self._fitted_contexts(contexts)
        posterior = self._believe(self._leaves(X))
        return posterior[0] if single else posterior

    @abstractmethod
    def _fit(self, X: Matrix, y: Vector, *, seed: int) -> Ensemble:
        """Fit an ensemble to rows ``X`` (n, P) and rewards ``y`` (n,)."""

    def _refit(self, *, rng: Generator) -> None:
        X, arms, rewards = self._history.contexts, self._history.arms, self._history.rewards
        seeds = rng.integers(2**31, size=self.n_arms)
        if self._layout == "joint":
            whole = self._fit(self._with_arm(X, arms), rewards, seed=int(seeds[0]))
            self._ensembles = dict.fromkeys(range(self.n_arms), whole)
        else:
            self._ensembles = {
                k: self._fit(X[arms == k], rewards[arms == k], seed=int(seeds[k]))
                for k in range(self.n_arms)
                if (arms == k).any()
            }

    def _evaluate(self, X: Matrix) -> Sequence[Indices]:
        return list(self._leaves(X))

    def _leaves(self, X: Matrix) -> Indices:
        """Leaves of every arm at each row, (q, K, M)."""
        leaves: list[Indices] = []
        for k in range(self.n_arms):
            # An arm without a reward is not eligible yet; it borrows the leaves of one that is.
            ensemble = self._ensembles.get(k) or next(iter(self._ensembles.values()))
            rows = X if self._layout == "disjoint" else self._with_arm(X, np.full(len(X), k))
            leaves.append(ensemble.leaves(rows))
        return np.stack(leaves, axis=1)

    def _believe(self, leaves: Indices) -> GaussianPosterior:
        """Posterior (..., K) at contexts with leaves (..., K, M)."""
        moments = [
            (self._ensembles.get(k) or next(iter(self._ensembles.values()))).statistics.moments(
                leaves[..., k, :]
            )
            for k in range(self.n_arms)
        ]
        return GaussianPosterior(
            mean=np.stack([mean for mean, _ in moments], axis=-1),
            variance=self._nu**2 * np.stack([variance for _, variance in moments], axis=-1),
            size=np.maximum(self._observed, 1),
        )

    def _decide_at(self, value: Indices, eligible: Mask, *, rng: Generator) -> Choice:
        posterior = self._believe(value)
        index = rules.thompson(posterior, eligible, rng=rng)
        return Choice(index, posterior.best_arm_probabilities(eligible), posterior)

    def _learn(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        for x, arm, reward in zip(X, arms.tolist(), rewards.tolist(), strict=True):
            ensemble = self._ensembles.get(arm)
            if ensemble is not None:
                ensemble.statistics.observe(self._find(self._announced, x)[arm], reward)

    def _with_arm(self, X: Matrix, arms: NDArray[np.int64]) -> Matrix:
        return np.concatenate([np.eye(self.n_arms)[arms], X], axis=1)


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
    refresh
        The forest is refitted when ceil(refresh ln t) grows, t being the rewards seen.
    warmup
        Rewards of each arm to see first, at least 1.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike; warm-up included.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> policy = RFTS(arms=2, n_trees=10, warmup=1)
    >>> policy.update([[0.1], [0.7]], arm=[0, 1], reward=[0.0, 2.0])
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
        refresh: float = 8.0,
        warmup: int = 5,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        _positive(n_trees=n_trees, min_leaf=min_leaf)
        super().__init__(
            arms, layout=layout, nu=nu, refresh=refresh, warmup=warmup, explore=explore, schema=schema
        )
        self._n_trees, self._min_leaf = int(n_trees), int(min_leaf)

    def _fit(self, X: Matrix, y: Vector, *, seed: int) -> Ensemble:
        return fit_forest(X, y, n_trees=self._n_trees, min_leaf=self._min_leaf, seed=seed)


class XGBoostTS(EnsembleTS):
    """Thompson sampling with gradient boosted trees.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    rounds
        Trees of an ensemble.
    learning_rate
        Share of each tree's fit that is added.
    max_depth
        Depth of a tree.
    layout
        "disjoint" fits an ensemble per arm; "joint" one for all, with the arm among its features.
    nu
        Factor on the standard deviation of the draws.
    refresh
        The trees are refitted when ceil(refresh ln t) grows, t being the rewards seen.
    warmup
        Rewards of each arm to see first, at least 1.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike; warm-up included.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> policy = XGBoostTS(arms=2, rounds=10, warmup=1)
    >>> policy.update([[0.1], [0.7]], arm=[0, 1], reward=[0.0, 2.0])
    >>> policy.decide([0.5], rng=np.random.default_rng(0)).posterior.mean
    array([0., 2.])
    """

    name = "xgboost-ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        rounds: int = 100,
        learning_rate: float = 0.3,
        max_depth: int = 6,
        layout: Layout = "disjoint",
        nu: float = 1.0,
        refresh: float = 8.0,
        warmup: int = 5,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        _positive(rounds=rounds, max_depth=max_depth)
        if not 0 < learning_rate <= 1:
            raise ValueError(f"learning_rate must be above 0 and at most 1, got {learning_rate}")
        super().__init__(
            arms, layout=layout, nu=nu, refresh=refresh, warmup=warmup, explore=explore, schema=schema
        )
        self._rounds, self._learning_rate, self._max_depth = int(rounds), float(learning_rate), int(max_depth)

    def _fit(self, X: Matrix, y: Vector, *, seed: int) -> Ensemble:
        return fit_boosted(
            X,
            y,
            rounds=self._rounds,
            learning_rate=self._learning_rate,
            max_depth=self._max_depth,
            seed=seed,
        )


def _positive(**counts: int) -> None:
    for name, count in counts.items():
        if count != int(count) or count < 1:
            raise ValueError(f"{name} must be a positive integer, got {count!r}")
