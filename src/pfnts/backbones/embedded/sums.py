"""Sums over rows from which ridge regressions are solved, at many sizes together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def accumulate(
    gram: Tensor, moment: Tensor, Z: Tensor, y: Tensor, ends: Sequence[int]
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


def solve(grams: Sequence[Tensor], moments: Sequence[Tensor], *, penalties: Sequence[float]) -> Tensor:
    """Coefficients (B, K, F, L) of K sums (B, F, F) and (B, F) under L penalties.

    Examples
    --------
    >>> solve([torch.eye(2)[None]], [torch.tensor([[2.0, 4.0]])], penalties=[1.0]).flatten()
    tensor([1., 2.])
    """
    found = []
    for gram, moment in zip(_chunks(grams), _chunks(moments), strict=True):
        eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        penalty = torch.tensor(penalties, dtype=gram.dtype, device=gram.device)
        ridge = gram[:, :, None] + penalty[:, None, None] * eye
        factor, _ = torch.linalg.cholesky_ex(ridge)  # (B, k, L, F, F); positive definite by the penalty
        right = moment[:, :, None, :, None].expand(*factor.shape[:-1], 1)
        found.append(torch.cholesky_solve(right, factor)[..., 0].mT)
    return torch.cat(found, 1)


def _chunks(sums: Sequence[Tensor], *, size: int = 8) -> list[Tensor]:
    """Stack a few at a time: all of them may not fit in memory."""
    return [torch.stack(list(sums[i : i + size]), 1) for i in range(0, len(sums), size)]
