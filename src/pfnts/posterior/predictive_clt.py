"""The full predictive central limit theorem, which SubCLT subsamples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pfnts.posterior.gaussian import GaussianPosterior
from pfnts.posterior.subclt import MeansAlongPrefixes


@dataclass(frozen=True, kw_only=True)
class PredictiveCLT:
    """Posterior N(m_n, V / n) with V the average of i^2 (m_i - m_{i-1})^2 over all prefixes i = 2, ..., n.

    It asks for the predictive mean after every prefix (n of them), so it suits short histories, and
    backbones for which a prefix is cheap. Each increment is a block direction of its own.

    Examples
    --------
    >>> class Running:
    ...     size = 4
    ...     def means(self, queries, sizes):
    ...         return np.array([[0.0, 1.0, 2.0, 2.0][i - 1 : i] for i in sizes])
    >>> PredictiveCLT().posterior(Running(), [[0.0]]).variance  # V = (2**2 + 3**2 + 0) / 3
    array([1.08333333])
    """

    def posterior(self, sequence: MeansAlongPrefixes, queries: ArrayLike) -> GaussianPosterior:
        """Return the posterior of the mean reward at each query, arrays (q,), all of one function."""
        n = sequence.size
        if n < 2:
            raise ValueError(f"sequence must hold at least 2 observations, got {n}; warm up longer")
        sizes = np.arange(1, n + 1)
        means = np.asarray(sequence.means(queries, sizes.tolist()), dtype=np.float64)
        directions = np.diff(means, axis=0) * (sizes[1:, None] / np.sqrt((n - 1) * n))
        return GaussianPosterior(
            mean=means[-1],
            variance=(directions**2).sum(axis=0),
            size=n,
            directions=directions,
            coupled=True,
        )
