from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from pfnts.backbones.network.prior import inputs
from pfnts.backbones.network.prior.device_rng import DeviceRng


def test_codes_differ_from_what_they_are_worth_and_other_columns_do_not() -> None:
    shown, view = inputs.draw_inputs(64, 200, 8, rng=DeviceRng(1))
    assert shown.shape == view.shape == (64, 200, 8)
    stacked = torch.stack([shown, view]).permute(1, 3, 0, 2).flatten(0, 1)  # (tables * columns, 2, rows)
    varied = stacked[stacked.std(-1).amin(1) > 0.01]
    together = torch.stack([torch.corrcoef(pair)[0, 1] for pair in varied])
    same = (together > 0.999).float().mean()
    assert 0.8 < same < 1.0


@pytest.mark.parametrize("seed", range(4))
def test_columns_made_of_hidden_causes_have_near_neighbours(seed: int) -> None:
    """The nearest of 400 rows is far nearer than among as many independent columns."""

    def nearest(X: torch.Tensor) -> torch.Tensor:
        X = inputs.standardise(X)
        return torch.cdist(X, X).add_(1e9 * torch.eye(400)).amin(2).median(1).values

    made = nearest(inputs.draw_manifold(16, 400, 12, rng=DeviceRng(seed))[0])
    assert made.median() < 0.8 * nearest(DeviceRng(seed).normal(16, 400, 12)).median()


def test_single_cells_of_some_tables_lie_far_out() -> None:
    X = DeviceRng(0).normal(400, 100, 3)
    far = inputs.spoil(X, rng=DeviceRng(1)) != X
    assert 0.02 < far.flatten(1).any(1).float().mean() < 0.15
    assert far.float().mean() < 0.001


@pytest.mark.parametrize("features", [6, 7, 41])
def test_categories_are_columns_of_zeros_and_ones_and_numbers_come_after_them(features: int) -> None:
    for seed in range(8):
        shown, view = inputs.draw_categories(5, 60, features, rng=DeviceRng(seed))
        assert shown.shape == view.shape == (5, 60, features)
        levels = ((shown == 0) | (shown == 1)).all(1).all(0)
        count = int(levels.sum())
        assert count >= features // 2
        assert levels[:count].all()
        # Worth does not depend on how rare a level is, only on whether it is there.
        torch.testing.assert_close(view[..., :count], (shown[..., :count] - 0.2) / 0.4)


def test_categories_have_as_many_levels_as_the_mixture_allows() -> None:
    def most(levels: int) -> int:
        """Largest number of columns of which each row has exactly one set."""
        found = 0
        for seed in range(40):
            shown, _ = inputs.draw_categories(2, 400, 45, rng=DeviceRng(seed), most=levels)
            sums = shown[0].cumsum(1)
            ends = [p for p in range(45) if (sums[:, p] == sums[0, p]).all()]
            found = max(found, *(b - a for a, b in pairwise([-1, *ends])))
        return found

    assert most(12) <= 12 < most(40) <= 40
