from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.backbones.network.features import trees
from pfnts.backbones.network.features.histograms import Bins, BinSums
from pfnts.backbones.network.features.trees import (
    BoostedTrees,
    Splits,
    Trees,
    by_histograms,
    by_products,
    sampled,
)

Array = NDArray[np.float64]


def slow_trees(X: Array, y: Array, queries: Array) -> Array:
    """Boosted trees written out node by node and row by row, (q, 2)."""
    n, features = X.shape
    count = max(1, min(trees.THRESHOLDS, n // 4, trees.SPLITS // features))
    ordered, splits = np.sort(X, 0), []
    for k in range(1, count + 1):
        rank = k * n // (count + 1)
        for j in range(features):
            low, high = ordered[rank - 1, j], ordered[rank, j]
            gap = (high - low) / max(ordered[-1, j] - ordered[0, j], 1e-6)
            splits.append((j, (low + high) / 2, 1 + trees.MARGIN * gap))

    def grow(rows: Array, weight: Array, target: Array, depth: int) -> tuple | float:
        def explained(of: Array) -> np.float32:  # in single precision: where splits are level, it decides
            total = np.float32((weight[of] * target[of]).sum())
            return total**2 / np.float32(weight[of].sum() + trees.SHRINKAGE)

        mean = (weight[rows] * target[rows]).sum() / (weight[rows].sum() + trees.SHRINKAGE)
        best, chosen = 0.0, None
        for j, threshold, favour in splits if depth else []:
            right = X[rows, j] > threshold
            sides = rows[right], rows[~right]
            if min(weight[side].sum() for side in sides) < trees.LEAST:
                continue
            gain = (explained(sides[0]) + explained(sides[1]) - explained(rows)) * np.float32(favour)
            if gain > best:
                best, chosen = gain, (j, threshold)
        if chosen is None:
            return mean
        right = X[rows, chosen[0]] > chosen[1]
        return (*chosen, *(grow(rows[side], weight, target, depth - 1) for side in (~right, right)))

    def at(tree: tuple | float, x: Array) -> float:
        while isinstance(tree, tuple):
            j, threshold, left, right = tree
            tree = right if x[j] > threshold else left
        return tree

    residual, said, found = y.copy(), np.zeros(len(queries)), []
    for number, weights in enumerate(sampled(n, torch.device("cpu")).double().numpy()):
        unit = np.abs(residual).max() / trees.WHOLE
        grown = [grow(np.arange(n), weight, np.round(residual / unit), trees.DEPTH) for weight in weights]
        for values, rows, sign in ((residual, X, -1), (said, queries, 1)):
            mean = np.array([np.mean([at(tree, x) for tree in grown]) for x in rows])
            values += sign * trees.RATE * unit * mean
        if number + 1 in (trees.EARLY, trees.ROUNDS):
            found.append(said.copy())
    return np.stack(found, -1)


def table(rng: Generator, rows: int) -> tuple[Array, Array]:
    X = rng.normal(size=(rows, 3))
    X[:, 2] = X[:, 2] > 0.5
    return X, np.where((X[:, 0] > 0.3) & (X[:, 2] > 0), 2.0, -0.5) + 0.3 * rng.normal(size=rows)


@pytest.mark.parametrize("rows", [8, 24, 60])
def test_equal_trees_grown_node_by_node(rng: Generator, rows: int) -> None:
    X, y = table(rng, rows)
    queries = rng.normal(size=(20, 3))
    found = BoostedTrees.grown(torch.tensor(X[None]), torch.tensor(y[None]))(torch.tensor(queries[None]))
    np.testing.assert_allclose(found[0].numpy(), slow_trees(X, y, queries), atol=1e-6)


@pytest.mark.parametrize("rows", [8, 60, 700])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_histograms_give_the_trees_of_products(rng: Generator, rows: int, kind: torch.dtype) -> None:
    X, y = (torch.tensor(np.stack(x)).to(kind) for x in zip(*[table(rng, rows)] * 2, strict=True))
    X[1, :, 1], y[1] = X[1, :, 1].round(decimals=1), (y[1] > 0).to(kind)  # ties, and yes or no
    given = X, y, Splits.of(X), sampled(rows, X.device)
    for one, other in zip(by_histograms(*given), by_products(*given), strict=True):
        (columns, cuts, values), (same_columns, same_cuts, same_values) = one, other
        assert torch.equal(cuts, same_cuts)
        assert torch.equal(values, same_values)
        assert torch.equal(columns[cuts.isfinite()], same_columns[cuts.isfinite()])


def test_sums_beyond_bins_are_those_of_rows_added_one_by_one(rng: Generator) -> None:
    batch, grown, rows, features = 2, 3, 40, 2
    X, cuts = rng.normal(size=(batch, rows, features)), np.sort(rng.normal(size=(batch, 5, features)), 1)
    weight, whole = rng.poisson(1.0, size=(grown, rows)), rng.integers(-1023, 1024, size=(batch, rows))
    sums = BinSums(Bins(X, cuts), weight.astype(np.float32), whole.astype(np.float64))
    leaf, nodes = np.zeros((batch, grown, rows), dtype=np.intp), None
    for level in range(3):
        nodes = sums.beyond(leaf, nodes)
        for b, t, at in np.ndindex(batch, grown, 2**level):
            there = np.where(leaf[b, t] == at, weight[t], 0)
            for number, p in np.ndindex(6, features):
                counted = there * (X[b, :, p] > cuts[b, number - 1, p] if number else 1)
                assert nodes[:, b, t, at, number, p].tolist() == [counted.sum(), counted @ whole[b]]
        leaf = 2 * leaf + rng.integers(0, 2, size=leaf.shape)
    for b, t, at in np.ndindex(batch, grown, 8):
        there = np.where(leaf[b, t] == at, weight[t], 0)
        assert sums.of_leaves(leaf, 8)[:, b, t, at].tolist() == [there.sum(), there @ whole[b]]


def test_a_jump_at_a_corner_is_found_where_a_line_is_not(rng: Generator) -> None:
    X, y = table(rng, 400)
    queries, _ = table(rng, 200)
    truth = np.where((queries[:, 0] > 0.3) & (queries[:, 2] > 0), 2.0, -0.5)
    said = BoostedTrees.grown(torch.tensor(X[None]), torch.tensor(y[None]))(torch.tensor(queries[None]))
    assert ((said[0, :, 1].numpy() - truth) ** 2).mean() < 0.05 * truth.var()


@pytest.mark.parametrize("cuts", [[1, 7, 8, 9, 40], [40], [13, 14, 40]])
def test_extending_by_cuts_equals_once(rng: Generator, cuts: list[int]) -> None:
    X, y = (torch.tensor(x[None]) for x in table(rng, 40))
    expected = Trees.none().extend(X, y)[1]
    grown, of_rows = Trees.none(), []
    for cut in cuts:
        grown, told = grown.extend(X[:, :cut], y[:, :cut])
        of_rows.append(told)
    assert torch.equal(torch.cat(of_rows, 1), expected)
    for row in (3, 11, 29):  # a row is predicted as a query is after the rows before it
        assert torch.equal(grown.at(X[:, row : row + 1], [row, 40])[:, 0, 0], expected[:, row])


@pytest.mark.parametrize("batch", [1, 2])
def test_trees_of_one_short_history_are_fitted_on_the_cpu(
    rng: Generator, monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    X, y = (torch.tensor(x[None]).expand(batch, *x.shape) for x in table(rng, 40))
    grown, where = BoostedTrees.grown(X, y), {}

    class Elsewhere(torch.Tensor):
        """Rows that are, by their own account, on another device."""

        def cpu(self) -> torch.Tensor:
            where[self.shape[1]] = "cpu"
            return self.as_subclass(torch.Tensor)

    monkeypatch.setattr(BoostedTrees, "grown", lambda X, y: grown)
    monkeypatch.setattr(trees, "FEW_CELLS", 16 * X.shape[2])
    Trees.none().extend(X.as_subclass(Elsewhere), y)
    assert set(where) == ({8, 12, 16} if batch == 1 else set())


def test_later_rows_change_nothing_before_them(rng: Generator) -> None:
    X, y = (torch.tensor(x[None]) for x in table(rng, 60))
    changed = y.clone()
    changed[:, 33:] += 5
    one, other = (Trees.none().extend(X, targets)[1] for targets in (y, changed))
    assert torch.equal(one[:, :34], other[:, :34])
    assert not torch.equal(one, other)


def test_histories_in_a_batch_equal_histories_alone(rng: Generator) -> None:
    tables = [table(rng, 50) for _ in range(3)]
    X, y = (torch.tensor(np.stack(x)) for x in zip(*tables, strict=True))
    together = Trees.none().extend(X, y)[1]
    for i in range(3):
        assert torch.equal(Trees.none().extend(X[i : i + 1], y[i : i + 1])[1][0], together[i])


def test_equal_rows_are_predicted_by_their_mean_or_less() -> None:
    X, y = torch.zeros(1, 32, 2), torch.ones(1, 32)
    said = Trees.none().extend(X, y)[1]
    assert (said[:, :8] == 0).all()
    assert ((said[:, 8:] > 0.5) & (said[:, 8:] <= 1)).all()
