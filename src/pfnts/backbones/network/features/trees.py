"""Boosted regression trees on the rows before each row: what jumps at thresholds, and at several together.

In each of a few rounds some trees are grown side by side on what the rounds before leave unexplained, every
one on rows counted as a bootstrap sample would, and their average is added. Thresholds are quantiles of the
rows. Splits are chosen by sums of whole numbers, which are exact in any order: the same rows give the same
trees, and on a CPU the same predictions to the last bit, whatever else is computed beside them. Of splits
that part few rows in the same way, the one with the widest gap between them is taken, whatever the order of
the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
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
"""Rounds after which a first prediction is made; the second is that of all rounds."""
PREDICTIONS = 2
FIRST = 8
"""Rows of the first fit; nothing is said before."""
THRESHOLDS = 63
"""Of a column, at most; fewer where columns are many, `QUESTIONS` in all, or rows few, one to four."""
QUESTIONS = 1024
SHRINKAGE = 2.0
"""Rows with a residual of zero that a leaf holds beside its own."""
LEAST = 2.0
"""Rows of a leaf."""
MARGIN = 1e-3
"""Share by which the widest gap adds to what a split explains."""
FINE = 2.0**30
"""One over the unit of a leaf's value: sums over trees are exact in double precision."""
LEAST_UNIT = 1e-6
"""Of residuals, over which they are whole numbers."""
WHOLE = 1023
"""The largest residual as a whole number: sums over 16,384 rows are exact in single precision."""
FEW_CELLS = 2**15
"""Rows times columns: on one core trees of so many grow in 15 to 25 ms, on a card by 1,400 operations, each
of which takes some 10 us to begin."""

T = TypeVar("T", Tensor, NDArray[np.floating[Any]])


@dataclass(frozen=True)
class Trees:
    """Boosted trees of B histories, grown again at some sizes.

    Examples
    --------
    >>> X = torch.linspace(-1, 1, 64)[None, :, None]
    >>> trees, of_rows = Trees.none().extend(X, (X[..., 0] > 0.3).double())
    >>> trees.at(torch.tensor([[[0.2], [0.4]]]), [64])[0, 0, :, 1].round(decimals=1)
    tensor([0., 1.], dtype=torch.float64)
    """

    rows: int
    fits: tuple[TreesFit, ...]

    @classmethod
    def none(cls) -> Trees:
        """No rows; predictions are zero."""
        return cls(0, (TreesFit(0, None),))

    def extend(self, X: Tensor, y: Tensor) -> tuple[Trees, Tensor]:
        """Add the new rows of histories X (B, n, P), y (B, n); return what is predicted of each before it."""
        before, after = self.rows, X.shape[1]
        new = [size for size in two_per_doubling(after) if size > max(before, FIRST - 1)]
        grown = Trees(
            after, (*self.fits, *(TreesFit(size, _grown(X[:, :size], y[:, :size])) for size in new))
        )
        cuts = [before, *(size for size in new if size < after), after]
        return grown, joined([grown.at(X[:, begin:end], [begin])[:, 0] for begin, end in pairwise(cuts)])

    def at(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Predict queries X (B, q, P) from the first rows, (B, S, q, 2)."""
        fits = [latest(self.fits, size) for size in sizes]
        told = {fit.size: fit.predict(X) for fit in fits}
        return stacked([told[fit.size] for fit in fits])


@dataclass(frozen=True)
class TreesFit:
    """Trees grown on the first rows; None if these are too few."""

    size: int
    trees: BoostedTrees | None

    def predict(self, X: Tensor) -> Tensor:
        """Predict queries X (B, q, P), (B, q, 2)."""
        return X.new_zeros(*X.shape[:2], PREDICTIONS) if self.trees is None else self.trees(X)


def _grown(X: Tensor, y: Tensor) -> BoostedTrees:
    """Grow trees where it takes less time."""
    if X.numel() > FEW_CELLS:
        return BoostedTrees.grown(X, y)
    return BoostedTrees.grown(X.cpu(), y.cpu()).to(X.device)


@dataclass(frozen=True)
class BoostedTrees:
    """Trees of all rounds, each with a question at every node, node after node and level after level."""

    columns: Tensor
    """(B, M, nodes)"""
    thresholds: Tensor
    """(B, M, nodes); a row goes right if it lies above, and none does where a node is not split."""
    values: Tensor
    """(B, M, leaves), what each adds to a prediction."""

    @classmethod
    def grown(cls, X: Tensor, y: Tensor) -> BoostedTrees:
        """Fit to rows X (B, n, P), y (B, n)."""
        grow = by_histograms if X.device.type == "cpu" else by_products
        rounds = grow(X, y, Questions.of(X), sampled(X.shape[1], X.device))
        return cls(*(torch.cat(part, 1) for part in zip(*rounds, strict=True)))

    def to(self, device: torch.device) -> BoostedTrees:
        """The same trees elsewhere."""
        return BoostedTrees(self.columns.to(device), self.thresholds.to(device), self.values.to(device))

    def __call__(self, X: Tensor) -> Tensor:
        """Predict contexts X (B, q, P), (B, q, 2)."""
        leaf = torch.zeros(*self.columns.shape[:2], X.shape[1], dtype=torch.long, device=X.device)
        for level in range(DEPTH):
            node = leaf + (2**level - 1)
            leaf = _below(leaf, X, self.columns.gather(2, node), self.thresholds.gather(2, node))
        value = self.values.gather(2, leaf)  # (B, M, q)
        early = value[:, : EARLY * TREES].sum(1)
        return torch.stack([early, early + value[:, EARLY * TREES :].sum(1)], -1)


@dataclass(frozen=True)
class Questions:
    """What trees may ask: whether a column lies above a threshold, E of them for each column."""

    thresholds: Tensor
    """(B, E, P), in order; as questions they are numbered column after column for each."""
    favour: Tensor
    """(B, E P), little more than one: the more, the wider the gap between the rows on both sides."""

    @classmethod
    def of(cls, X: Tensor) -> Questions:
        """Put thresholds between neighbouring values of rows X (B, n, P), at evenly spaced ranks."""
        n, features = X.shape[1:]
        count = max(1, min(THRESHOLDS, n // 4, QUESTIONS // features))
        rank = torch.arange(1, count + 1, device=X.device) * n // (count + 1)
        ordered = X.sort(1).values
        below, beyond = ordered[:, rank - 1], ordered[:, rank]  # (B, E, P)
        width = (ordered[:, -1:] - ordered[:, :1]).clamp(min=1e-6)
        favour = 1 + MARGIN * (beyond - below) / width
        return cls((below + beyond) / 2, favour.flatten(1).float())


Grown = list[tuple[Tensor, ...]]
"""Columns, thresholds and values of the trees of each round."""


def by_products(X: Tensor, y: Tensor, questions: Questions, weights: Tensor) -> Grown:
    """Grow trees on rows X (B, n, P), y (B, n), which count ``weights`` (ROUNDS, T, n) times.

    Every sum over rows is a product of matrices: best on a card.
    """
    batch, rows, features = X.shape
    above = (X[:, :, None] > questions.thresholds[:, None]).flatten(2).float()  # (B, n, E P)
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
            gain = gains(*right.unbind(1), *each.sum(-1)[..., None].unbind(1))
            best, at = (gain * questions.favour[:, None, None]).max(-1)  # (B, T, L)
            cut = questions.thresholds.flatten(1).gather(1, at.flatten(1)).view(at.shape)
            columns.append(at % features)
            cuts.append(cut.masked_fill(best <= 0, torch.inf))
            leaf = _below(leaf, X, columns[-1].gather(2, leaf), cuts[-1].gather(2, leaf))
        added = share(*_by_leaf(counted, leaf, 2**DEPTH).sum(-1).unbind(1)).double()
        values = in_units(unit[..., None].double() * added).to(y.dtype)
        rounds.append((torch.cat(columns, 2), torch.cat(cuts, 2), values))
        residual = residual - values.gather(2, leaf).sum(1)
    return rounds


def by_histograms(X: Tensor, y: Tensor, questions: Questions, weights: Tensor) -> Grown:
    """The same, to the last bit, with every sum over rows a histogram: best on a CPU."""
    batch, rows, features = X.shape
    thresholds, favour = questions.thresholds.numpy(), questions.favour.numpy()[:, None, None]
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
    """Numbers of rows (B, 2, T, n) where they are in a leaf, zero elsewhere, (B, 2, T, leaves, n)."""
    among = torch.arange(leaves, device=leaf.device)[:, None] == leaf[:, :, None]  # (B, T, L, n)
    return counted[:, :, :, None] * among[:, None]


def gains(right_count: T, right_sum: T, count: T, total: T) -> T:
    """By how much squared errors fall if a node is split; zero where a side would have too few rows.

    The first two (..., questions) are of the rows that go right, the others (..., 1) of all of the node's.
    """
    left_count, left_sum = count - right_count, total - right_sum

    def explained(count: T, total: T) -> T:
        return total * total / (count + SHRINKAGE)

    gain = explained(right_count, right_sum) + explained(left_count, left_sum) - explained(count, total)
    enough = (right_count >= LEAST) & (left_count >= LEAST)
    return gain * enough


def share(count: T, total: T) -> T:
    """What leaves add to a prediction, in units of whole numbers."""
    return RATE / TREES * total / (count + SHRINKAGE)


def in_units(values: T) -> T:
    """Values in units so fine, and so coarse, that sums of them are exact."""
    return (values * FINE).round() / FINE


def _below(leaf: Tensor, X: Tensor, columns: Tensor, thresholds: Tensor) -> Tensor:
    """Leaves of the next level to which contexts X (B, q, P) come from those they are in, (B, M, q)."""
    each = X[:, None].expand(-1, columns.shape[1], -1, -1)
    right = each.gather(3, columns[..., None])[..., 0] > thresholds
    return torch.add(right, leaf, alpha=2)


@lru_cache(maxsize=64)
def sampled(rows: int, device: torch.device) -> Tensor:
    """How often each row counts in every tree, (ROUNDS, TREES, rows): as in bootstrap samples."""
    drawn = np.random.default_rng(rows).poisson(1.0, size=(ROUNDS, TREES, rows))
    with torch.inference_mode(False):
        return torch.tensor(drawn, dtype=torch.float32, device=device)
