"""Linear Thompson sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator

from pfnts.encodings import Schema
from pfnts.policies import rules
from pfnts.policies.base import Choice, Label, Mask, Matrix
from pfnts.policies.ridge import RidgePolicy
from pfnts.posterior import GaussianPosterior
from pfnts.posterior.best_arm import best_arm_probabilities


class LinTS(RidgePolicy):
    """Thompson sampling with one ridge regression per arm.

    The mean reward of an arm at x is believed N(x' b, nu^2 x' A^-1 x), A = penalty I + sum x x'.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    nu
        Width of the draws: the standard deviation of a reward, where it is known.
    penalty
        Prior precision of each coefficient.
    intercept
        Whether a constant joins the features. The paper's row has none.
    warmup
        Rewards of each arm to see first. The paper's row has none.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike; warm-up included.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> policy = LinTS(arms=["a", "b"], warmup=0)
    >>> policy.update([1.0], arm="b", reward=9.0)
    >>> decision = policy.decide([1.0], rng=np.random.default_rng(0))
    >>> decision.arm, decision.posterior.mean
    ('b', array([0., 6.]))
    """

    name = "lin-ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        nu: float = 1.0,
        penalty: float = 1.0,
        intercept: bool = True,
        warmup: int = 5,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if not nu >= 0 or not np.isfinite(nu):
            raise ValueError(f"nu must be a number from 0 on, got {nu}")
        super().__init__(
            arms, penalty=penalty, intercept=intercept, warmup=warmup, explore=explore, schema=schema
        )
        self._nu = float(nu)

    def posterior(self, contexts: Any) -> GaussianPosterior:
        """Posterior of the mean rewards, arrays (K,) for one context and (n, K) for a batch."""
        if not self._started:
            raise ValueError("posterior needs a context seen before, decide or update first")
        X, _, single = self._encode(contexts)
        mean, variance = self._moments(X)
        posterior = GaussianPosterior(mean=mean, variance=variance, size=np.maximum(self._observed, 1))
        return posterior[0] if single else posterior

    def _settings(self) -> dict[str, float]:
        return {"nu": self._nu}

    def _moments(self, X: Matrix) -> tuple[Matrix, Matrix]:
        """Posterior mean and variance at ``X`` (q, P), both (q, K)."""
        mean, spread = self._models.predict(self._design(X))
        return mean, self._nu**2 * spread

    def _choose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> Sequence[Choice]:
        means, variances = self._moments(X)
        shares = best_arm_probabilities(means, variances, eligible=eligible)
        size = np.maximum(self._observed, 1)
        choices = []
        for mean, variance, mask, share in zip(means, variances, eligible, shares, strict=True):
            posterior = GaussianPosterior(mean=mean, variance=variance, size=size)
            choices.append(Choice(rules.thompson(posterior, mask, rng=rng), share, posterior))
        return choices
