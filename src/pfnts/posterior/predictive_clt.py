"""The full predictive central limit theorem, which SubCLT subsamples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pfnts.posterior.estimator import Answer, Asks
from pfnts.posterior.gaussian import GaussianPosterior


@dataclass(frozen=True, kw_only=True)
class PredictiveCLT:
    """Posterior N(m_n, V / n) with V the average of i^2 (m_i - m_{i-1})^2 over all prefixes i = 2, ..., n.

    It asks for the predictive mean after every prefix (n of them), so it suits short histories, and
    backbones for which a prefix is cheap. Each increment is a block direction of its own.

    Parameters
    ----------
    coupled
        Whether arms that share a sequence share the draws of its blocks.

    Examples
    --------
    >>> PredictiveCLT().asks(4).sizes
    (1, 2, 3, 4)
    """

    coupled: bool = False

    needs_mean_sd: ClassVar[bool] = False
    own_directions: ClassVar[int] = 0

    def asks(self, n: int) -> Asks:
        """Ask for the means after every prefix."""
        return Asks(tuple(range(1, n + 1)))

    def posterior(self, answer: Answer, *, size: int, reward_variance: float) -> GaussianPosterior:  # noqa: ARG002
        """Give the posterior at the queries, arrays (q,)."""
        if size < 2:
            raise ValueError(f"size must be at least 2, got {size}; warm up longer")
        sizes = np.arange(1, size + 1)
        directions = np.diff(answer.means, axis=0) * (sizes[1:, None] / np.sqrt((size - 1) * size))
        return GaussianPosterior(
            mean=answer.means[-1],
            variance=(directions**2).sum(axis=0),
            size=size,
            directions=directions,
            coupled=True,
        )
