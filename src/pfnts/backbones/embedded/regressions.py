"""Ridge regressions on the rows before each row: first opinions, which the network is told and may trust.

What a closed form knows exactly need not be learned by heart: with few rows and a nearly linear reward
nothing beats ridge regression. There are two bases, straight lines and waves of single columns, with three
penalties each. Coefficients are refitted at sizes that grow geometrically: n rows cost some 8 log n fits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

PENALTIES = (0.1, 1.0, 10.0)
"""Over the number of columns: the supposed noise variance for a signal variance of one."""
OPINIONS = 2 * len(PENALTIES)
LIMIT = 10.0
"""Opinions are cut off at this many standard deviations of the targets."""


class Regressions:
    """Regressions of B histories of one shape, which grow together.

    Examples
    --------
    >>> X = torch.randn(1, 50, 3, dtype=torch.float64)
    >>> regressions = Regressions()
    >>> opinions = regressions.extend(X, X[..., 0])
    >>> opinions.shape, bool((opinions[0, 40:, 0] - X[0, 40:, 0]).abs().max() < 0.1)
    (torch.Size([1, 50, 6]), True)
    """

    def __init__(self) -> None:
        self.rows = 0
        self._sums: list[tuple[Tensor, Tensor]] = []
        self._sizes: list[int] = []
        self._coefficients: list[list[Tensor]] = []

    @torch.no_grad()
    def extend(self, X: Tensor, y: Tensor) -> Tensor:
        """Add rows X (B, m, P), y (B, m); give the opinions on each from the rows before it, (B, m, 6)."""
        before, after = self.rows, self.rows + X.shape[1]
        new = [s for s in refit_sizes(after) if s > before]
        ends = [s - before for s in new]
        bases = _bases(X)
        if not self._sums:
            self._sums = [
                (Z.new_zeros(len(Z), Z.shape[2], Z.shape[2]), Z.new_zeros(Z.shape[::2])) for Z in bases
            ]
        fitted = []
        for b, Z in enumerate(bases):
            self._sums[b], grams, moments = _accumulate(*self._sums[b], Z, y, ends)
            if new:
                fitted.append(_solve(grams, moments, features=X.shape[2]))  # (B, K, F, 3)
        self._sizes += new
        self._coefficients += [[of_basis[:, k] for of_basis in fitted] for k in range(len(new))]
        self.rows = after
        # Rows between two refits share their coefficients.
        cuts = [0, *(end for end in ends if end < X.shape[1]), X.shape[1]]
        return torch.cat(
            [self._say([Z[:, a:b] for Z in bases], before + a) for a, b in pairwise(cuts) if a < b],
            1,
        )

    @torch.no_grad()
    def opinions(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Opinions on contexts X (B, q, P) from the first rows, (B, len(sizes) * q, 6), sizes outside."""
        bases = _bases(X)
        return torch.cat([self._say(bases, size) for size in sizes], 1)

    def _say(self, bases: list[Tensor], size: int) -> Tensor:
        fits = bisect_right(self._sizes, size)
        if not fits:
            return bases[0].new_zeros(*bases[0].shape[:2], OPINIONS)
        pairs = zip(bases, self._coefficients[fits - 1], strict=True)
        return torch.cat([Z @ beta for Z, beta in pairs], -1).clamp(-LIMIT, LIMIT)


def refit_sizes(n: int) -> list[int]:
    """Sizes up to n at which coefficients are refitted: each up to 16, then an eighth more each time.

    Examples
    --------
    >>> refit_sizes(24)[-6:]
    [15, 16, 18, 20, 22, 24]
    """
    sizes: list[int] = []
    size = 1
    while size <= n:
        sizes.append(size)
        size += max(1, size // 8)
    return sizes


def _bases(X: Tensor) -> list[Tensor]:
    """Columns and a constant, (B, m, P + 1); the same with two waves of each column, (B, m, 5 P + 1)."""
    x = torch.nan_to_num(X)
    one = torch.ones_like(x[..., :1])
    return [
        torch.cat([one, x], -1),
        torch.cat([one, x, torch.sin(x), torch.cos(x), torch.sin(2 * x), torch.cos(2 * x)], -1),
    ]


def _accumulate(
    gram: Tensor, moment: Tensor, Z: Tensor, y: Tensor, ends: list[int]
) -> tuple[tuple[Tensor, Tensor], list[Tensor], list[Tensor]]:
    """Add rows Z (B, m, F), y (B, m) to the sums; give also the sums as they stood after each of ``ends``."""
    grams, moments, begin = [], [], 0
    for end in [*ends, Z.shape[1]]:
        part = Z[:, begin:end]
        gram = torch.baddbmm(gram, part.mT, part)
        moment = moment + (part.mT @ y[:, begin:end, None])[..., 0]
        grams.append(gram)
        moments.append(moment)
        begin = end
    return (gram, moment), grams[:-1], moments[:-1]


def _solve(grams: list[Tensor], moments: list[Tensor], *, features: int) -> Tensor:
    """Coefficients (B, K, F, 3) of K sums, one for each penalty."""
    gram, moment = torch.stack(grams, 1), torch.stack(moments, 1)
    penalty = torch.tensor(PENALTIES, dtype=gram.dtype, device=gram.device) * features
    ridge = gram[:, :, None] + penalty[:, None, None] * torch.eye(
        gram.shape[-1], dtype=gram.dtype, device=gram.device
    )
    factor, _ = torch.linalg.cholesky_ex(ridge)  # (B, K, 3, F, F); positive definite by the penalty
    right = moment[:, :, None, :, None].expand(*factor.shape[:-1], 1)
    return torch.cholesky_solve(right, factor)[..., 0].mT
