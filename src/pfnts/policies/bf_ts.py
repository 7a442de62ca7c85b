"""Bayesian forest Thompson sampling (BFTS): a Bayesian additive regression trees model per arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.encodings import Schema
from pfnts.policies import rules
from pfnts.policies.bart import BartFit, BartSettings, Scale
from pfnts.policies.base import Choice, Label, Mask, Matrix
from pfnts.policies.refresh import RefittingPolicy
from pfnts.posterior import GaussianPosterior

_BART = BartSettings()


@dataclass(frozen=True)
class Draws:
    """Posterior draws at one context."""

    values: Matrix
    """(R, K): each arm's draws, in the order in which its chains made them."""
    posterior: GaussianPosterior
    """Their mean and variance, (K,)."""


class BFTS(RefittingPolicy[Draws]):
    """Thompson sampling from the draws of a Bayesian additive regression trees model per arm.

    A decision takes one draw of each arm, in an order shuffled at the refit, and never takes it again before
    the next. So its propensities are exact: given the draws left, each is as likely as any other.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    bart
        Trees, chains and draws.
    refresh
        The models are refitted when ceil(refresh ln t) grows, t being the rewards seen, of all arms.
    warmup
        Rewards of each arm to see first, at least 1.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike; warm-up included.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> policy = BFTS(arms=["a", "b"], bart=BartSettings(trees=20))
    >>> policy.decide([0.5], rng=np.random.default_rng(0)).arm  # the warm-up begins
    'a'
    """

    name = "bf-ts"
    lookahead = 64

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        bart: BartSettings = _BART,
        refresh: float = 8.0,
        warmup: int = 5,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(arms, refresh=refresh, warmup=warmup, explore=explore, schema=schema)
        self._bart = bart
        self._fits: dict[int, BartFit] = {}
        self._order = np.empty((0, self.n_arms), dtype=np.int64)
        self._used = 0

    def posterior(self, contexts: Any) -> GaussianPosterior:
        """Normal posterior with the mean and variance of the draws, (K,) for a context, (n, K) for a batch.

        It is that of the last decision's model: later rewards wait for the refit.
        """
        X, single = self._fitted_contexts(contexts)
        posterior = self._moments(self._values(X))
        return posterior[0] if single else posterior

    def _refit(self, *, rng: Generator) -> None:
        X, arms, rewards = self._history.contexts, self._history.arms, self._history.rewards
        seeds = rng.integers(2**31, size=self.n_arms)
        self._fits = {
            k: BartFit(
                X[arms == k],
                rewards[arms == k],
                settings=self._bart,
                scale=Scale.of(rewards),
                seed=int(seeds[k]),
            )
            for k in range(self.n_arms)
            if (arms == k).any()
        }
        self._used = self._bart.total

    def _evaluate(self, X: Matrix) -> Sequence[Draws]:
        values = self._values(X)
        posterior = self._moments(values)
        return [Draws(values[i], posterior[i]) for i in range(len(X))]

    def _values(self, X: Matrix) -> NDArray[np.float64]:
        """Draws at ``X`` (q, P), as (q, R, K); zero for arms without a reward, which are not eligible yet."""
        values = np.zeros((len(X), self._bart.total, self.n_arms))
        for k, fit in self._fits.items():
            values[:, :, k] = fit.draws(X)
        return values

    def _moments(self, values: NDArray[np.float64]) -> GaussianPosterior:
        return GaussianPosterior(
            mean=values.mean(axis=1), variance=values.var(axis=1), size=np.maximum(self._observed, 1)
        )

    def _decide_at(self, value: Draws, eligible: Mask, *, rng: Generator) -> Choice:
        if self._used == self._bart.total:
            # A fresh refit, or more rounds than draws: shuffle each arm's draws by themselves.
            self._order = rng.permuted(np.tile(np.arange(self._used)[:, None], self.n_arms), axis=0)
            self._used = 0
        left = np.take_along_axis(value.values, self._order[self._used :], axis=0)
        self._used += 1
        index = rules.greedy(left[0], eligible, rng=rng)
        return Choice(index, rules.predictive_propensities(left, eligible), value.posterior)
