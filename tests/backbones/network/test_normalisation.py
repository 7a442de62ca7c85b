from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.backbones.network.normalisation import CLIP_X, CLIP_Y, Normalisation, robust_moments


def moments(*values: float) -> tuple[float, float]:
    centre, scale = robust_moments(torch.tensor(values, dtype=torch.float64), dim=-1)
    return float(centre), float(scale)


def test_are_mean_and_standard_deviation_of_tame_values() -> None:
    values = torch.randn(500, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    centre, scale = moments(*values.tolist())
    assert centre == pytest.approx(float(values.mean()), abs=1e-12)
    assert scale == pytest.approx(float(values.std(correction=0)), abs=1e-12)


@pytest.mark.parametrize(("value", "scale"), [(3.0, 3.0), (-5e6, 5e6), (1e-9, 1e-9), (0.0, 1.0)])
def test_constant_has_its_own_size_as_scale(value: float, scale: float) -> None:
    assert moments(*[value] * 7) == pytest.approx((value, scale))


def test_single_value_is_a_constant() -> None:
    assert moments(-2.0) == pytest.approx((-2.0, 2.0))


def test_nan_is_left_out() -> None:
    nan = float("nan")
    assert moments(nan, 1.0, nan, 3.0) == pytest.approx(moments(1.0, 3.0))
    assert moments(nan, nan) == (0.0, 1.0)


def test_far_outlier_is_pulled_in() -> None:
    values = torch.randn(400, generator=torch.Generator().manual_seed(1), dtype=torch.float64).tolist()
    plain = (sum(values) + 1e3) / 401
    centre, scale = moments(*values, 1e3)
    assert plain > 2
    assert abs(centre) < 0.5
    assert 0.5 < scale < 5


def test_rare_ones_keep_their_weight() -> None:
    values = [0.0] * 990 + [1.0] * 10
    centre, scale = moments(*values)
    assert centre == pytest.approx(0.01)
    assert scale == pytest.approx((0.01 * 0.99) ** 0.5)


def test_tiny_spread_about_a_large_centre_is_still_a_spread() -> None:
    centre, scale = moments(1e4 - 1.0, 1e4 + 1.0)
    assert (centre, scale) == pytest.approx((1e4, 1.0))


@pytest.mark.parametrize(("centre", "spread"), [(1e6, 0.5), (1e12, 0.5), (0.0, 1e200), (3e299, 1e299)])
def test_any_size_of_values_will_do(centre: float, spread: float) -> None:
    found = moments(*[centre - spread, centre + spread] * 50)
    assert found == pytest.approx((centre, spread), rel=1e-3)


def test_rows_are_shown_centred_scaled_and_clipped() -> None:
    X = torch.tensor([[0.0, 7.0], [2.0, 7.0]])
    norm = Normalisation.of(X, torch.tensor([10.0, 30.0]))
    shown = norm.contexts(torch.tensor([[2.0, 7.0], [1e9, torch.nan]]))
    torch.testing.assert_close(shown, torch.tensor([[1.0, 0.0], [CLIP_X, torch.nan]]), equal_nan=True)
    torch.testing.assert_close(
        norm.targets(torch.tensor([20.0, 30.0, -1e9])), torch.tensor([0.0, 1.0, -CLIP_Y])
    )


def test_batches_are_normalised_table_by_table() -> None:
    X = torch.randn(3, 9, 2, generator=torch.Generator().manual_seed(2))
    y = torch.randn(3, 9, generator=torch.Generator().manual_seed(3))
    together = Normalisation.of(X, y)
    for i in range(3):
        alone = Normalisation.of(X[i], y[i])
        torch.testing.assert_close(together.contexts(X)[i], alone.contexts(X[i]))
        torch.testing.assert_close(together.targets(y)[i], alone.targets(y[i]))


@pytest.mark.parametrize(("value", "shown"), [(0.0, 0.0), (1.0, 1.0), (-3.0, -1.0)])
def test_targets_that_are_all_alike_keep_their_sign(value: float, shown: float) -> None:
    norm = Normalisation.of(torch.zeros(4, 1), torch.full((4,), value))
    assert norm.targets(torch.tensor([value])).item() == shown


def test_stopping_when_nothing_changes_any_more_changes_nothing(
    rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.from_numpy(rng.standard_normal((400, 6))) * 7 + 3
    x[5, 1], x[:, 2], x[9, 3] = 1e6, (x[:, 2] > 12).double(), torch.nan
    x[:3, 4] = torch.tensor([1e9, -1e7, 1e5], dtype=torch.float64)  # pulled in round after round
    found = robust_moments(x, dim=0)
    monkeypatch.setattr(torch, "equal", lambda *_: False)
    for one, other in zip(found, robust_moments(x, dim=0), strict=True):
        np.testing.assert_array_equal(one, other)
