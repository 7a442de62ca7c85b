from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from pfnts.backbones.network.features import kernels as module
from pfnts.backbones.network.features.kernels import JITTER, KERNEL_PENALTIES, KernelRegression

Weigh = Callable[[torch.Tensor], torch.Tensor] | None


def rows(seed: int, *, n: int = 60, features: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(2, n, features, generator=generator, dtype=torch.float64)
    return X, X[..., 0] * X[..., 1] + torch.randn(2, n, generator=generator, dtype=torch.float64)


def shares(X: torch.Tensor) -> torch.Tensor:
    """Columns weighed by their variance, so that the weights depend on the rows they are taken from."""
    return X.var(1, correction=0)


@pytest.mark.parametrize(
    ("size", "fitted", "doubling"),
    [(1, 1, 1), (3, 3, 2), (7, 6, 4), (13, 12, 8), (16, 16, 16), (47, 32, 32), (49, 48, 32)],
)
@pytest.mark.parametrize("most", [256, 10])
def test_equals_scikit_learn_with_the_kernel_written_out(
    size: int, fitted: int, doubling: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CENTRES", most)
    X, y = rows(size)
    regression = KernelRegression(shares)
    regression.extend(X, y)
    said = regression.say(X[:, 50:], [size])[1, 0]
    weight = np.sqrt(shares(X[:, :doubling])[1].numpy())
    x = X[1].numpy() * weight
    centres = x[: min(doubling, most)]

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        between = rbf_kernel(centres, gamma=0.5) + JITTER * np.eye(len(centres))
        left, right = rbf_kernel(a, centres, gamma=0.5), rbf_kernel(centres, b, gamma=0.5)
        return left @ np.linalg.solve(between, right) + a @ b.T + 1

    for column, penalty in enumerate(KERNEL_PENALTIES):
        model = KernelRidge(alpha=penalty, kernel="precomputed").fit(
            kernel(x[:fitted], x[:fitted]), y[1, :fitted]
        )
        np.testing.assert_allclose(said[:, column], model.predict(kernel(x[50:], x[:fitted])), atol=1e-6)


@pytest.mark.parametrize("cuts", [[0, 60], [0, 1, 2, 60], [0, 5, 10, 15, 20, 40, 60], [0, 8, 9, 33, 60]])
@pytest.mark.parametrize("weigh", [shares, None], ids=["columns weighed", "columns alike"])
def test_growing_in_pieces_equals_row_by_row(cuts: list[int], weigh: Weigh) -> None:
    X, y = rows(1)
    slow, fast = KernelRegression(weigh), KernelRegression(weigh)
    for n in range(1, 61):
        slow.extend(X[:, :n], y[:, :n])
    for _, n in pairwise(cuts):
        fast.extend(X[:, :n], y[:, :n])
    sizes = list(range(61))
    torch.testing.assert_close(fast.say(X[:, :4], sizes), slow.say(X[:, :4], sizes), atol=1e-9, rtol=0)


def test_columns_alike_are_weighed_by_one_over_their_number() -> None:
    X, y = rows(2)
    default, written_out = KernelRegression(), KernelRegression(lambda X: torch.full_like(X[:, 0], 1 / 3))
    for regression in (default, written_out):
        regression.extend(X, y)
    sizes = [0, 1, 5, 60]
    torch.testing.assert_close(default.say(X[:, :4], sizes), written_out.say(X[:, :4], sizes))


def test_equal_rows_and_constant_columns_stay_finite() -> None:
    X, y = torch.ones(1, 70, 2, dtype=torch.float64), torch.ones(1, 70, dtype=torch.float64)
    regression = KernelRegression(shares)
    regression.extend(X, y)
    said = regression.say(X[:, :1], [70])
    torch.testing.assert_close(said, torch.ones_like(said), atol=0.05, rtol=0)
