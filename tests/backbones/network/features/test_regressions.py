from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from pfnts.backbones.network.features.kernels import KERNEL_PENALTIES, KernelBasis, alike
from pfnts.backbones.network.features.regressions import (
    LIMIT,
    NOTES,
    PENALTIES,
    PREDICTIONS,
    REGRESSIONS,
    UNLIKELY,
    Regressions,
    base_predictions_of,
    halvings,
    refit_sizes,
)


def rows(seed: int, *, n: int = 120, features: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(2, n, features, generator=generator, dtype=torch.float64)
    return X, X[..., 0] + torch.randn(2, n, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("row", [1, 15, 16, 40, 119])
def test_base_predictions_equal_scikit_learn_on_the_rows_before(row: int) -> None:
    X, y = rows(row)
    said = Regressions().extend(X, y)
    x = X[1].numpy()
    bases = [x, np.hstack([x, np.sin(x), np.cos(x), np.sin(2 * x), np.cos(2 * x)])]
    expected = []
    for basis, sizes in zip(bases, (refit_sizes(120), halvings(120)), strict=True):
        fitted = max(size for size in sizes if size <= row)
        Z = np.hstack([np.ones((len(x), 1)), basis])
        for penalty in PENALTIES:
            model = Ridge(alpha=3 * penalty, fit_intercept=False).fit(Z[:fitted], y[1, :fitted])
            expected.append(model.predict(Z[row : row + 1])[0])
    np.testing.assert_allclose(said[1, row, :6], expected, atol=1e-9)


def test_growing_in_pieces_equals_at_once() -> None:
    X, y = rows(0)
    whole, pieces = Regressions(), Regressions()
    at_once = whole.extend(X, y)
    cuts = [0, 1, 2, 17, 18, 40, 100, 120]
    said = [pieces.extend(X[:, a:b], y[:, a:b]) for a, b in pairwise(cuts)]
    torch.testing.assert_close(torch.cat(said, 1), at_once, atol=1e-10, rtol=0)
    for size in (0, 1, 7, 13, 30, 52, 120):
        torch.testing.assert_close(
            pieces.base_predictions(X, [size]), whole.base_predictions(X, [size]), atol=1e-10, rtol=0
        )


def test_asking_later_gives_what_was_said_then() -> None:
    X, y = rows(1)
    regressions = Regressions()
    said = regressions.extend(X, y)
    for row in (0, 5, 77):
        torch.testing.assert_close(
            regressions.base_predictions(X[:, row : row + 1], [row])[:, 0], said[:, row]
        )


def test_base_predictions_of_far_contexts_and_with_missing_cells_stay_finite() -> None:
    X, y = rows(2)
    X[:, 3, 1] = torch.nan
    regressions = Regressions()
    regressions.extend(X, y)
    far = torch.full((2, 1, 3), 8.0, dtype=torch.float64)
    assert regressions.base_predictions(far, [120]).abs().max() <= LIMIT
    assert torch.isfinite(regressions.extend(X, y)).all()


def test_nothing_is_said_before_the_first_row() -> None:
    X, y = rows(3)
    assert (Regressions().extend(X, y)[:, 0, :-NOTES] == 0).all()


def test_a_fork_and_its_original_grow_apart() -> None:
    X, y = rows(4)
    alone, original = Regressions(), Regressions()
    alone.extend(X[:, :50], y[:, :50])
    original.extend(X[:, :50], y[:, :50])
    fork = original.fork()
    fork.extend(X[:, 80:], y[:, 80:])
    torch.testing.assert_close(
        original.extend(X[:, 50:70], y[:, 50:70]), alone.extend(X[:, 50:70], y[:, 50:70])
    )
    twin = Regressions()
    order = [*range(50), *range(80, 120)]
    twin.extend(X[:, order], y[:, order])
    torch.testing.assert_close(
        fork.base_predictions(X, [90]), twin.base_predictions(X, [90]), atol=1e-9, rtol=0
    )
    torch.testing.assert_close(
        original.base_predictions(X, [33, 70]), alone.base_predictions(X, [33, 70]), atol=1e-9, rtol=0
    )


def test_rows_asked_for_teach_nothing() -> None:
    X, y = rows(5)
    changed = y.clone()
    changed[:, 100:] += 5.0
    assert torch.equal(base_predictions_of(X, y, asked=20), base_predictions_of(X, changed, asked=20))


def test_an_arm_that_was_seldom_tried_is_no_nearer_to_the_others() -> None:
    X = torch.rand(1, 512, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    arm = (torch.arange(512) % 64 == 0).double()  # one row in 64
    X = torch.cat([X, torch.stack([1 - arm, arm], -1)[None]], 2)
    y = 3 * torch.sin(6 * X[..., 0]) + X[..., 1] - 4 * arm
    weights = []
    for mask in (None, torch.tensor([[False] * 4 + [True] * 2])):
        regressions = Regressions(mask)
        regressions.extend(X, y)
        weights.append(regressions._by_waves(X)[0])
    plain, apart = weights
    assert torch.equal(plain[:4], apart[:4])
    assert plain[4:].sum() < 0.1  # squared distance of the two arms at one context
    assert apart[4:].sum() == pytest.approx(0.5)


@pytest.mark.parametrize("row", [1, 30, 119])
def test_mean_so_far_and_number_of_rows_are_told(row: int) -> None:
    X, y = rows(row)
    said = Regressions().extend(X, y)[1, row]
    assert float(said[-NOTES - 1]) == pytest.approx(float(y[1, :row].mean()))
    assert float(said[-1]) == pytest.approx(np.log1p(row) / 4)


@pytest.mark.parametrize("row", [1, 30, 119])
def test_average_by_errors_so_far_weighs_each_prediction_by_its_own(row: int) -> None:
    X, y = rows(row)
    said = Regressions().extend(X, y)[1].numpy()
    predictions = said[:, : -NOTES - 2]
    squared = ((predictions[:row] - y[1, :row, None].numpy()) ** 2).sum(0)
    weight = np.exp(-row / 4 * (np.log1p(squared) - np.log1p(squared).min()))
    expected = (weight * predictions[row]).sum() / weight.sum()
    assert said[row, -NOTES - 2] == pytest.approx(expected)


@pytest.mark.parametrize("row", [1, 30, 119])
def test_errors_so_far_of_every_prediction_are_told(row: int) -> None:
    X, y = rows(row)
    said = Regressions().extend(X, y)[1].numpy()
    squared = ((said[:row, :PREDICTIONS] - y[1, :row, None].numpy()) ** 2).sum(0)
    told = said[row, -PREDICTIONS - 1 : -1]
    np.testing.assert_allclose(told, np.log((squared + 0.01) / (row + 1)) / 2, rtol=1e-9)


@pytest.mark.parametrize("row", [16, 50])
def test_leverage_is_the_variance_of_a_line(row: int) -> None:
    X, y = rows(row)
    said = Regressions().extend(X, y)[1, row, PREDICTIONS + 2]
    fitted = max(size for size in refit_sizes(120) if size <= row)
    Z = np.hstack([np.ones((120, 1)), X[1].numpy()])
    variance = Z[row] @ np.linalg.solve(Z[:fitted].T @ Z[:fitted] + 3 * PENALTIES[1] * np.eye(4), Z[row])
    assert float(said) == pytest.approx(np.log(variance) / 2)


def evidence(Z: np.ndarray, y: np.ndarray, penalty: float) -> float:
    """Of y ~ N(0, s^2 (I + Z Z' / penalty)) with the scale s integrated out, by the matrix itself."""
    covariance = np.eye(len(y)) + Z @ Z.T / penalty
    return -np.linalg.slogdet(covariance)[1] / 2 - len(y) / 2 * np.log(y @ np.linalg.solve(covariance, y))


@pytest.mark.parametrize("row", [1, 12, 50, 119])
def test_average_by_evidence_and_the_probabilities_told_are_those_of_the_matrices_themselves(
    row: int,
) -> None:
    X, y = rows(row)
    regressions = Regressions()
    said = regressions.extend(X, y)[1, row].numpy()
    fitted = max(size for size in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96) if size <= row)
    x, targets = X[1, :fitted].numpy(), y[1, :fitted].numpy()
    one = np.ones((fitted, 1))
    found = [evidence(np.hstack([one, x]), targets, 3 * p) for p in PENALTIES]
    waves = np.hstack([one, x, np.sin(x), np.cos(x), np.sin(2 * x), np.cos(2 * x)])
    found += [evidence(waves, targets, 3 * p) for p in PENALTIES]
    for shares, penalty in product([alike, regressions._by_waves], KERNEL_PENALTIES):
        # Rows count half as the basis of the last doubling before them foretold them, half as this one fits.
        ends, total = [1, *(2**k for k in range(1, 8) if 2**k < fitted), fitted], 0.0
        for begin, end in pairwise(ends):
            basis = KernelBasis.of(X[:, :begin], shares(X[:, :begin]))
            Z = basis(X[:, :end])[1].numpy()
            if begin > 1:
                own = evidence(Z[:begin], y[1, :begin].numpy(), penalty)
                total = (total + own) / 2 - own
            total += evidence(Z, y[1, :end].numpy(), penalty)
        found.append(total)
    weight = np.exp(found - np.max(found))
    weight /= weight.sum()
    assert said[REGRESSIONS] == pytest.approx(said[:REGRESSIONS] @ weight, abs=1e-6)
    told = said[PREDICTIONS + 3 :][:REGRESSIONS]
    np.testing.assert_allclose(told, np.maximum(np.log(weight), UNLIKELY) / 4, atol=1e-5)
