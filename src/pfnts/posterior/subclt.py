"""SubCLT: the posterior variance of a mean reward from predictive means on a geometric grid of prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from pfnts.posterior.base import Array
from pfnts.posterior.estimator import Answer, Asks
from pfnts.posterior.gaussian import GaussianPosterior
from pfnts.posterior.grid import prefix_grid


@dataclass(frozen=True, kw_only=True)
class SubCLT:
    """The subsampled predictive central limit theorem.

    With block increments D_j of the predictive mean, w_j = t_j t_{j-1} / (t_j - t_{j-1}) and averaging
    weights a_j, the mean reward is N(m_n, V / n) with V = sum_j a_j w_j D_j^2. The paper takes for n the last
    grid point; here it is the length of the history, whose rows after that point move the mean as well.

    Parameters
    ----------
    base
        Growth factor of the prefix grid.
    weights
        "equal" averages the blocks alike (the paper); "root" in proportion to sqrt(t_j), because the first
        blocks are far from the asymptotic regime.
    coupled
        Whether arms that share a sequence share the draws of its blocks.

    Examples
    --------
    >>> posterior = SubCLT().from_means(np.array([[1.0], [3.0], [2.0]]), [2, 4, 8], 8)
    >>> posterior.mean, posterior.variance  # V = (4 * 2**2 + 8 * 1**2) / 2 and n = 8
    (array([2.]), array([1.5]))
    """

    base: float = 2.0
    weights: Literal["equal", "root"] = "equal"
    coupled: bool = False

    needs_mean_sd: ClassVar[bool] = False
    own_directions: ClassVar[int] = 0

    def __post_init__(self) -> None:
        prefix_grid(3, self.base)
        if self.weights not in ("equal", "root"):
            raise ValueError(f'weights must be "equal" or "root", got {self.weights!r}')

    def asks(self, n: int) -> Asks:
        """Ask for the means at the points of the grid, and after all n rows."""
        grid = prefix_grid(n, self.base)
        return Asks((*grid, n) if grid[-1] < n else tuple(grid))

    def posterior(self, answer: Answer, *, size: int, reward_variance: float) -> GaussianPosterior:  # noqa: ARG002
        """Give the posterior at the queries, arrays (q,)."""
        return self.from_means(answer.means, prefix_grid(size, self.base), size)

    def from_means(self, means: ArrayLike, grid: Sequence[int], n: int) -> GaussianPosterior:
        """Return the posterior after n rows from predictive means (J + 1, ...) at the sizes of ``grid``.

        Where the grid ends before n, one more row of means holds those after all n rows.
        """
        means = np.asarray(means, dtype=np.float64)
        if len(grid) < 2 or len(means) != len(grid) + (grid[-1] < n):
            raise ValueError(
                f"means must have one row for each of >= 2 sizes up to {n}, got {len(means)} for {list(grid)}"
            )
        steps = np.diff(means[: len(grid)], axis=0)
        factors = self.averaging(grid) * harmonic_weights(grid) / n
        directions = np.sqrt(factors).reshape(-1, *[1] * (steps.ndim - 1)) * steps
        return GaussianPosterior(
            mean=means[-1],
            variance=(directions**2).sum(axis=0),
            size=n,
            directions=directions,
            coupled=True,
        )

    def averaging(self, grid: Sequence[int]) -> Array:
        """Return the weights a_j of the blocks of ``grid``, which add up to one."""
        ends = np.asarray(grid[1:], dtype=np.float64)
        raw = np.ones_like(ends) if self.weights == "equal" else np.sqrt(ends)
        normalised: Array = raw / raw.sum()
        return normalised

    def dof(self, n: int) -> float:
        """Effective degrees of freedom 1 / sum a_j^2 of the variance after ``n`` observations."""
        return float(1 / (self.averaging(prefix_grid(n, self.base)) ** 2).sum())


def harmonic_weights(grid: Sequence[int]) -> Array:
    """w_j = t_j t_{j-1} / (t_j - t_{j-1}), by which E[w_j D_j^2] is about V for every block."""
    sizes = np.asarray(grid, dtype=np.float64)
    weights: Array = sizes[1:] * sizes[:-1] / np.diff(sizes)
    return weights
