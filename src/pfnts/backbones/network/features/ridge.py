"""Ridge regressions on a fixed basis: straight lines, and waves of single columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pfnts.backbones.network.features.refits import four_per_doubling, latest, two_per_doubling
from pfnts.backbones.network.features.rows import stacked
from pfnts.backbones.network.features.sums import Sums, inverses, solve, solve_few

PENALTIES = (0.1, 1.0, 10.0)
"""Noise variance over signal variance, per column."""


def with_constant(x: Tensor) -> Tensor:
    """Put a constant before the columns, (..., P + 1)."""
    return torch.nn.functional.pad(x, (1, 0), value=1.0)


def with_waves(x: Tensor) -> Tensor:
    """Return a constant, the columns and two waves of each, (..., 5 P + 1)."""
    return torch.cat([with_constant(x), torch.sin(x), torch.cos(x), torch.sin(2 * x), torch.cos(2 * x)], -1)


@dataclass(frozen=True)
class RidgeFit:
    """Coefficients from the first rows, for each penalty."""

    size: int
    coefficients: Tensor
    """(B, F, 3)"""
    evidence: Tensor
    """(B, 3), its logarithm"""
    inverse: Tensor | None
    """(B, F, F), of the matrix that was solved with the second penalty."""


@dataclass(frozen=True)
class Ridge:
    """Ridge regressions of B histories on a basis, refitted as they grow."""

    basis: Callable[[Tensor], Tensor]
    """Maps contexts (B, m, P) to (B, m, F)."""
    refits: Callable[[int], list[int]]
    """Sizes up to some number at which coefficients are fitted."""
    sums: Sums
    fits: tuple[RidgeFit, ...]

    @classmethod
    def lines(cls, X: Tensor) -> Ridge:
        """Straight lines, with `leverage`, of histories (B, any, P) without rows."""
        return cls._none(with_constant, four_per_doubling, X, leverage=True)

    @classmethod
    def waves(cls, X: Tensor) -> Ridge:
        """Waves of single columns, of histories (B, any, P) without rows."""
        return cls._none(with_waves, two_per_doubling, X, leverage=False)

    @classmethod
    def _none(
        cls,
        basis: Callable[[Tensor], Tensor],
        refits: Callable[[int], list[int]],
        X: Tensor,
        *,
        leverage: bool,
    ) -> Ridge:
        features = basis(X[:, :1]).shape[2]
        zeros = X.new_zeros(len(X), features, len(PENALTIES))
        eye = torch.eye(features, dtype=X.dtype, device=X.device) / (PENALTIES[1] * X.shape[2])
        inverse = eye.expand(len(X), -1, -1) if leverage else None
        return cls(basis, refits, Sums.none(len(X), features, X), (RidgeFit(0, zeros, zeros[:, 0], inverse),))

    def extend(self, X: Tensor, y: Tensor) -> Ridge:
        """Add the new rows of histories X (B, n, P), y (B, n)."""
        before, after = self.sums.rows, X.shape[1]
        leverage, functions = self.fits[0].inverse is not None, self.sums.moment.shape[-1]
        limit = 0 if leverage else functions // 2
        new = [size for size in self.refits(after) if size > before]
        few, many = [s for s in new if s <= limit], [s for s in new if s > limit]
        *at_refits, sums = self.sums.through(self.basis(X[:, before:]), y[:, before:], [*many, after])
        penalties, fits = [penalty * X.shape[2] for penalty in PENALTIES], self.fits
        if few:
            first = slice(few[-1])
            fits += _fits(
                few, *solve_few(self.basis(X[:, first]), y[:, first], few, penalties=penalties), None
            )
        if many:
            inverse = inverses(at_refits, penalty=penalties[1]) if leverage else None
            fits += _fits(many, *solve(at_refits, penalties=penalties), inverse)
        return replace(self, sums=sums, fits=fits)

    def at(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Predict queries X (B, q, P) from the first rows, (B, S, q, 3)."""
        return self.basis(X)[:, None] @ stacked([latest(self.fits, size).coefficients for size in sizes])

    def leverage(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return the log sd of these predictions under the second penalty, in sds of the noise, (B, S, q)."""
        Z = self.basis(X)[:, None]
        inverse = stacked([i for size in sizes if (i := latest(self.fits, size).inverse) is not None])
        return ((Z @ inverse) * Z).sum(-1).clamp(min=1e-6).log() / 2


def _fits(
    sizes: Sequence[int], coefficients: Tensor, evidence: Tensor, inverse: Tensor | None
) -> tuple[RidgeFit, ...]:
    """Take results (B, K, ...) of several sizes apart."""
    each = [None] * len(sizes) if inverse is None else inverse.unbind(1)
    return tuple(map(RidgeFit, sizes, coefficients.unbind(1), evidence.unbind(1), each))
