from __future__ import annotations

import pytest
import torch

from pfnts.backbones.network.prior import functions
from pfnts.backbones.network.prior.device_rng import DeviceRng

FAMILIES = [
    functions.linear,
    functions.perceptron,
    functions.smooth,
    functions.oblivious_trees,
    functions.bart_trees,
    functions.additive,
    functions.prototypes,
]


def test_every_family_is_tested() -> None:
    assert {family for family, _ in functions._FAMILIES} == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_irrelevant_columns_do_not_matter_and_relevant_ones_do(family: object, seed: int) -> None:
    X = DeviceRng(100 + seed).normal(4, 60, 6)
    relevant = torch.tensor([[1.0, 0, 1, 0, 0, 1]]).repeat(4, 1)
    value = family(X, relevant, DeviceRng(seed))
    assert value.shape == (4, 60)
    assert torch.isfinite(value).all()
    disturbed = X.clone()
    disturbed[:, :, [1, 3, 4]] = DeviceRng(200 + seed).normal(4, 60, 3)
    torch.testing.assert_close(family(disturbed, relevant, DeviceRng(seed)), value, atol=1e-4, rtol=1e-4)
    disturbed[:, :, [0, 2, 5]] = DeviceRng(300 + seed).normal(4, 60, 3)
    assert (family(disturbed, relevant, DeviceRng(seed)) - value).abs().amax(1).min() > 1e-3


@pytest.mark.parametrize("seed", range(10))
def test_drawn_functions_are_finite_and_differ_between_tables(seed: int) -> None:
    X = DeviceRng(seed).normal(3, 50, 4)
    value = functions.draw_function(X, rng=DeviceRng(seed), trend=0.35)
    assert value.shape == (3, 50)
    assert torch.isfinite(value).all()
    same = functions.draw_function(X[:1].repeat(3, 1, 1), rng=DeviceRng(seed), trend=0.35)
    assert not torch.allclose(same[0], same[1])


def test_one_seed_gives_one_function() -> None:
    X = DeviceRng(0).normal(2, 30, 4)
    assert torch.equal(
        functions.draw_function(X, rng=DeviceRng(5), trend=0.35),
        functions.draw_function(X, rng=DeviceRng(5), trend=0.35),
    )


def test_between_one_and_all_columns_are_relevant() -> None:
    X = torch.zeros(2000, 1, 20)
    count = functions.draw_relevant(X, rng=DeviceRng(0)).sum(1)
    assert count.min() >= 1
    assert count.max() == 20
    assert (count < 5).float().mean() > 0.2


def test_standardised_rows_have_mean_zero_and_deviation_one() -> None:
    x = functions.standardise(3 + 7 * DeviceRng(0).normal(2, 400))
    torch.testing.assert_close(x.mean(1), torch.zeros(2), atol=1e-4, rtol=0)
    torch.testing.assert_close(x.std(1), torch.ones(2), atol=1e-4, rtol=0)
    assert (functions.standardise(torch.full((1, 9), 4.0)) == 0).all()


def linear_r2(value: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    Z = torch.cat([torch.ones_like(X[..., :1]), X], -1)
    left = value[..., None] - Z @ torch.linalg.lstsq(Z, value[..., None]).solution
    return 1 - left[..., 0].var(1) / value.var(1)


def test_functions_with_a_trend_follow_a_straight_line_first_of_all() -> None:
    X = DeviceRng(0).normal(32, 400, 4)
    explained = [
        torch.cat([linear_r2(functions.draw_function(X, rng=DeviceRng(s), trend=t), X) for s in range(12)])
        for t in (0.0, 1.0)
    ]
    assert explained[1].quantile(0.05) > 0.3
    assert explained[1].median() > explained[0].median() + 0.2
