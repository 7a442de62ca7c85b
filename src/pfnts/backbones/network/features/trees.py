"""Boosted regression trees on the rows before each row: they find jumps, also at several thresholds together.

Each round fits some trees to the residuals of the rounds before, each to a bootstrap sample of the rows, and
adds their average. Thresholds are quantiles of the rows. Splits are chosen by sums of whole numbers, which
are exact in any order: the same rows give the same trees. Of splits with the same rows on both sides the one
with the widest gap is chosen, in any order of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfnts.backbones.network.features.histograms import Bins, BinSums, of_leaf
from pfnts.backbones.network.features.refits import latest, two_per_doubling
from pfnts.backbones.network.features.rows import joined, stacked

ROUNDS = 8
TREES = 8
"""Trees of a round."""
DEPTH = 4
RATE = 0.4
"""Share of a round's trees that is added."""
EARLY = 3
"""Rounds of the first prediction; the second is that of all rounds."""
PREDICTIONS = 2
FIRST = 8
"""Rows of the first fit; predictions are zero before."""
THRESHOLDS = 63
"""Most of a column; fewer where columns are many, `SPLITS` in all, or rows are few, one per four."""
SPLITS = 1024
SHRINKAGE = 2.0
"""Rows with a residual of zero that are added to each leaf."""
LEAST = 2.0
"""Fewest rows of a leaf."""
MARGIN = 1e-3
"""Share by which the widest gap increases the gain of a split."""
FINE = 2.0**30
"""One over the unit of a leaf's value: sums over trees are exact in double precision."""
LEAST_UNIT = 1e-6
"""Smallest unit in which residuals are whole numbers."""
WHOLE = 1023
"""The largest residual as a whole number: sums over 16,384 rows are exact in single precision."""
FEW_CELLS = 2**15
"""Values up to which trees of one history are fitted on the CPU: a core takes 15 to 25 ms, a card 1,400
operations of at least 10 us each."""
EMPTY = torch.empty(0)

LARGE = 2**24
"""Number of sums from which on a card compiles the search for the best splits, as in training."""

T = TypeVar("T", Tensor, NDArray[np.floating[Any]])


@dataclass(frozen=True)
class Trees:
    """Boosted trees of B histories, fitted again at some sizes.

    Examples
    --------
    >>> X = torch.linspace(-1, 1, 64)[None, :, None]
    >>> trees, of_rows = Trees.none().extend(X, (X[..., 0] > 0.3).double())
    >>> trees.at(torch.tensor([[[0.2], [0.4]]]), [64])[0, 0, :, 1].round(decimals=1)
    tensor([0., 1.], dtype=torch.float64)
    """

    rows: int
    fits: tuple[BoostedTrees, ...]

    @classmethod
    def none(cls) -> Trees:
        """Hold no rows; predictions are zero."""
        return cls(0, (BoostedTrees(0),))

    def extend(self, X: Tensor, y: Tensor) -> tuple[Trees, Tensor]:
        """Add the new rows of histories X (B, n, P), y (B, n); return predictions of each, made before it."""
        before, after = self.rows, X.shape[1]
        new = [size for size in two_per_doubling(after) if size > max(before, FIRST - 1)]
        grown = Trees(after, (*self.fits, *(_grown(X[:, :size], y[:, :size]) for size in new)))
        cuts = [before, *(size for size in new if size < after), after]
        return grown, joined([grown.at(X[:, begin:end], [begin])[:, 0] for begin, end in pairwise(cuts)])

    def at(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Predict queries X (B, q, P) from the first rows, (B, S, q, 2)."""
        fits = [latest(self.fits, size) for size in sizes]
        predicted = {fit.size: fit(X) for fit in fits}
        return stacked([predicted[fit.size] for fit in fits])


def _grown(X: Tensor, y: Tensor) -> BoostedTrees:
    """Fit trees where it takes less time."""
    if len(X) == 1 and X.numel() <= FEW_CELLS:
        return BoostedTrees.grown(X.cpu(), y.cpu()).to(X.device)
    return BoostedTrees.grown(X, y)


@dataclass(frozen=True)
class BoostedTrees:
    """Trees of all rounds, with a split at every node, level by level."""

    size: int
    """Number of rows they were fitted to; there are no trees if it is zero."""
    columns: Tensor = EMPTY
    """(B, M, nodes)"""
    thresholds: Tensor = EMPTY
    """(B, M, nodes); a row above it goes right; infinite where a node is not split."""
    values: Tensor = EMPTY
    """(B, M, leaves), added to a prediction."""

    @classmethod
    def grown(cls, X: Tensor, y: Tensor) -> BoostedTrees:
        """Fit to rows X (B, n, P), y (B, n)."""
        grow = by_histograms if X.device.type == "cpu" else by_products
        rounds = grow(X, y, Splits.of(X), sampled(X.shape[1], X.device))
        return cls(X.shape[1], *(torch.cat(part, 1) for part in zip(*rounds, strict=True)))

    def to(self, device: torch.device) -> BoostedTrees:
        """Move the trees to a device."""
        parts = (self.columns, self.thresholds, self.values)
        return BoostedTrees(self.size, *(part.to(device) for part in parts))

    def __call__(self, X: Tensor) -> Tensor:
        """Predict contexts X (B, q, P), (B, q, 2)."""
        if not self.size:
            return X.new_zeros(*X.shape[:2], PREDICTIONS)
        leaf = torch.zeros(*self.columns.shape[:2], X.shape[1], dtype=torch.long, device=X.device)
        for level in range(DEPTH):
            node = leaf + (2**level - 1)
            leaf = _below(leaf, X, self.columns.gather(2, node), self.thresholds.gather(2, node))
        value = self.values.gather(2, leaf)  # (B, M, q)
        early = value[:, : EARLY * TREES].sum(1)
        return torch.stack([early, early + value[:, EARLY * TREES :].sum(1)], -1)


@dataclass(frozen=True)
class Splits:
    """Candidate splits: E thresholds of each column."""

    thresholds: Tensor
    """(B, E, P), in increasing order; splits are numbered threshold by threshold."""
    favour: Tensor
    """(B, E P), slightly more than one: the wider the gap between the rows on both sides, the more."""

    @classmethod
    def of(cls, X: Tensor) -> Splits:
        """Choose thresholds between adjacent values of rows X (B, n, P), at evenly spaced ranks."""
        n, features = X.shape[1:]
        count = max(1, min(THRESHOLDS, n // 4, SPLITS // features))
        rank = torch.arange(1, count + 1, device=X.device) * n // (count + 1)
        ordered = X.sort(1).values
        below, beyond = ordered[:, rank - 1], ordered[:, rank]  # (B, E, P)
        width = (ordered[:, -1:] - ordered[:, :1]).clamp(min=1e-6)
        favour = 1 + MARGIN * (beyond - below) / width
        return cls((below + beyond) / 2, favour.flatten(1).float())


Grown = list[tuple[Tensor, ...]]
"""Columns, thresholds and values of the trees, round by round."""


def by_products(X: Tensor, y: Tensor, splits: Splits, weights: Tensor) -> Grown:
    """Grow trees on rows X (B, n, P), y (B, n), which count ``weights`` (ROUNDS, T, n) times.

    Sums over rows are matrix products: fast on a card.
    """
    batch, rows, features = X.shape
    above = (X[:, :, None] > splits.thresholds[:, None]).flatten(2).float()  # (B, n, E P)
    residual, rounds = y, list[tuple[Tensor, ...]]()
    for weight in weights:
        unit = residual.abs().amax(1, keepdim=True).clamp(min=LEAST_UNIT) / WHOLE
        whole = torch.round(residual / unit).float()
        counted = torch.stack([weight.expand(batch, -1, -1), weight * whole[:, None]], 1)  # (B, 2, T, n)
        leaf = torch.zeros(batch, TREES, rows, dtype=torch.long, device=X.device)
        columns, cuts = [], []
        for level in range(DEPTH):
            each = _by_leaf(counted, leaf, 2**level)  # (B, 2, T, L, n)
            right = (each.flatten(1, 3) @ above).view(batch, 2, TREES, 2**level, -1)
            best_of = fused_best_splits() if right.is_cuda and right.numel() > LARGE else best_splits
            best, at = best_of(right, each.sum(-1), splits.favour)  # (B, T, L)
            cut = splits.thresholds.flatten(1).gather(1, at.flatten(1)).view(at.shape)
            columns.append(at % features)
            cuts.append(cut.masked_fill(best <= 0, torch.inf))
            leaf = _below(leaf, X, columns[-1].gather(2, leaf), cuts[-1].gather(2, leaf))
        added = share(*_by_leaf(counted, leaf, 2**DEPTH).sum(-1).unbind(1)).double()
        values = in_units(unit[..., None].double() * added).to(y.dtype)
        rounds.append((torch.cat(columns, 2), torch.cat(cuts, 2), values))
        residual = residual - values.gather(2, leaf).sum(1)
    return rounds


def best_splits(right: Tensor, total: Tensor, favour: Tensor) -> tuple[Tensor, Tensor]:
    """Return the best gain of each node, (B, T, L), and the split that has it.

    ``right`` (B, 2, T, L, splits) and ``total`` (B, 2, T, L) are number and sum of the rows that go right,
    and of all rows of the node.
    """
    gain = gains(*right.unbind(1), *total[..., None].unbind(1))
    best, at = (gain * favour[:, None, None]).max(-1)
    return best, at


@lru_cache(maxsize=1)
def fused_best_splits() -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return `best_splits` compiled to one kernel: one pass over the sums in place of a dozen."""
    return torch.compile(best_splits, dynamic=True)


def by_histograms(X: Tensor, y: Tensor, splits: Splits, weights: Tensor) -> Grown:
    """Grow the same trees as `by_products`, with histograms for the sums: fast on a CPU."""
    batch, rows, features = X.shape
    thresholds, favour = splits.thresholds.numpy(), splits.favour.numpy()[:, None, None]
    bins, history = Bins(X.numpy(), thresholds), np.arange(batch)[:, None, None]
    residual, rounds = y.numpy(), list[tuple[Tensor, ...]]()
    for weight in weights.numpy():
        unit = np.abs(residual).max(1, keepdims=True).clip(LEAST_UNIT) / WHOLE
        sums = BinSums(bins, weight, np.rint(residual / unit))
        leaf, nodes = np.zeros((batch, TREES, rows), dtype=np.intp), None
        columns, cuts = [], []
        for level in range(DEPTH):
            nodes = sums.beyond(leaf, nodes)  # (2, B, T, L, E + 1, P)
            right = nodes[..., 1:, :].reshape(2, batch, TREES, 2**level, -1)
            gain = gains(*right, *nodes[..., :1, 0]) * favour
            at, split = gain.argmax(-1), gain.max(-1) > 0  # (B, T, L)
            number, column = at // features, at % features
            columns.append(column)
            cuts.append(np.where(split, thresholds[history, number, column], np.inf))
            leaf = 2 * leaf + bins.above(column, np.where(split, number, bins.most), leaf)
        added = share(*sums.of_leaves(leaf, 2**DEPTH)).astype(np.float64)
        values = in_units(unit[..., None].astype(np.float64) * added).astype(residual.dtype)
        grown = np.concatenate(columns, 2), np.concatenate(cuts, 2), values
        rounds.append(tuple(map(torch.from_numpy, grown)))
        residual = residual - torch.from_numpy(of_leaf(values, leaf)).sum(1).numpy()
    return rounds


def _by_leaf(counted: Tensor, leaf: Tensor, leaves: int) -> Tensor:
    """Spread numbers of rows (B, 2, T, n) over leaves: zero where a row is not, (B, 2, T, leaves, n)."""
    among = torch.arange(leaves, device=leaf.device)[:, None] == leaf[:, :, None]  # (B, T, L, n)
    return counted[:, :, :, None] * among[:, None]


def gains(right_count: T, right_sum: T, count: T, total: T) -> T:
    """Return by how much splits reduce the squared errors of a node; zero if a side has too few rows.

    The first two arguments (..., splits) belong to the rows on the right, the others (..., 1) to all rows.
    """
    left_count, left_sum = count - right_count, total - right_sum

    def explained(count: T, total: T) -> T:
        return total * total / (count + SHRINKAGE)

    gain = explained(right_count, right_sum) + explained(left_count, left_sum) - explained(count, total)
    enough = (right_count >= LEAST) & (left_count >= LEAST)
    return gain * enough


def share(count: T, total: T) -> T:
    """Return the values of leaves, in units of whole numbers."""
    return RATE / TREES * total / (count + SHRINKAGE)


def in_units(values: T) -> T:
    """Round values to a unit so that sums of them are exact."""
    return (values * FINE).round() / FINE


def _below(leaf: Tensor, X: Tensor, columns: Tensor, thresholds: Tensor) -> Tensor:
    """Return the leaves of contexts X (B, q, P) on the next level from those on this one, (B, M, q)."""
    each = X[:, None].expand(-1, columns.shape[1], -1, -1)
    right = each.gather(3, columns[..., None])[..., 0] > thresholds
    return torch.add(right, leaf, alpha=2)


@lru_cache(maxsize=64)
def sampled(rows: int, device: torch.device) -> Tensor:
    """Draw how often each row counts in every tree, as in bootstrap samples, (ROUNDS, TREES, rows)."""
    drawn = np.random.default_rng(rows).poisson(1.0, size=(ROUNDS, TREES, rows))
    with torch.inference_mode(False):
        return torch.tensor(drawn, dtype=torch.float32, device=device)
