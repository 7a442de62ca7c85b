from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.backbones.network.features import neighbours as module
from pfnts.backbones.network.features.neighbours import Neighbours

NAMES = ("nearest", "nearest, whitened", "distances")


def rows(seed: int, *, n: int = 70, features: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(features, features, generator=generator, dtype=torch.float64)
    X = torch.randn(2, n, features, generator=generator, dtype=torch.float64) @ mixing
    return X, torch.randn(2, n, generator=generator, dtype=torch.float64)


def slowly(x: np.ndarray, rows: np.ndarray, y: np.ndarray) -> list[float]:
    """Nearest, mean of four, vote of sixteen, and a quarter of the log squared distance."""
    squared = ((rows - x) ** 2).sum(1)
    order = np.argsort(squared)[:16]
    weight = np.exp(-2 * squared[order] / squared[order][:8].max())
    vote = (weight * y[order]).sum() / weight.sum()
    return [y[order[0]], y[order[:4]].mean(), vote, np.log(squared[order[0]]) / 4]


@pytest.mark.parametrize("row", [1, 2, 5, 20, 33, 64, 69])
def test_equals_a_search_by_hand(row: int) -> None:
    X, y = rows(row)
    found = Neighbours.none().extend(X, y)[1]
    said = np.concatenate([found[name][1, row] for name in NAMES])
    x, targets = X[1].numpy(), y[1, :row].numpy()
    doubling = 2 ** (row.bit_length() - 1)
    covariance = np.cov(x[:doubling].T, ddof=0) + (0.003 + 0.3 / doubling) * np.eye(3)
    white = x @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    plain, whitened = (slowly(z[row] / np.sqrt(3), z[:row] / np.sqrt(3), targets) for z in (x, white))
    np.testing.assert_allclose(said, [*plain[:3], *whitened[:3], plain[3], whitened[3]], atol=1e-8)


def test_extending_by_cuts_and_in_small_parts_equals_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows(0)
    whole, at_once = Neighbours.none().extend(X, y)
    monkeypatch.setitem(module.ENTRIES, "cpu", 500)
    grown, of_rows = Neighbours.none(), []
    for end in (1, 2, 3, 17, 31, 32, 70):
        grown, found = grown.extend(X[:, :end], y[:, :end])
        of_rows.append(found)
    for name in NAMES:
        together = torch.cat([found[name] for found in of_rows], 1)
        torch.testing.assert_close(together, at_once[name], atol=1e-9, rtol=0)
        for size in (1, 7, 32, 60, 70):
            one, other = (n.at(X, [size], y)[name] for n in (grown, whole))
            torch.testing.assert_close(one, other, atol=1e-9, rtol=0)
        for row in (1, 16, 40, 69):
            alone = whole.at(X[:, row : row + 1], [row], y)[name]
            torch.testing.assert_close(alone[:, 0, 0], at_once[name][:, row])


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_nearest_rows_by_blocks_are_those_of_all_rows_sorted(rng: Generator, kind: torch.dtype) -> None:
    n = module.BLOCK * (2 * module.NEAREST + 9) + 7
    X = torch.from_numpy(rng.integers(0, 3 if kind == torch.float64 else 10**6, size=(2, n, 4))).to(kind)
    X, queries = X / X.amax(), X[:, -20:] / X.amax() + torch.rand(1, dtype=kind)
    keys = torch.cat([-2 * X, (X**2).sum(-1, keepdim=True)], -1)
    for first in (None, n - 20):
        places, distances = module.nearest(queries, keys, first=first)
        for b, q in np.ndindex(2, 20):
            seen = n if first is None else first + q
            squared = ((queries[b, q] - X[b, :seen]) ** 2).sum(-1).numpy()
            order = np.argsort(squared.round(9) if kind == torch.float64 else squared, kind="stable")[:16]
            np.testing.assert_allclose(distances[b, q], squared[order], atol=1e-5)
            if kind == torch.float64:  # with many equal distances
                assert places[b, q].tolist() == order.tolist()


def test_equal_rows_stay_finite() -> None:
    X, y = torch.ones(1, 40, 2), torch.arange(40.0)[None]
    assert all(torch.isfinite(found).all() for found in Neighbours.none().extend(X, y)[1].values())
