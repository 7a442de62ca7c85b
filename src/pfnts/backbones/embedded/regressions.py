"""Regressions on the rows before each row: first opinions, which the network is told and may trust.

What a closed form knows exactly need not be learned by heart: with few rows and a nearly linear reward
nothing beats ridge regression, and on a smooth one little beats kernel ridge regression. There are four
kinds, with three penalties each: straight lines, waves of single columns, and two kernels (`kernels`), one
that counts all columns alike and one that counts them by how much their waves explain. The thirteenth
opinion is their average, weighed by how probable each makes the rows so far (Bayesian model averaging).
Coefficients are refitted at sizes that grow geometrically, so that n rows cost some log n fits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from pfnts.backbones.embedded.kernels import KERNEL_PENALTIES, KernelRegression, with_constant
from pfnts.backbones.embedded.sums import Sums, solve

PENALTIES = (0.1, 1.0, 10.0)
"""Over the number of columns: the supposed noise variance for a signal variance of one."""
OPINIONS = 2 * len(PENALTIES) + 2 * len(KERNEL_PENALTIES) + 1
"""Those of all, and their average by evidence."""
SHARPNESS = 2.0
"""Sum of the columns' weights where they are told apart: fewer of them matter, so bells may be narrower."""
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
    (torch.Size([1, 50, 13]), True)
    """

    def __init__(self) -> None:
        self._lines = RidgeRegression(with_constant)
        self._waves = RidgeRegression(_waves)
        self._kernels = [KernelRegression(), KernelRegression(self._by_waves)]
        self._X: Tensor | None = None
        self._y: Tensor | None = None

    def fork(self) -> Regressions:
        """Return a copy that grows on its own; what is known so far is shared."""
        twin = Regressions()
        twin._lines, twin._waves = self._lines.fork(), self._waves.fork()
        twin._kernels = [self._kernels[0].fork(), self._kernels[1].fork(twin._by_waves)]
        twin._X, twin._y = self._X, self._y
        return twin

    @torch.no_grad()
    def extend(self, X: Tensor, y: Tensor) -> Tensor:
        """Add rows X (B, m, P), y (B, m); give the opinions on each from the rows before it, (B, m, 13)."""
        X = torch.nan_to_num(X)
        before = 0 if self._X is None else self._X.shape[1]
        self._X = X if self._X is None else torch.cat([self._X, X], 1)
        self._y = y if self._y is None else torch.cat([self._y, y], 1)
        for ridge in (self._lines, self._waves):
            ridge.extend(X, y)
        for kernel in self._kernels:
            kernel.extend(self._X, self._y)
        # Rows between two refits share their coefficients.
        after = before + X.shape[1]
        cuts = [before, *(s for s in refit_sizes(after) if before < s < after), after]
        said = [self._say(X[:, a - before : b - before], [a]) for a, b in pairwise(cuts) if a < b]
        return torch.cat(said, 1)

    @torch.no_grad()
    def opinions(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Opinions on contexts X (B, q, P) from the first rows, (B, len(sizes) * q, 13), sizes outside."""
        return self._say(torch.nan_to_num(X), sizes)

    def _say(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        ridges = [ridge.say(X, sizes) for ridge in (self._lines, self._waves)]
        said = torch.cat([*ridges, *(kernel.say(X, sizes) for kernel in self._kernels)], -1)
        said = said.nan_to_num(0.0).clamp(-LIMIT, LIMIT)  # (B, S, q, 12)
        # The probability of each regression, all alike beforehand.
        evidence = torch.stack([self._evidence(size) for size in sizes], 1)[:, :, None]
        credence = torch.softmax(evidence.nan_to_num(-1e9), -1)
        return torch.cat([said, (said * credence).sum(-1, keepdim=True)], -1).flatten(1, 2)

    def _evidence(self, size: int) -> Tensor:
        """Log evidence of each regression (B, 12), as of the last fit of all."""
        kernels = [kernel.fit(size) for kernel in self._kernels]
        ridges = [ridge.evidence(kernels[0].size) for ridge in (self._lines, self._waves)]
        return torch.cat([*ridges, *(fit.evidence for fit in kernels)], -1)

    def _by_waves(self, X: Tensor) -> Tensor:
        """Weights (B, P) as the shares of columns in the variance of the waves fitted to rows X (B, n, P)."""
        wave = _waves(X)[..., 1:] * self._waves.coefficients(X.shape[1])[:, None, 1:, 1]
        by_column = wave.unflatten(-1, (5, -1)).sum(-2)  # (B, n, P)
        explained = by_column.var(1, correction=0) + 1e-12
        return SHARPNESS * explained / explained.sum(-1, keepdim=True)


def opinions_on(X: Tensor, y: Tensor) -> Tensor:
    """Opinions on every row of whole histories X (B, n, P), y (B, n) from the rows before it, (B, n, 13)."""
    regressions, X, y = Regressions(), X.double(), y.double()
    if X.shape[1] == 1:
        return regressions.extend(X, y).float()
    # The last row is asked about without being added: nothing needs to be fitted to all of the rows.
    before = regressions.extend(X[:, :-1], y[:, :-1])
    last = regressions.opinions(X[:, -1:], [X.shape[1] - 1])
    return torch.cat([before, last], 1).float()


class RidgeRegression:
    """Ridge regression on a fixed basis, with running sums.

    Parameters
    ----------
    basis
        Maps contexts (B, m, P) to (B, m, F).
    """

    def __init__(self, basis: Callable[[Tensor], Tensor]) -> None:
        self._basis = basis
        self._sums: Sums | None = None
        self._sizes: list[int] = []
        self._coefficients: list[Tensor] = []
        self._evidence: list[Tensor] = []

    def fork(self) -> RidgeRegression:
        """Return a copy that grows on its own."""
        twin = RidgeRegression(self._basis)
        twin._sums, twin._sizes = self._sums, [*self._sizes]
        twin._coefficients, twin._evidence = [*self._coefficients], [*self._evidence]
        return twin

    def extend(self, X: Tensor, y: Tensor) -> None:
        """Add rows X (B, m, P), y (B, m)."""
        Z = self._basis(X)
        if self._sums is None:
            self._sums = Sums.none(len(Z), Z.shape[2], Z)
            self._sizes, nothing = [0], Z.new_zeros(len(Z), Z.shape[2], len(PENALTIES))
            self._coefficients, self._evidence = [nothing], [nothing[:, 0]]
        before, after = self._sums.rows, self._sums.rows + X.shape[1]
        new = [s for s in refit_sizes(after) if s > before]
        *at_refits, self._sums = self._sums.through(Z, y, [*new, after])
        if new:
            penalties = [penalty * X.shape[2] for penalty in PENALTIES]
            found, evidence = solve(at_refits, penalties=penalties)
            self._sizes += new
            self._coefficients += found.unbind(1)
            self._evidence += evidence.unbind(1)

    def coefficients(self, size: int) -> Tensor:
        """Coefficients (B, F, 3) of the last fit to at most ``size`` rows; zero before the first."""
        return self._coefficients[bisect_right(self._sizes, size) - 1]

    def evidence(self, size: int) -> Tensor:
        """Log evidence (B, 3) of the same fit."""
        return self._evidence[bisect_right(self._sizes, size) - 1]

    def say(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Predict contexts X (B, q, P) from the first rows, (B, S, q, 3)."""
        return self._basis(X)[:, None] @ torch.stack([self.coefficients(size) for size in sizes], 1)


def refit_sizes(n: int) -> list[int]:
    """Sizes up to n at which coefficients are refitted: each up to 16, then eight to every doubling.

    Examples
    --------
    >>> refit_sizes(40)[-7:]
    [24, 26, 28, 30, 32, 36, 40]
    """
    sizes, size = [], 1
    while size <= n:
        sizes.append(size)
        size += max(1, 2 ** (size.bit_length() - 1) // 8)
    return sizes


def _waves(x: Tensor) -> Tensor:
    """A constant, the columns and two waves of each, (B, m, 5 P + 1)."""
    return torch.cat([with_constant(x), torch.sin(x), torch.cos(x), torch.sin(2 * x), torch.cos(2 * x)], -1)
