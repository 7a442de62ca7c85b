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
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if not nu >= 0 or not np.isfinite(nu):
            raise ValueError(f"nu must be a number from 0 on, got {nu}")
        super().__init__(arms, penalty=penalty, intercept=intercept, warmup=warmup, schema=schema)
        self._nu = float(nu)

    def posterior(self, contexts: Any) -> GaussianPosterior:
        """Posterior of the mean rewards, arrays (K,) for one context and (n, K) for a batch."""
        if not self._started:
            raise ValueError("posterior needs a context seen before, decide or update first")
        X, _, single = self._encode(contexts)
        posterior = self._posterior(X)
        return posterior[0] if single else posterior

    def _settings(self) -> dict[str, float]:
        return {"nu": self._nu}

    def _posterior(self, X: Matrix) -> GaussianPosterior:
        mean, spread = self._models.predict(self._design(X))
        return GaussianPosterior(mean=mean, variance=self._nu**2 * spread, size=np.maximum(self._observed, 1))

    def _choose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> Sequence[Choice]:
        posterior = self._posterior(X)
        propensities = posterior.best_arm_probabilities(eligible)
        return [
            Choice(rules.thompson(row, mask, rng=rng), share, row)
            for row, mask, share in zip(
                (posterior[i] for i in range(len(X))), eligible, propensities, strict=True
            )
        ]
