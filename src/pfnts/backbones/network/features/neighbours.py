"""Targets of the nearest earlier rows, by two distances.

The first adds up all columns. For the second they are whitened by the rows up to the last doubling, so that
redundant columns together count once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pfnts.backbones.network.features.refits import latest
from pfnts.backbones.network.features.rows import Rows, joined, stacked, twice

NEAREST = 16
BLOCK = 64
"""Rows of which, in a long history, first only the nearest is compared."""
ROUNDING = 2.0**-30
"""Unit of squared distances in double precision."""
ENTRIES = {"cpu": 2**19, "cuda": 2**28, "mps": 2**25}
"""Distances held at a time; on a CPU about what its cache holds."""


@dataclass(frozen=True)
class Whitened:
    """Rows whitened by the first ``size`` of them, up to the next doubling."""

    size: int
    map: Tensor
    """(B, P, P), by which columns are multiplied."""
    keys: Rows
    """(2 B, n, P + 1), whose products with a query and a 1 are squared distances less the query's square."""

    @classmethod
    def by(cls, X: Tensor) -> Whitened:
        """Whiten by rows X (B, n, P), the less the fewer rows there are for each column."""
        _, n, features = X.shape
        eye = torch.eye(features, dtype=X.dtype, device=X.device)
        centred = X - X.mean(1, keepdim=True)
        covariance = centred.mT @ centred / n + (0.003 + 0.1 * features / n) * eye
        factor, _ = torch.linalg.cholesky_ex(covariance)
        inverse = torch.linalg.solve_triangular(factor, eye.expand_as(factor), upper=False)
        none = cls(n, inverse.mT / features**0.5, Rows.of(X.new_zeros(2 * len(X), 0, features + 1)))
        return none.append(X)

    def append(self, X: Tensor) -> Whitened:
        """Add rows X (B, m, P)."""
        Z = self(X)
        return replace(self, keys=self.keys.append(torch.cat([-2 * Z, (Z**2).sum(-1, keepdim=True)], -1)))

    def __call__(self, X: Tensor) -> Tensor:
        """Return contexts X (B, m, P) scaled alike, then whitened, (2 B, m, P)."""
        return torch.cat([X / X.shape[2] ** 0.5, X @ self.map])


@dataclass(frozen=True)
class Neighbours:
    """Nearest rows in B histories; both distances are one batch of 2 B."""

    rows: int
    whitened: tuple[Whitened, ...]
    """One for each doubling."""

    @classmethod
    def none(cls) -> Neighbours:
        """No rows."""
        return cls(0, ())

    def extend(self, X: Tensor, y: Tensor) -> tuple[Neighbours, dict[str, Tensor]]:
        """Add the new rows of histories X (B, n, P), y (B, n); return features from the rows before each."""
        rows, whitened, found = self.rows, self.whitened, []
        while rows < X.shape[1]:
            begin, rows = rows, min(X.shape[1], 1 << rows.bit_length())  # to the next doubling
            new = X[:, begin:rows]
            if begin:
                whitened = (*whitened[:-1], whitened[-1].append(new))
                known = whitened[-1].keys.first(rows)
                found.append(_nearest(whitened[-1](new), known, y[:, :rows], first=begin))
            else:
                found.append(_unknown(new))
            if rows & (rows - 1) == 0:
                whitened += (Whitened.by(X[:, :rows]),)
        return Neighbours(rows, whitened), _named(joined(found))

    def at(self, queries: Tensor, sizes: Sequence[int], y: Tensor) -> dict[str, Tensor]:
        """Return features of queries (B, q, P) after the first rows with targets y, (B, S, q, width)."""
        found = []
        for size in sizes:
            if not size:
                found.append(_unknown(queries))
                continue
            by = latest(self.whitened, size)
            found.append(_nearest(by(queries), by.keys.first(size), y[:, :size]))
        return _named(stacked(found))


def _unknown(queries: Tensor) -> Tensor:
    """Return what is known of queries (B, q, P) without rows, (2 B, q, 4)."""
    return queries.new_zeros(2 * len(queries), queries.shape[1], 4)


def _named(found: Tensor) -> dict[str, Tensor]:
    plain, white = found.chunk(2)
    distances = torch.cat([plain[..., 3:], white[..., 3:]], -1)
    return {"nearest": plain[..., :3], "nearest, whitened": white[..., :3], "distances": distances}


def _nearest(queries: Tensor, keys: Tensor, y: Tensor, *, first: int | None = None) -> Tensor:
    """Return three predictions and a distance for queries (2 B, q, P), (2 B, q, 4); rows have targets (B, n).

    A query sees all rows, unless queries are rows from the ``first`` on: then it sees the rows before it.
    """
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
    """Find the nearest of rows with keys (B, n, P + 1): places and squared distances, (B, q, 16), in order.

    Distances are infinite where a query sees fewer rows; of rows at equal distance the earlier comes first.
    """
    n, own = keys.shape[1], (queries**2).sum(-1, keepdim=True)
    between = torch.nn.functional.pad(queries, (0, 1), value=1.0) @ keys.mT
    if first is not None:
        later = torch.ones_like(between[0, :, first:], dtype=torch.bool).triu()
        between[..., first:].masked_fill_(later, torch.inf)
    row, whole = torch.arange(n, device=keys.device), n // BLOCK
    if whole <= 2 * NEAREST:
        near = between.add_(own)
        at = _smallest(near, row, n)
        return at, near.gather(2, at)
    # The nearest rows are in the blocks whose nearest rows are nearest, or after the last whole block.
    blocks = between[..., : whole * BLOCK].unflatten(-1, (whole, BLOCK))
    best = _smallest(blocks.amin(-1).add_(own), row[:whole], n)[..., None]
    rest = row[whole * BLOCK :].expand(*best.shape[:2], -1)
    row = torch.cat([(best * BLOCK + row[:BLOCK]).flatten(-2), rest], -1)
    near = between.gather(2, row).add_(own)
    at = _smallest(near, row, n)
    return row.gather(2, at), near.gather(2, at)


def _smallest(near: Tensor, row: Tensor, n: int) -> Tensor:
    """Return where the 16 smallest of numbers (..., m) are; of equal ones, those of the first of n rows."""
    if near.dtype == torch.float64:  # a product of another shape rounds differently
        near = torch.add((near * (1 / ROUNDING)).round_(), row, alpha=1 / (4 * n))
    return near.topk(min(NEAREST, near.shape[-1]), dim=-1, largest=False).indices


def _summary(near: Tensor, target: Tensor) -> Tensor:
    """Return the nearest target, the mean of 4, a weighted mean of 16, and a log distance, (..., 4)."""
    seen = torch.isfinite(near)
    hidden, near = ~seen, near.clamp(min=1e-5)
    target = target.masked_fill(hidden, 0.0)
    four, count = target[..., :4].sum(-1), seen[..., :4].sum(-1)
    reach = near[..., :8].masked_fill(hidden[..., :8], 0.0).amax(-1, keepdim=True)
    weight = torch.exp(-2 * near / reach)  # zero where not seen
    vote = (weight * target).sum(-1) / weight.sum(-1)
    return torch.stack([target[..., 0], four / count, vote, near[..., 0].log() / 4], -1)
