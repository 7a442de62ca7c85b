"""Targets of the nearest earlier rows, with two distances.

In the first all columns have the same weight as they are scaled; for the second they are whitened by the rows
up to the last doubling, so that redundant columns together count once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pfnts.backbones.network.features.refits import latest
from pfnts.backbones.network.features.rows import Rows, joined, stacked, twice

NEAREST = 16
BLOCK = 64
"""Rows of which, in a long history, first only the nearest is compared."""
ROUNDING = 2.0**-30
"""Of squared distances in double precision."""
ENTRIES = {"cpu": 2**19, "cuda": 2**28, "mps": 2**25}
"""Distances held at a time; on a CPU about what its cache holds."""


@dataclass(frozen=True)
class Whitening:
    """Maps of columns (B, P, P), by the first rows."""

    size: int
    map: Tensor

    @classmethod
    def of(cls, X: Tensor) -> Whitening:
        """Whiten the columns of rows X (B, n, P), shrunk towards no change by P / n, and divide by the root of P."""
        _, n, features = X.shape
        centred = X - X.mean(1, keepdim=True)
        eye = torch.eye(features, dtype=X.dtype, device=X.device)
        covariance = centred.mT @ centred / n + (0.003 + 0.1 * features / n) * eye
        factor, _ = torch.linalg.cholesky_ex(covariance)
        inverse = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
        return cls(n, inverse.mT / features**0.5)

    def __call__(self, X: Tensor) -> Tensor:
        """Return contexts (B, m, P) as scaled, then whitened, (2 B, m, P)."""
        return torch.cat([X / X.shape[2] ** 0.5, X @ self.map])

    def keys(self, X: Tensor) -> Tensor:
        """Return (2 B, m, P + 1): a query's product with them, and a 1, is the squared distance less its own square."""
        Z = self(X)
        return torch.cat([-2 * Z, (Z**2).sum(-1, keepdim=True)], -1)


@dataclass(frozen=True)
class Neighbours:
    """Nearest rows in B histories; both distances are one batch of 2 B."""

    keys: Rows
    """(2 B, n, P + 1), under the last whitening"""
    whitenings: tuple[Whitening, ...]

    @classmethod
    def none(cls, X: Tensor) -> Neighbours:
        """No rows of histories (B, any, P)."""
        eye = torch.eye(X.shape[2], dtype=X.dtype, device=X.device).expand(len(X), -1, -1)
        return cls(Rows.of(X.new_zeros(2 * len(X), 0, X.shape[2] + 1)), (Whitening(0, eye),))

    def extend(self, X: Tensor, y: Tensor) -> tuple[Neighbours, dict[str, Tensor]]:
        """Add the new rows of histories X (B, n, P), y (B, n); return their features, from the rows before each."""
        keys, whitenings, found = self.keys, self.whitenings, []
        while keys.length < X.shape[1]:
            begin, end = keys.length, min(X.shape[1], 1 << keys.length.bit_length())  # to the next doubling
            new = X[:, begin:end]
            keys = keys.append(whitenings[-1].keys(new))
            found.append(_nearest(whitenings[-1](new), keys.first(end), y[:, :end], first=begin))
            if end & (end - 1) == 0:
                whitenings += (Whitening.of(X[:, :end]),)
                keys = Rows.of(whitenings[-1].keys(X[:, :end]))
        return Neighbours(keys, whitenings), _named(joined(found))

    def at(self, queries: Tensor, sizes: Sequence[int], X: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Return features of queries (B, q, P) after the first rows of the history X, y, (B, S, q, width)."""
        found = []
        for size in sizes:
            whitening, known = latest(self.whitenings, size), self.keys.first(size)
            if whitening is not self.whitenings[-1]:
                known = whitening.keys(X[:, :size])
            found.append(_nearest(whitening(queries), known, y[:, :size]))
        return _named(stacked(found))


def _named(found: Tensor) -> dict[str, Tensor]:
    plain, white = found.chunk(2)
    distances = torch.cat([plain[..., 3:], white[..., 3:]], -1)
    return {"nearest rows": plain[..., :3], "nearest rows, whitened": white[..., :3], "distances": distances}


def _nearest(queries: Tensor, keys: Tensor, y: Tensor, *, first: int | None = None) -> Tensor:
    """Return three predictions and a distance for queries (2 B, q, P) from rows with targets (B, n), (2 B, q, 4).

    A query sees all rows; if queries are themselves rows, the ``first`` of them at that place, those before it.
    """
    if first == 0 or not keys.shape[1]:
        return queries.new_zeros(*queries.shape[:2], 4)
    targets, step = twice(y), max(1, ENTRIES[queries.device.type] // (len(keys) * keys.shape[1]))
    found = []
    for begin in range(0, queries.shape[1], step):
        part, known = queries[:, begin : begin + step], keys
        if first is not None:
            known = keys[:, : first + begin + part.shape[1]]
        at, near = nearest(part, known, first=None if first is None else first + begin)
        found.append(_summary(near, targets[:, None].expand(-1, part.shape[1], -1).gather(2, at)))
    return joined(found)


def nearest(queries: Tensor, keys: Tensor, *, first: int | None = None) -> tuple[Tensor, Tensor]:
    """Find the nearest rows by their keys (B, n, P + 1): places and squared distances, (B, q, 16), nearest first.

    Distances are infinite where a query sees fewer rows; of rows equally far the earlier comes first.
    """
    n, own = keys.shape[1], (queries**2).sum(-1, keepdim=True)
    between = torch.nn.functional.pad(queries, (0, 1), value=1.0) @ keys.mT
    if first is not None:
        later = torch.ones_like(between[0, :, first:], dtype=torch.bool).triu()
        between[..., first:].masked_fill_(later, torch.inf)
    row, whole = torch.arange(n, device=keys.device), n // BLOCK
    if whole > 2 * NEAREST:
        # The nearest rows are in the blocks whose nearest rows are nearest, or after the last whole block.
        rest, row = row[whole * BLOCK :], row[: whole * BLOCK].view(whole, BLOCK)
        least = between[..., : whole * BLOCK].unflatten(-1, row.shape).amin(-1) + own
        row = torch.cat([row[_smallest(least)].flatten(-2), rest.expand(*least.shape[:2], -1)], -1)
        between = between.gather(2, row)
    near = between + own
    at = _smallest(near, row)
    return row.expand(near.shape).gather(2, at), near.gather(2, at)


def _smallest(near: Tensor, row: Tensor | None = None) -> Tensor:
    """Return where the 16 smallest of numbers (..., n) are; of equal ones those of the first ``row`` come first."""
    if near.dtype == torch.float64:  # a product of another shape rounds differently
        row = torch.arange(near.shape[-1], device=near.device) if row is None else row
        near = torch.add((near * (1 / ROUNDING)).round_(), row / (4 * (row[..., -1:] + 1)))
    return near.topk(min(NEAREST, near.shape[-1]), dim=-1, largest=False).indices


def _summary(near: Tensor, target: Tensor) -> Tensor:
    """Return the nearest target, the mean of four, a weighted vote, and a log distance, from (..., 16) of each."""
    seen = torch.isfinite(near)
    hidden, near = ~seen, near.clamp(min=1e-5)
    target = target.masked_fill(hidden, 0.0)
    four, count = target[..., :4].sum(-1), seen[..., :4].sum(-1)
    reach = near[..., :8].masked_fill(hidden[..., :8], 0.0).amax(-1, keepdim=True)
    weight = torch.exp(-2 * near / reach)  # zero where not seen
    vote = (weight * target).sum(-1) / weight.sum(-1)
    return torch.stack([target[..., 0], four / count, vote, near[..., 0].log() / 4], -1)
