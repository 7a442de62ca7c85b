from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from pfnts.backbones.network.features import neighbours as module
from pfnts.backbones.network.features.neighbours import Neighbours


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
    said = Neighbours().extend(X, y)[1, row].numpy()
    x, targets = X[1].numpy(), y[1, :row].numpy()
    doubling = 2 ** (row.bit_length() - 1)
    covariance = np.cov(x[:doubling].T, ddof=0) + (0.003 + 0.3 / doubling) * np.eye(3)
    white = x @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    plain, whitened = (slowly(z[row] / np.sqrt(3), z[:row] / np.sqrt(3), targets) for z in (x, white))
    np.testing.assert_allclose(said, [*plain[:3], *whitened[:3], plain[3], whitened[3]], atol=1e-8)


def test_growing_in_pieces_and_in_chunks_equals_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows(0)
    whole, pieces = Neighbours(), Neighbours()
    at_once = whole.extend(X, y)
    monkeypatch.setitem(module.ENTRIES, "cpu", 500)
    said = [pieces.extend(X[:, a:b], y[:, a:b]) for a, b in pairwise([0, 1, 2, 3, 17, 31, 32, 70])]
    torch.testing.assert_close(torch.cat(said, 1), at_once, atol=1e-9, rtol=0)
    for size in (1, 7, 32, 60, 70):
        torch.testing.assert_close(pieces.say(X, [size]), whole.say(X, [size]), atol=1e-9, rtol=0)
    for row in (1, 16, 40, 69):
        torch.testing.assert_close(whole.say(X[:, row : row + 1], [row])[:, 0, 0], at_once[:, row])


def test_rows_that_are_alike_stay_finite() -> None:
    X, y = torch.ones(1, 40, 2), torch.arange(40.0)[None]
    assert torch.isfinite(Neighbours().extend(X, y)).all()
