"""Kernel ridge regressions with two weightings of the columns, as ridge regressions on at most 256 centres.

The kernel is a Gaussian of the distance plus a line and a constant. When a history has doubled, its rows
become the centres and its columns are weighted by these rows; until the next doubling the basis is fixed. The
rows that chose a basis are weaker evidence for it than later rows: half their evidence is that of this basis,
half that of the bases before it, which had not seen them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from pfnts.backbones.network.features.refits import latest
from pfnts.backbones.network.features.ridge import with_constant, with_waves
from pfnts.backbones.network.features.rows import stacked, twice
from pfnts.backbones.network.features.sums import Sums, solve

KERNEL_PENALTIES = (0.03, 0.3, 3.0)
"""Noise variance where the kernel's variance is one."""
CENTRES = 256
JITTER = 1e-3
SHARPNESS = 2.0
"""Sum of the weights of the columns where they differ: fewer columns matter, so Gaussians may be narrower."""
APART = 0.5
"""Least squared distance of two arms at one context: the variance that the column of an arm explains depends
on how often the arm was tried, not on how much it differs from the others."""


V = TypeVar("V", "KernelBasis", Sums)


def equal_weights(X: Tensor) -> Tensor:
    """Return the same weight 1/P for every column of X (B, n, P), (B, P)."""
    return torch.full_like(X[:, 0], 1 / X.shape[2])


def wave_weights(X: Tensor, coefficients: Tensor, names_arm: Tensor | None = None) -> Tensor:
    """Return weights (B, P): shares of the columns in the variance of a fit of waves to rows X (B, n, P).

    The ``coefficients`` are (B, 5 P + 1), and ``names_arm`` (B or 1, P) marks the columns of arms.
    """
    wave = with_waves(X)[..., 1:] * coefficients[:, None, 1:]
    explained = wave.unflatten(-1, (5, -1)).sum(-2).var(1, correction=0).nan_to_num(0.0) + 1e-6
    weight = SHARPNESS * explained / explained.sum(-1, keepdim=True)
    if names_arm is None:
        return weight
    # Two arms differ in two columns; the column of an arm that was never tried is constant.
    span = (X.amax(1) - X.amin(1)).clamp(min=1.0)
    return torch.where(names_arm, weight.maximum(APART / 2 / span**2), weight)


def gaussians(x: Tensor, centres: Tensor) -> Tensor:
    """Return exp(-d²/2) between points (..., n, P) and centres (..., m, P), (..., n, m).

    Examples
    --------
    >>> gaussians(torch.tensor([[0.0], [2.0]]), torch.zeros(1, 1))
    tensor([[1.0000],
            [0.1353]])
    """
    size = (x**2).sum(-1)[..., :, None] + (centres**2).sum(-1)[..., None, :]
    return torch.add(x @ centres.mT, size, alpha=-0.5).clamp_(max=0.0).exp_()


@dataclass(frozen=True)
class KernelBasis:
    """A constant, lines, and one function for each centre, orthonormal under the kernel."""

    weight: Tensor
    """(B, 1, P), by which a column is multiplied."""
    centres: Tensor
    """(B, m, P), multiplied."""
    root: Tensor
    """(B, m, m), lower triangular: inverse of the Cholesky factor of the kernel between the centres."""

    @classmethod
    def of(cls, X: Tensor, weights: Tensor) -> KernelBasis:
        """Use the first of rows X (B, n, P) as centres, with weights (B, P) of the columns."""
        weight = weights.sqrt()[:, None]
        centres = X[:, :CENTRES] * weight
        kernel = gaussians(centres, centres)
        kernel.diagonal(dim1=-2, dim2=-1).add_(JITTER)
        factor, _ = torch.linalg.cholesky_ex(kernel)
        eye = torch.eye(factor.shape[-1], dtype=X.dtype, device=X.device)
        return cls(weight, centres, torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False))

    def __call__(self, X: Tensor) -> Tensor:
        """Evaluate at contexts (B, n, P), (B, n, F)."""
        x = X * self.weight
        return torch.cat([with_constant(x), gaussians(x, self.centres) @ self.root.mT], -1)


@dataclass(frozen=True)
class KernelFit:
    """Coefficients from the first rows, for each penalty."""

    size: int
    weight: Tensor
    """(B, 1, P), as of the basis"""
    of_lines: Tensor
    """(B, P + 1, 3)"""
    of_centres: Tensor
    """(B, m, 3), of the Gaussians themselves."""
    evidence: Tensor
    """(B, 3), its logarithm, of this basis and those before it."""

    @classmethod
    def of(cls, size: int, basis: KernelBasis, beta: Tensor, evidence: Tensor) -> KernelFit:
        """Convert coefficients (B, F, 3) in a basis to those of the Gaussians."""
        lines = beta.shape[1] - basis.root.shape[-1]
        return cls(size, basis.weight, beta[:, :lines], basis.root.mT @ beta[:, lines:], evidence)


@dataclass(frozen=True)
class Kernels:
    """Kernel regressions of B histories, refitted as they grow.

    The two weightings of columns are one batch of 2 B.
    """

    fits: tuple[KernelFit, ...]
    rows: int = 0
    centres: Tensor | None = None
    """(2 B, m, P), the first rows"""
    basis: KernelBasis | None = None
    sums: Sums | None = None
    """In this basis."""
    earlier: Tensor | float = 0.0
    """(2 B, 3), half of: evidence of the bases before this one, less its own, from the rows that chose it."""

    @classmethod
    def none(cls, X: Tensor) -> Kernels:
        """Hold no rows of histories (B, any, P); predictions are zero."""
        zeros = X.new_zeros(2 * len(X), X.shape[2] + 1, len(KERNEL_PENALTIES))
        ones = X.new_ones(2 * len(X), 1, X.shape[2])
        return cls((KernelFit(0, ones, zeros, zeros[:, :0], zeros[:, 0]),))

    def extend(self, X: Tensor, y: Tensor, weights: Callable[[Tensor], Tensor]) -> Kernels:
        """Add the new rows of histories X (B, n, P), y (B, n).

        ``weights`` maps the first rows to the weights of columns, (2 B, P), equal ones first.
        """
        new = self if self.rows >= CENTRES else replace(self, centres=twice(X[:, :CENTRES]))
        while new.rows < X.shape[1]:
            doubled = 1 << new.rows.bit_length()
            new = new._add(X, y, min(doubled, X.shape[1]))
            if new.rows == doubled:
                first = X[:, :doubled]
                new = new._change_basis(twice(first), twice(y[:, :doubled]), weights(first))
        return new

    def _add(self, X: Tensor, y: Tensor, end: int) -> Kernels:
        """Add rows up to ``end``, at most as far as the next doubling, and fit half way to it."""
        if self.basis is None or self.sums is None:
            return replace(self, rows=end)
        half = (3 << self.rows.bit_length()) // 4
        ends = [size for size in [half] if self.rows < size <= end]
        new_X, new_y = (twice(x[:, self.rows : end]) for x in (X, y))
        *at_fits, sums = self.sums.through(self.basis(new_X), new_y, [*ends, end])
        fits = self.fits
        if ends:
            found, evidence = solve(at_fits, penalties=KERNEL_PENALTIES)
            fits += (KernelFit.of(half, self.basis, found[:, 0], evidence[:, 0] + self.earlier),)
        return replace(self, rows=end, sums=sums, fits=fits)

    def _change_basis(self, X: Tensor, y: Tensor, weights: Tensor) -> Kernels:
        """Choose a basis by all rows (2 B, n, P), and fit it to them."""
        # If no centres are added, the basis of equal weights is the same, and so are its sums.
        full = self.basis is not None and self.basis.centres.shape[1] == CENTRES
        same = slice(len(X) // 2 if full else 0)
        new = slice(same.stop, None)
        basis = KernelBasis.of(X[new], weights[new])
        Z = basis(X[new])
        sums = Sums.none(len(Z), Z.shape[2], X).plus(Z, y[new])
        if same.stop and self.basis is not None and self.sums is not None:
            basis, sums = _joined(self.basis, basis, same), _joined(self.sums, sums, same)
        found, own = (x[:, 0] for x in solve([sums], penalties=KERNEL_PENALTIES))
        earlier: Tensor | float = 0.0
        if self.sums is not None:
            advance = solve([self.sums], penalties=KERNEL_PENALTIES)[1][:, 0] + self.earlier
            earlier = (advance - own) / 2
        fit = KernelFit.of(self.rows, basis, found, own + earlier)
        return replace(self, basis=basis, sums=sums, earlier=earlier, fits=(*self.fits, fit))

    def at(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Predict queries X (B, q, P) from the first rows, (2 B, S, q, 3)."""
        fits = [latest(self.fits, size) for size in sizes]
        x = twice(X)[:, None] * stacked([fit.weight for fit in fits])
        lines = with_constant(x) @ stacked([fit.of_lines for fit in fits])
        most = max(fit.of_centres.shape[1] for fit in fits)
        if self.centres is None or not most:
            return lines
        centres = self.centres[:, None, :most] * stacked([fit.weight for fit in fits])
        return lines + gaussians(x, centres) @ stacked([_pad(fit.of_centres, most) for fit in fits])


def _joined(one: V, other: V, part: slice) -> V:
    """Concatenate part of the batch of one value with all of the other's."""
    each: dict[str, Any] = {field.name: getattr(other, field.name) for field in fields(other)}
    for name, value in each.items():
        if isinstance(value, Tensor):
            each[name] = torch.cat([getattr(one, name)[part], value])
    return replace(other, **each)


def _pad(coefficients: Tensor, rows: int) -> Tensor:
    """Add zeros below (B, m, 3) up to ``rows``."""
    missing = rows - coefficients.shape[1]
    return torch.nn.functional.pad(coefficients, (0, 0, 0, missing)) if missing else coefficients
