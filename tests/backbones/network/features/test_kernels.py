from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from pfnts.backbones.network.features import kernels as module
from pfnts.backbones.network.features.kernels import JITTER, KERNEL_PENALTIES, Kernels, equal_weights


def rows(seed: int, *, n: int = 60, features: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(2, n, features, generator=generator, dtype=torch.float64)
    return X, X[..., 0] * X[..., 1] + torch.randn(2, n, generator=generator, dtype=torch.float64)


def by_variance(X: torch.Tensor) -> torch.Tensor:
    return X.var(1, correction=0)


def weights(X: torch.Tensor) -> torch.Tensor:
    """Equal weights, then variances, so that these depend on the rows they are taken from."""
    return torch.cat([equal_weights(X), by_variance(X)])


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
    said = Kernels.none(X).extend(X, y, weights).at(X[:, 50:], [size])
    for second, weigh in enumerate([equal_weights, by_variance]):
        check(
            X, y, said[2 * second + 1, 0], np.sqrt(weigh(X[:, :doubling])[1].numpy()), fitted, doubling, most
        )


def check(
    X: torch.Tensor,
    y: torch.Tensor,
    said: torch.Tensor,
    weight: np.ndarray,
    fitted: int,
    doubling: int,
    most: int,
) -> None:
    """Compare with kernel ridge regression, the kernel between rows written out."""
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
def test_extending_by_cuts_equals_row_by_row(cuts: list[int]) -> None:
    X, y = rows(1)
    slow = fast = Kernels.none(X)
    for n in range(1, 61):
        slow = slow.extend(X[:, :n], y[:, :n], weights)
    for n in cuts[1:]:
        fast = fast.extend(X[:, :n], y[:, :n], weights)
    sizes = list(range(61))
    torch.testing.assert_close(fast.at(X[:, :4], sizes), slow.at(X[:, :4], sizes), atol=1e-9, rtol=0)


def test_equal_rows_and_constant_columns_stay_finite() -> None:
    X, y = torch.ones(1, 70, 2, dtype=torch.float64), torch.ones(1, 70, dtype=torch.float64)
    said = Kernels.none(X).extend(X, y, weights).at(X[:, :1], [70])
    torch.testing.assert_close(said, torch.ones_like(said), atol=0.05, rtol=0)
