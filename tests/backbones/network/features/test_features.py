from __future__ import annotations

import threading
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.random import Generator
from sklearn.linear_model import Ridge

from pfnts.backbones.network.features import neighbours
from pfnts.backbones.network.features.features import LIMIT, UNLIKELY, Features, features_of
from pfnts.backbones.network.features.kernels import (
    KERNEL_PENALTIES,
    KernelBasis,
    equal_weights,
    wave_weights,
)
from pfnts.backbones.network.features.refits import four_per_doubling, latest, two_per_doubling
from pfnts.backbones.network.features.ridge import PENALTIES
from pfnts.backbones.network.features.table import NOTES, PREDICTIONS, places

BEFORE = Path(__file__).parent / "data" / "before_frozen.npz"


def rows(seed: int, *, n: int = 120, features: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(2, n, features, generator=generator, dtype=torch.float64)
    return X, X[..., 0] + torch.randn(2, n, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("row", [1, 15, 16, 40, 119])
def test_ridge_regressions_equal_scikit_learn_on_the_rows_before(row: int) -> None:
    X, y = rows(row)
    found = Features.none(X).extend(X, y)[1]
    x = X[1].numpy()
    bases = [x, np.hstack([x, np.sin(x), np.cos(x), np.sin(2 * x), np.cos(2 * x)])]
    expected = []
    for basis, sizes in zip(bases, (four_per_doubling(120), two_per_doubling(120)), strict=True):
        fitted = max(size for size in sizes if size <= row)
        Z = np.hstack([np.ones((len(x), 1)), basis])
        for penalty in PENALTIES:
            model = Ridge(alpha=3 * penalty, fit_intercept=False).fit(Z[:fitted], y[1, :fitted])
            expected.append(model.predict(Z[row : row + 1])[0])
    np.testing.assert_allclose(found[1, row, :6], expected, atol=1e-9)


@pytest.mark.parametrize("kind", ["arms", "wide"])
def test_the_weights_that_ship_receive_the_features_that_they_were_trained_with(kind: str) -> None:
    with np.load(BEFORE) as file:
        expected = {name.removeprefix(f"{kind}_"): file[name] for name in file.files if name.startswith(kind)}
    X, y, queries = (torch.from_numpy(expected[name]).double() for name in ("X", "y", "queries"))
    names_arm = torch.from_numpy(expected["names_arm"])[None]
    features, of_rows = Features.none(X, names_arm=names_arm).extend(X, y)
    np.testing.assert_allclose(of_rows[:, expected["rows"]].numpy(), expected["told"], atol=1e-6)
    np.testing.assert_allclose(
        features.at(queries, expected["sizes"].tolist()).numpy(), expected["at"], atol=1e-6
    )


def test_extending_by_random_cuts_equals_extending_once(rng: Generator) -> None:
    X, y = rows(0, n=400)
    X[:, :, 2] = X[:, :, 2].round()
    once, at_once = Features.none(X).extend(X, y)
    cuts = [0, *sorted(rng.choice(np.arange(1, 400), size=12, replace=False).tolist()), 400]
    grown, of_rows = Features.none(X), []
    for a, b in pairwise(cuts):
        grown, found = grown.extend(X[:, a:b], y[:, a:b])
        of_rows.append(found)
    torch.testing.assert_close(torch.cat(of_rows, 1), at_once, atol=1e-9, rtol=0)
    sizes = [0, 1, 7, 13, 30, 52, 120, 400]
    torch.testing.assert_close(grown.at(X, sizes), once.at(X, sizes), atol=1e-9, rtol=0)


def test_a_query_has_the_features_of_a_row_at_its_place() -> None:
    X, y = rows(1)
    features, of_rows = Features.none(X).extend(X, y)
    for row in (0, 5, 77):
        torch.testing.assert_close(features.at(X[:, row : row + 1], [row])[:, 0], of_rows[:, row])


def test_features_of_far_queries_and_of_missing_cells_are_finite() -> None:
    X, y = rows(2)
    X[:, 3, 1] = torch.nan
    features, of_rows = Features.none(X).extend(X, y)
    far = torch.full((2, 1, 3), 8.0, dtype=torch.float64)
    assert features.at(far, [120]).abs().max() <= LIMIT
    assert torch.isfinite(of_rows).all()


def test_queries_before_the_first_row_have_the_features_of_the_first_row() -> None:
    X, y = rows(3)
    features, of_rows = Features.none(X).extend(X, y)
    torch.testing.assert_close(Features.none(X).at(X[:, :1], [0]), of_rows[:, :1])
    torch.testing.assert_close(features.at(X[:, :1], [0]), of_rows[:, :1])


def test_predictions_of_the_first_row_are_zero() -> None:
    X, y = rows(3)
    assert (Features.none(X).extend(X, y)[1][:, 0, :-NOTES] == 0).all()


@pytest.mark.parametrize("held", [9, 50, 64, 300])
def test_two_successors_of_one_value_and_the_value_itself_do_not_disturb_each_other(held: int) -> None:
    X, y = rows(4, n=500)
    value, _ = Features.none(X).extend(X[:, :held], y[:, :held])
    sizes = [0, 3, held]
    before = value.at(X[:, :4], sizes)
    parts = [slice(held, held + 60), slice(held + 90, held + 150), slice(held + 60, held + 61)]
    successors = [value.extend(X[:, part], y[:, part]) for part in parts]
    assert torch.equal(value.at(X[:, :4], sizes), before)
    assert value.rows == held
    for part, (successor, of_rows) in zip(parts, successors, strict=True):
        order = [*range(held), *range(part.start, part.stop)]
        alone, found = Features.none(X).extend(X[:, order], y[:, order])
        torch.testing.assert_close(of_rows, found[:, held:], atol=1e-9, rtol=0)
        sizes = [0, 2, held, alone.rows]
        torch.testing.assert_close(
            successor.at(X[:, :4], sizes), alone.at(X[:, :4], sizes), atol=1e-9, rtol=0
        )


def test_threads_may_extend_and_read_one_value() -> None:
    X, y = rows(6, n=300)
    value, _ = Features.none(X).extend(X[:, :100], y[:, :100])
    found: dict[int, Features] = {}

    def grow(number: int) -> None:
        features = value
        for a, b in pairwise([100, 101, 130, 170, 200]):
            features, _ = features.extend(X[:, a:b], y[:, a:b] + number)
            value.at(X[:, :3], [50, 100])
        found[number] = features

    threads = [threading.Thread(target=grow, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        shifted = y.clone()
        shifted[:, 100:] += number
        alone, _ = Features.none(X).extend(X[:, :200], shifted[:, :200])
        torch.testing.assert_close(
            found[number].at(X[:, :5], [90, 150, 200]), alone.at(X[:, :5], [90, 150, 200]), atol=1e-9, rtol=0
        )


def test_targets_of_queries_change_nothing() -> None:
    X, y = rows(5)
    changed = y.clone()
    changed[:, 100:] += 5.0
    assert torch.equal(features_of(X, y, asked=20), features_of(X, changed, asked=20))


def test_a_seldom_tried_arm_is_no_nearer_to_the_others() -> None:
    X = torch.rand(1, 512, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    arm = (torch.arange(512) % 64 == 0).double()  # one row in 64
    X = torch.cat([X, torch.stack([1 - arm, arm], -1)[None]], 2)
    y = 3 * torch.sin(6 * X[..., 0]) + X[..., 1] - 4 * arm
    waves = latest(Features.none(X).extend(X, y)[0].waves.fits, 512).coefficients[..., 1]
    plain = wave_weights(X, waves)[0]
    apart = wave_weights(X, waves, torch.tensor([[False] * 4 + [True] * 2]))[0]
    assert torch.equal(plain[:4], apart[:4])
    assert plain[4:].sum() < 0.1  # squared distance of the two arms at one context
    assert apart[4:].sum() == pytest.approx(0.5)


@pytest.mark.parametrize("row", [1, 30, 119])
def test_mean_so_far_and_number_of_rows(row: int) -> None:
    X, y = rows(row)
    found = Features.none(X).extend(X, y)[1][1, row]
    assert float(found[-NOTES - 1]) == pytest.approx(float(y[1, :row].mean()))
    assert float(found[-1]) == pytest.approx(np.log1p(row) / 4)


@pytest.mark.parametrize("row", [1, 30, 119])
def test_average_by_errors_so_far_weighs_each_prediction_by_its_own(row: int) -> None:
    X, y = rows(row)
    found = Features.none(X).extend(X, y)[1][1].numpy()
    predictions = found[:, : -NOTES - 2]
    squared = ((predictions[:row] - y[1, :row, None].numpy()) ** 2).sum(0)
    weight = np.exp(-row / 4 * (np.log1p(squared) - np.log1p(squared).min()))
    expected = (weight * predictions[row]).sum() / weight.sum()
    assert found[row, -NOTES - 2] == pytest.approx(expected)


@pytest.mark.parametrize("row", [1, 30, 119])
def test_errors_so_far_of_every_prediction(row: int) -> None:
    X, y = rows(row)
    found = Features.none(X).extend(X, y)[1][1].numpy()
    squared = ((found[:row, :PREDICTIONS] - y[1, :row, None].numpy()) ** 2).sum(0)
    found = found[row, -PREDICTIONS - 1 : -1]
    np.testing.assert_allclose(found, np.log((squared + 0.01) / (row + 1)) / 2, rtol=1e-9)


@pytest.mark.parametrize("row", [16, 50])
def test_leverage_is_the_variance_of_a_line(row: int) -> None:
    X, y = rows(row)
    found = Features.none(X).extend(X, y)[1][1, row, places("leverage")]
    fitted = max(size for size in four_per_doubling(120) if size <= row)
    Z = np.hstack([np.ones((120, 1)), X[1].numpy()])
    variance = Z[row] @ np.linalg.solve(Z[:fitted].T @ Z[:fitted] + 3 * PENALTIES[1] * np.eye(4), Z[row])
    assert float(found) == pytest.approx(np.log(variance) / 2)


def evidence(Z: np.ndarray, y: np.ndarray, penalty: float) -> float:
    """Return the log evidence of y ~ N(0, s^2 (I + Z Z' / penalty)), with the scale s integrated out."""
    covariance = np.eye(len(y)) + Z @ Z.T / penalty
    return -np.linalg.slogdet(covariance)[1] / 2 - len(y) / 2 * np.log(y @ np.linalg.solve(covariance, y))


@pytest.mark.parametrize("row", [1, 12, 50, 119])
def test_average_by_evidence_and_probabilities_equal_those_from_whole_covariances(
    row: int,
) -> None:
    X, y = rows(row)
    features, of_rows = Features.none(X).extend(X, y)
    of_row = of_rows[1, row].numpy()
    fitted = max(size for size in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96) if size <= row)
    x, targets = X[1, :fitted].numpy(), y[1, :fitted].numpy()
    one = np.ones((fitted, 1))
    found = [evidence(np.hstack([one, x]), targets, 3 * p) for p in PENALTIES]
    waves = np.hstack([one, x, np.sin(x), np.cos(x), np.sin(2 * x), np.cos(2 * x)])
    found += [evidence(waves, targets, 3 * p) for p in PENALTIES]

    def by_waves(X: torch.Tensor) -> torch.Tensor:
        return wave_weights(X, latest(features.waves.fits, X.shape[1]).coefficients[..., 1])

    for weights, penalty in product([equal_weights, by_waves], KERNEL_PENALTIES):
        # Rows count half as the basis of the last doubling before them predicted them, half as this one fits.
        ends, total = [1, *(2**k for k in range(1, 8) if 2**k < fitted), fitted], 0.0
        for begin, end in pairwise(ends):
            basis = KernelBasis.of(X[:, :begin], weights(X[:, :begin]))
            Z = basis(X[:, :end])[1].numpy()
            if begin > 1:
                own = evidence(Z[:begin], y[1, :begin].numpy(), penalty)
                total = (total + own) / 2 - own
            total += evidence(Z, y[1, :end].numpy(), penalty)
        found.append(total)
    weight = np.exp(found - np.max(found))
    weight /= weight.sum()
    assert of_row[places("average by evidence")] == pytest.approx(of_row[:12] @ weight, abs=1e-6)
    probabilities = of_row[places("probabilities")]
    np.testing.assert_allclose(probabilities, np.maximum(np.log(weight), UNLIKELY) / 4, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_features_are_computed_where_the_rows_are(kind: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(neighbours.ENTRIES, "meta", 2**25)
    # The device "meta" stands for a card: its tensors have shapes and no values.
    X, y = torch.zeros(2, 2300, 3, device="meta", dtype=kind), torch.zeros(2, 2300, device="meta", dtype=kind)
    names_arm = torch.zeros(1, 3, dtype=torch.bool, device="meta")
    features, of_rows = Features.none(X, names_arm=names_arm).extend(X[:, :2200], y[:, :2200])
    _, of_more = features.extend(X[:, 2200:], y[:, 2200:])
    for found in (of_rows, of_more, features.at(X[:, :4], [0, 70, 2200])):
        assert (found.device.type, found.dtype) == ("meta", kind)
