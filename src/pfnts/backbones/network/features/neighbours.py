"""What the nearest earlier rows say, under two ways to measure distance.

In the first all columns count alike as they are scaled; in the second they are whitened by the rows up to the
last doubling, so that what many redundant columns say counts once and what sets them apart counts as much.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pfnts.backbones.network.features.rows import Rows, joined, stacked, twice

NEAREST = 16
PREDICTIONS = 6
"""Under each metric: the target of the nearest, the mean of four, a vote of sixteen, the nearer the more."""
NOTES = 2
"""Under each metric: the logarithm of the distance of the nearest."""
ROUNDING = 2.0**-30
"""Of squared distances in double precision."""
ENTRIES = {"cpu": 2**19, "cuda": 2**28, "mps": 2**25}
"""Distances held at a time; on a CPU about what its cache holds."""


class Neighbours:
    """Nearest rows in B histories of one shape, which grow together.

    Both metrics are one batch: half as many operations.
    """

    def __init__(self) -> None:
        self._targets = Rows()
        self._rows = Rows()  # (2 B, n, P): scaled, then whitened
        self._whitenings: list[tuple[int, Tensor]] = []

    def fork(self) -> Neighbours:
        """A copy that grows on its own."""
        copy = Neighbours()
        copy._targets, copy._rows = self._targets.fork(), self._rows.fork()
        copy._whitenings = list(self._whitenings)
        return copy

    def extend(self, X: Tensor, y: Tensor) -> Tensor:
        """Add rows X (B, m, P), y (B, m); give what earlier rows say of each, (B, m, 8)."""
        batch, root = len(X), X.shape[2] ** 0.5
        before = self._targets.length
        after = before + X.shape[1]
        self._targets.add(y)
        said = []
        while before < after:
            end = min(after, 1 << before.bit_length())  # the whitening changes at doublings
            new, X = X[:, : end - before], X[:, end - before :]
            if before:
                self._rows.add(self._under_both(new, self._whitenings[-1][1]))
                rows = self._rows.upto(end)
                step = max(1, ENTRIES[X.device.type] // (len(rows) * end))
                for begin in range(before, end, step):
                    stop = min(end, begin + step)
                    known = rows[:, :stop], twice(self._targets.upto(stop))
                    said.append(_arranged(nearest(rows[:, begin:stop], *known, first=begin)))
                scaled = rows[:batch]
            else:
                said.append(new.new_zeros(batch, 1, PREDICTIONS + NOTES))
                scaled = new / root
            before = end
            if end & (end - 1) == 0:
                self._whitenings.append((end, whitening(scaled)))
                white = scaled * root @ self._whitenings[-1][1]
                self._rows = Rows().add(torch.cat([scaled, white]))
        return joined(said)

    def say(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """What the first rows say of contexts X (B, q, P), (B, S, q, 8)."""
        return stacked([self._say(X, size) for size in sizes])

    def _say(self, X: Tensor, size: int) -> Tensor:
        if not size:
            return X.new_zeros(*X.shape[:2], PREDICTIONS + NOTES)
        whitening = next(W for end, W in reversed(self._whitenings) if end <= size)
        rows, y = self._rows.upto(size), twice(self._targets.upto(size))
        if whitening is not self._whitenings[-1][1]:
            scaled = rows[: len(X)]
            rows = torch.cat([scaled, scaled * X.shape[2] ** 0.5 @ whitening])
        asked = self._under_both(X, whitening)
        step = max(1, ENTRIES[X.device.type] // (len(rows) * size))
        return joined([_arranged(nearest(part, rows, y)) for part in asked.split(step, 1)])

    def _under_both(self, X: Tensor, whitening: Tensor) -> Tensor:
        """Contexts (B, m, P) as (2 B, m, P): scaled, then whitened."""
        return torch.cat([X / X.shape[2] ** 0.5, X @ whitening])


def whitening(rows: Tensor) -> Tensor:
    """Maps (B, P, P) after which columns of (B, n, P), times the root of P, are nearly white.

    The fewer the rows for a column, the less is made of how columns go together.
    """
    _, n, features = rows.shape
    centred = (rows - rows.mean(1, keepdim=True)) * features**0.5
    covariance = centred.mT @ centred / n
    eye = torch.eye(features, dtype=rows.dtype, device=rows.device)
    factor, _ = torch.linalg.cholesky_ex(covariance + (0.003 + 0.1 * features / n) * eye)
    inverse = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
    return inverse.mT / features**0.5


def nearest(X: Tensor, rows: Tensor, y: Tensor, *, first: int | None = None) -> Tensor:
    """Targets of the nearest of rows (B, n, P) to X (B, q, P): three predictions and a distance, (B, q, 4).

    Each sees all rows; if they are themselves rows, the ``first`` of them at that place, those before it.
    """
    between = torch.baddbmm((rows**2).sum(-1)[:, None], X, rows.mT, alpha=-2)
    between += (X**2).sum(-1)[..., None]
    if first is not None:
        later = torch.ones_like(between[0, :, first:], dtype=torch.bool).triu()
        between[..., first:].masked_fill_(later, torch.inf)
    rank = between
    if between.dtype == torch.float64:
        # A product of another shape rounds differently: of rows equally far the earlier comes first.
        order = torch.arange(rows.shape[1], dtype=torch.float64, device=X.device) / (4 * rows.shape[1])
        rank = (between * (1 / ROUNDING)).round_().add_(order)
    at = rank.topk(min(NEAREST, rows.shape[1]), dim=-1, largest=False).indices
    near = between.gather(2, at)
    seen = torch.isfinite(near)
    hidden, near = ~seen, near.clamp(min=1e-5)
    target = y[:, None].expand(-1, X.shape[1], -1).gather(2, at).masked_fill(hidden, 0.0)
    four, count = target[..., :4].sum(-1), seen[..., :4].sum(-1)
    reach = near[..., :8].masked_fill(hidden[..., :8], 0.0).amax(-1, keepdim=True)
    weight = torch.exp(-2 * near / reach)  # none where not seen
    vote = (weight * target).sum(-1) / weight.sum(-1)
    return torch.stack([target[..., 0], four / count, vote, near[..., 0].log() / 4], -1)


def _arranged(near: Tensor) -> Tensor:
    """Predictions under both metrics, then distances: (2 B, q, 4) as (B, q, 8)."""
    plain, white = near.chunk(2)
    return torch.cat([plain[..., :3], white[..., :3], plain[..., 3:], white[..., 3:]], -1)
