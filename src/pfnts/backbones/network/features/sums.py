"""Ridge regressions solved from sums over rows, or from the rows while they are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pfnts.backbones.network.features.rows import joined, numbers, stacked

ENTRIES = 2**25
"""Entries of the matrices that are factored in one call: more might not fit in memory."""


@dataclass(frozen=True)
class Sums:
    """Sums over the first rows of B histories, sufficient for a ridge regression."""

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
        """Add rows as `plus` does; return the sums after ``ends`` rows of the history."""
        found, sums = [], self
        for end in ends:
            if end > sums.rows:
                rows = slice(sums.rows - self.rows, end - self.rows)
                sums = sums.plus(Z[:, rows], y[:, rows])
            found.append(sums)
        return found


def solve(sums: Sequence[Sums], *, penalties: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Return coefficients (B, K, F, L) of K sums under L penalties, and the log evidence of each, (B, K, L).

    Coefficients have prior variance s^2 / penalty and the noise has variance s^2, with s unknown; a constant
    that depends only on the number of rows is left out of the evidence.

    Examples
    --------
    >>> sums = Sums.none(1, 2, torch.zeros(1)).plus(torch.eye(2)[None], torch.tensor([[2.0, 4.0]]))
    >>> coefficients, evidence = solve([sums], penalties=[1.0])
    >>> coefficients.flatten(), evidence.shape
    (tensor([1., 2.]), torch.Size([1, 1, 1]))
    """
    found, evidence = [], []
    at_once = max(1, ENTRIES // (sums[0].gram.numel() * len(penalties)))
    for i in range(0, len(sums), at_once):
        part = sums[i : i + at_once]
        moment, square = stacked([s.moment for s in part]), stacked([s.square for s in part])
        factor = _factor(stacked([s.gram for s in part]), penalties)  # (B, k, L, F, F)
        right = moment[:, :, None, :, None].expand(*factor.shape[:-1], 1)
        solved = torch.cholesky_solve(right, factor)[..., 0]  # (B, k, L, F)
        found.append(solved.mT)
        left = square[..., None] - (solved * moment[:, :, None]).sum(-1)
        evidence.append(_evidence(factor, left, square, [s.rows for s in part], penalties))
    return joined(found), joined(evidence)


def inverses(sums: Sequence[Sums], *, penalty: float) -> Tensor:
    """Return the inverses (B, K, F, F) of the matrices of K sums under one penalty.

    Examples
    --------
    >>> sums = Sums.none(1, 2, torch.zeros(1)).plus(torch.eye(2)[None], torch.tensor([[2.0, 4.0]]))
    >>> inverses([sums], penalty=1.0)[0, 0]
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    factor = _factor(stacked([s.gram for s in sums]), [penalty])[:, :, 0]
    eye = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    return torch.cholesky_solve(eye.expand_as(factor), factor)


def solve_few(
    Z: Tensor, y: Tensor, sizes: Sequence[int], *, penalties: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Return what `solve` does after K ``sizes`` of rows Z (B, n, F), y (B, n), the last size n.

    It takes less time for fewer rows than functions: the matrices are (n, n). Rows after a size are zeros.

    Examples
    --------
    >>> coefficients, _ = solve_few(torch.eye(2)[None], torch.tensor([[2.0, 4.0]]), [1, 2], penalties=[1.0])
    >>> coefficients.flatten()
    tensor([1., 0., 1., 2.])
    """
    row = torch.arange(Z.shape[1], device=Z.device)
    included = (row < numbers(sizes, Z)[:, None]).to(Z.dtype)  # (K, n)
    factor = _factor((Z @ Z.mT)[:, None] * (included[:, :, None] * included[:, None]), penalties)
    y = (y[:, None] * included)[:, :, None]  # (B, K, 1, n)
    weights = torch.cholesky_solve(y[..., None].expand(*factor.shape[:-1], 1), factor)[..., 0]
    left = numbers(penalties, Z) * (weights * y).sum(-1)  # (B, K, L)
    return (weights @ Z[:, None]).mT, _evidence(factor, left, (y**2).sum(-1)[..., 0], sizes, penalties)


def _factor(gram: Tensor, penalties: Sequence[float]) -> Tensor:
    """Return Cholesky factors (B, K, L, m, m) of matrices (B, K, m, m) plus each penalty."""
    ridge = gram[:, :, None].repeat(1, 1, len(penalties), 1, 1)
    ridge.diagonal(dim1=-2, dim2=-1).add_(numbers(penalties, gram)[:, None])
    return torch.linalg.cholesky_ex(ridge)[0]


def _evidence(
    factor: Tensor, left: Tensor, square: Tensor, rows: Sequence[int], penalties: Sequence[float]
) -> Tensor:
    """Return log evidence (B, K, L) from residual squares, ``left``, and squares of the targets (B, K)."""
    left = left.maximum(1e-6 * square[..., None] + 1e-9)  # what float32 can tell from zero
    penalty, halves = numbers(penalties, left), numbers([n / 2 for n in rows], left)[:, None]
    size = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1) - factor.shape[-1] / 2 * penalty.log()
    return -size - halves * left.log()
