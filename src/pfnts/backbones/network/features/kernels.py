"""Kernel ridge regression on the rows before each row, with columns counted by how much they seem to matter.

The kernel is a bell over contexts plus straight lines and a constant; the first rows are its centres. When
the history has doubled, columns are weighed anew and the rows so far become centres, up to a limit: from one
doubling to the next it is a ridge regression on a fixed basis. A basis is chosen by the rows so far, so that
later rows are better evidence for it: earlier ones count half as it fits them, half as the bases before it
foretold them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pfnts.backbones.network.features.rows import stacked
from pfnts.backbones.network.features.sums import Sums, solve

KERNEL_PENALTIES = (0.03, 0.3, 3.0)
"""The supposed noise variance where the kernel's variance is one."""
CENTRES = 256
JITTER = 1e-3


class KernelRegression:
    """Kernel regressions of B histories of one shape, which grow together.

    Parameters
    ----------
    shares
        Maps contexts (B, n, P) to the weight of each column in the squared distance, (B, P); if None, all
        columns have the same weight, 1 / P.
    """

    def __init__(self, shares: Callable[[Tensor], Tensor] | None = None) -> None:
        self._shares = shares
        self._rows = 0
        self._centres: Tensor | None = None
        self._basis: KernelBasis | None = None
        self._sums: Sums | None = None
        # Evidence of the bases before, less that of this one for the same rows.
        self._before: Tensor | None = None
        self._fits: list[KernelFit] = []

    def fork(self, shares: Callable[[Tensor], Tensor] | None = None) -> KernelRegression:
        """A copy that grows on its own."""
        copy = KernelRegression(shares)
        copy._rows, copy._centres, copy._basis = self._rows, self._centres, self._basis
        copy._sums, copy._before, copy._fits = self._sums, self._before, list(self._fits)
        return copy

    def extend(self, X: Tensor, y: Tensor) -> None:
        """Take note that the history is X (B, n, P), y (B, n) now: what it was, and new rows."""
        n = X.shape[1]
        self._centres = X[:, :CENTRES]
        if not self._fits:
            self._fits = [KernelFit.none(X)]
        while self._rows < n:
            doubled = 1 << self._rows.bit_length()
            before, self._rows = self._rows, min(n, doubled)
            # Two fits to a doubling: on the old basis half way, then on the new one.
            sizes = [size for size in [doubled * 3 // 4] if before < size <= self._rows]
            foretold = self._fit(X, y, sizes, foretell=self._rows == doubled) if before else None
            if self._rows == doubled:
                self._basis = KernelBasis.of(X[:, :doubled], self._weights(X[:, :doubled]))
                self._sums = Sums.none(len(X), self._basis.features, X)
                self._before = None
                self._fit(X, y, [doubled])
                if foretold is not None:
                    self._before = (foretold - self._fits[-1].evidence) / 2
                    self._fits[-1] = replace(self._fits[-1], evidence=self._fits[-1].evidence + self._before)

    def _weights(self, X: Tensor) -> Tensor:
        return alike(X) if self._shares is None else self._shares(X)

    def _fit(self, X: Tensor, y: Tensor, sizes: list[int], *, foretell: bool = False) -> Tensor | None:
        """Add rows to the sums, and fit at some sizes; to ``foretell``, give the evidence of all rows."""
        assert self._basis is not None
        assert self._sums is not None
        rows = slice(self._sums.rows, self._rows)
        sums = self._sums.through(self._basis(X[:, rows]), y[:, rows], [*sizes, self._rows])
        self._sums = sums[-1]
        if not (sizes or foretell):
            return None
        found, evidence = solve(sums if foretell else sums[:-1], penalties=KERNEL_PENALTIES)
        if self._before is not None:
            evidence = evidence + self._before[:, None]
        each = zip(sizes, found.unbind(1), evidence.unbind(1), strict=False)
        self._fits += [KernelFit.of(size, self._basis, beta, log) for size, beta, log in each]
        return evidence[:, -1] if foretell else None

    def fit(self, size: int) -> KernelFit:
        """The last fit to at most ``size`` rows; one that says nothing before the first."""
        return self._fits[bisect_right(self._fits, size, key=lambda fit: fit.size) - 1]

    def say(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Predict contexts X (B, q, P) from the first rows, (B, S, q, 3)."""
        assert self._centres is not None
        fits = [self.fit(size) for size in sizes]
        centres = self._centres[:, : max(fit.of_centres.shape[1] for fit in fits)]
        # (B, S, 1, P), or (B, 1, 1, P) where weights never change
        weight = stacked([fit.weight for fit in (fits if self._shares else fits[:1])])[:, :, None]
        x = X[:, None] * weight
        of_centres = stacked([_pad(fit.of_centres, centres.shape[1]) for fit in fits])
        of_lines = stacked([fit.of_lines for fit in fits])
        return with_constant(x) @ of_lines + bells(x, centres[:, None] * weight) @ of_centres


@dataclass(frozen=True)
class KernelBasis:
    """Functions of a context: a constant, lines, and one for each centre, orthonormal by the kernel."""

    weight: Tensor
    """(B, 1, P), by which a column is multiplied."""
    centres: Tensor
    """(B, m, P), so multiplied."""
    factor: Tensor
    """(B, m, m), lower triangular: of the kernel between the centres."""

    @classmethod
    def of(cls, X: Tensor, shares: Tensor) -> KernelBasis:
        """Make the first of rows X (B, n, P) centres."""
        weight = shares.sqrt()[:, None]
        centres = X[:, :CENTRES] * weight
        kernel = bells(centres, centres)
        kernel.diagonal(dim1=-2, dim2=-1).add_(JITTER)
        factor, _ = torch.linalg.cholesky_ex(kernel)
        return cls(weight, centres, factor)

    @property
    def features(self) -> int:
        """Number of functions."""
        return 1 + self.weight.shape[-1] + self.factor.shape[-1]

    def __call__(self, X: Tensor) -> Tensor:
        """Evaluate at contexts (B, n, P), (B, n, F)."""
        x = X * self.weight
        bell = torch.linalg.solve_triangular(self.factor, bells(self.centres, x), upper=False)
        return torch.cat([with_constant(x), bell.mT], -1)


@dataclass(frozen=True)
class KernelFit:
    """Coefficients from the first rows, for each penalty."""

    size: int
    weight: Tensor
    """(B, P)"""
    of_lines: Tensor
    """(B, P + 1, 3)"""
    of_centres: Tensor
    """(B, m, 3), of the bells themselves."""
    evidence: Tensor
    """(B, 3), its logarithm, of this basis and those before it"""

    @classmethod
    def none(cls, X: Tensor) -> KernelFit:
        """What is known before the first row of X (B, n, P): nothing, so zero is said."""
        batch, _, features = X.shape
        zeros = X.new_zeros(batch, features + 1, len(KERNEL_PENALTIES))
        return cls(0, alike(X).sqrt(), zeros, zeros[:, :0], zeros[:, 0])

    @classmethod
    def of(cls, size: int, basis: KernelBasis, beta: Tensor, evidence: Tensor) -> KernelFit:
        """Keep coefficients (B, F, 3) of a basis in the form that is cheap to evaluate."""
        lines = basis.features - basis.factor.shape[-1]
        of_centres = torch.linalg.solve_triangular(basis.factor.mT, beta[:, lines:], upper=True)
        return cls(size, basis.weight[:, 0], beta[:, :lines], of_centres, evidence)


def bells(x: Tensor, centres: Tensor) -> Tensor:
    """Gaussian bells (..., n, m) at points (..., n, P) around centres (..., m, P).

    Examples
    --------
    >>> bells(torch.tensor([[0.0], [2.0]]), torch.zeros(1, 1))
    tensor([[1.0000],
            [0.1353]])
    """
    size = (x**2).sum(-1)[..., :, None] + (centres**2).sum(-1)[..., None, :]
    return torch.exp((x @ centres.mT - size / 2).clamp(max=0.0))


def with_constant(x: Tensor) -> Tensor:
    """A constant before the columns, (..., P + 1)."""
    return torch.nn.functional.pad(x, (1, 0), value=1.0)


def alike(X: Tensor) -> Tensor:
    """The same weight for every column of X (B, n, P), (B, P)."""
    return torch.full_like(X[:, 0], 1 / X.shape[2])


def _pad(coefficients: Tensor, rows: int) -> Tensor:
    """Zeros below (B, m, 3) up to ``rows``."""
    missing = rows - coefficients.shape[1]
    return torch.nn.functional.pad(coefficients, (0, 0, 0, missing)) if missing else coefficients
