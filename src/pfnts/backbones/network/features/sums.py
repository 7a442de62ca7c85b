"""Sums over rows from which ridge regressions are solved, at many sizes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pfnts.backbones.network.features.rows import joined, numbers, stacked


@dataclass(frozen=True)
class Sums:
    """What a ridge regression needs to know of the first rows."""

    gram: Tensor
    """(B, F, F)"""
    moment: Tensor
    """(B, F)"""
    square: Tensor
    """(B,), of the targets"""
    rows: int = 0

    @classmethod
    def none(cls, batch: int, features: int, like: Tensor) -> Sums:
        """Sums over no rows."""
        zeros = like.new_zeros
        return cls(zeros(batch, features, features), zeros(batch, features), zeros(batch))

    def plus(self, Z: Tensor, y: Tensor) -> Sums:
        """Add rows Z (B, m, F), y (B, m)."""
        return Sums(
            torch.baddbmm(self.gram, Z.mT, Z),
            self.moment + (Z.mT @ y[..., None])[..., 0],
            self.square + (y**2).sum(1),
            self.rows + Z.shape[1],
        )

    def through(self, Z: Tensor, y: Tensor, ends: Sequence[int]) -> list[Sums]:
        """Add rows as `plus` does; give the sums after ``ends`` rows, counted from the first of all."""
        found, sums = [], self
        for end in ends:
            if end > sums.rows:
                rows = slice(sums.rows - self.rows, end - self.rows)
                sums = sums.plus(Z[:, rows], y[:, rows])
            found.append(sums)
        return found


def solve(sums: Sequence[Sums], *, penalties: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Coefficients (B, K, F, L) of K sums under L penalties, and the log evidence of each, (B, K, L).

    The evidence is of coefficients with variance s^2 / penalty and noise with variance s^2, s unknown; up to
    a constant that depends on the number of rows alone.

    Examples
    --------
    >>> sums = Sums.none(1, 2, torch.zeros(1)).plus(torch.eye(2)[None], torch.tensor([[2.0, 4.0]]))
    >>> coefficients, evidence = solve([sums], penalties=[1.0])
    >>> coefficients.flatten(), evidence.shape
    (tensor([1., 2.]), torch.Size([1, 1, 1]))
    """
    found, evidence = [], []
    at_once = max(1, 2**25 // (sums[0].gram.numel() * len(penalties)))  # all of them may not fit in memory
    for i in range(0, len(sums), at_once):
        part = sums[i : i + at_once]
        gram, moment = stacked([s.gram for s in part]), stacked([s.moment for s in part])
        square = stacked([s.square for s in part])[..., None]
        halves, penalty = numbers([s.rows / 2 for s in part], gram)[:, None], numbers(penalties, gram)
        ridge = gram[:, :, None].repeat(1, 1, len(penalties), 1, 1)
        ridge.diagonal(dim1=-2, dim2=-1).add_(penalty[:, None])
        factor, _ = torch.linalg.cholesky_ex(ridge)  # (B, k, L, F, F); positive definite by the penalty
        right = moment[:, :, None, :, None].expand(*factor.shape[:-1], 1)
        solved = torch.cholesky_solve(right, factor)[..., 0]  # (B, k, L, F)
        found.append(solved.mT)
        left = square - (solved * moment[:, :, None]).sum(-1)  # (B, k, L)
        evidence.append(_evidence(factor, left, square, halves, penalty))
    return joined(found), joined(evidence)


@dataclass(frozen=True)
class FewRows:
    """Ridge regressions on fewer rows than features, by matrices of as many rows: the same, for less.

    Rows that come after a size are zeros there, so that all sizes are one batch.
    """

    Z: Tensor
    """(B, n, F)"""
    y: Tensor
    """(B, n)"""
    sizes: Sequence[int]
    """K of them, the last is n"""

    def solve(self, *, penalties: Sequence[float]) -> tuple[Tensor, Tensor]:
        """Coefficients (B, K, F, L) of all sizes under L penalties, and log evidence (B, K, L), as `solve`.

        Examples
        --------
        >>> few = FewRows(torch.eye(2)[None], torch.tensor([[2.0, 4.0]]), [1, 2])
        >>> few.solve(penalties=[1.0])[0].flatten()
        tensor([1., 0., 1., 2.])
        """
        penalty, factor = numbers(penalties, self.Z), self._factor(penalties)  # (B, K, L, n, n)
        y = (self.y[:, None] * self._there)[:, :, None]
        weights = torch.cholesky_solve(y[..., None].expand(*factor.shape[:-1], 1), factor)[..., 0]
        left, square = penalty * (weights * y).sum(-1), (y**2).sum(-1)  # (B, K, L), (B, K, 1)
        halves = numbers([size / 2 for size in self.sizes], self.Z)[:, None]
        return (weights @ self.Z[:, None]).mT, _evidence(factor, left, square, halves, penalty)

    def inverses(self, *, penalty: float) -> Tensor:
        """Inverses (B, K, F, F) under one penalty, as `inverses`.

        Examples
        --------
        >>> FewRows(torch.eye(2)[None], torch.tensor([[2.0, 4.0]]), [1]).inverses(penalty=1.0)[0, 0]
        tensor([[0.5000, 0.0000],
                [0.0000, 1.0000]])
        """
        rows = self.Z[:, None] * self._there[..., None]
        half = torch.linalg.solve_triangular(self._factor([penalty])[:, :, 0], rows, upper=False)
        eye = torch.eye(self.Z.shape[2], dtype=self.Z.dtype, device=self.Z.device)
        return (eye - half.mT @ half) / penalty

    @property
    def _there(self) -> Tensor:
        """(K, n), 1 for the rows of a size and 0 for those after it."""
        row = torch.arange(self.Z.shape[1], device=self.Z.device)
        return (row < numbers(self.sizes, self.Z)[:, None]).to(self.Z.dtype)

    def _factor(self, penalties: Sequence[float]) -> Tensor:
        there = self._there
        kernel = (self.Z @ self.Z.mT)[:, None] * (there[:, :, None] * there[:, None])
        kernel = kernel[:, :, None].repeat(1, 1, len(penalties), 1, 1)
        kernel.diagonal(dim1=-2, dim2=-1).add_(numbers(penalties, self.Z)[:, None])
        return torch.linalg.cholesky_ex(kernel)[0]


def _evidence(factor: Tensor, left: Tensor, square: Tensor, halves: Tensor, penalty: Tensor) -> Tensor:
    """Log evidence from a factor (..., L, m, m), what is left of the targets' squares, and halves of rows."""
    left = left.maximum(1e-6 * square + 1e-9)  # what float32 can tell from nothing
    size = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) - factor.shape[-1] / 2 * penalty.log()
    return -size - halves * left.log()


def inverses(sums: Sequence[Sums], *, penalty: float) -> Tensor:
    """Inverses (B, K, F, F) of the matrices of K sums under one penalty: how well coefficients are known.

    Examples
    --------
    >>> sums = Sums.none(1, 2, torch.zeros(1)).plus(torch.eye(2)[None], torch.tensor([[2.0, 4.0]]))
    >>> inverses([sums], penalty=1.0)[0, 0]
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    gram = stacked([s.gram for s in sums])
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    factor, _ = torch.linalg.cholesky_ex(gram + penalty * eye)
    half = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
    return half.mT @ half
