from __future__ import annotations

import math

import pytest
import torch

from pfnts.backbones.network.network import quantile_levels
from pfnts.backbones.network.training import loss as losses


def test_loss_is_that_of_hand_computed_predictions() -> None:
    # Squared error 4 in units of signal 1, than which the mean is known no better; pinball of the median
    # 0.5 * |3 - 1| / 2, in units of scale 2; an error of 2 is well within 1.96 standard deviations of 2.
    loss = losses.loss_of(
        mean=torch.tensor([[2.0]]),
        quantiles=torch.tensor([[[1.0]]]),
        log_sd=torch.tensor([[math.log(2.0)]]),
        true_mean=torch.tensor([[0.0]]),
        targets=torch.tensor([[[3.0]]]),
        scale=torch.tensor([[2.0]]),
        signal=torch.tensor([[1.0]]),
    )
    within = 0.05 * math.log(1.96)
    assert float(loss) == pytest.approx(4.0 + 0.5 + losses.SPREAD_WEIGHT * within, rel=1e-4)


def loss(*, quantiles: torch.Tensor, log_sd: float = 0.0, means: torch.Tensor | None = None) -> float:
    """Of a predicted mean of 0, for true means that are 0 or as given, and standard normal targets."""
    generator = torch.Generator().manual_seed(0)
    true = torch.zeros(1, 1) if means is None else means
    zero, one = torch.zeros_like(true), torch.ones(1, 1)
    targets = torch.randn(4000, *true.shape, generator=generator)
    return float(losses.loss_of(zero, quantiles, zero + log_sd, true, targets, one, one))


def test_true_quantiles_have_the_least_loss() -> None:
    level = quantile_levels(99)
    assert level[0] == pytest.approx(0.01)
    assert level[49] == pytest.approx(0.5)
    true = torch.special.ndtri(level)[None, None]
    others = (1.2 * true, 0.8 * true, true + 0.2, true - 0.2)
    assert loss(quantiles=true) < min(loss(quantiles=other) for other in others)


def test_true_standard_deviation_of_the_mean_is_where_the_slope_changes_its_sign() -> None:
    # Not where the loss is least: how well a mean is known also says how much its error counts.
    means = 0.3 * torch.randn(1, 2000, generator=torch.Generator().manual_seed(1))

    def slope(sd: float) -> float:
        log_sd = torch.tensor(math.log(sd), requires_grad=True)
        zero, one = torch.zeros_like(means), torch.ones(1, 1)
        losses.loss_of(zero, zero[..., None], zero + log_sd, means, zero[None], one, one).backward()
        assert log_sd.grad is not None
        return float(log_sd.grad)

    assert slope(0.27) < 0 < slope(0.33)
    assert slope(0.2) < slope(0.27)


def test_intervals_with_long_tailed_errors_hold_nineteen_of_twenty() -> None:
    # Errors of two sizes, as if of two kinds of table that cannot be told apart.
    generator = torch.Generator().manual_seed(2)
    size = torch.where(torch.rand(1, 20_000, generator=generator) < 0.1, 1.0, 0.1)
    means = size * torch.randn(1, 20_000, generator=generator)
    log_sd = torch.tensor(0.0, requires_grad=True)
    zero, one = torch.zeros_like(means), torch.ones(1, 1)
    optimiser = torch.optim.Adam([log_sd], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        losses.loss_of(zero, zero[..., None], zero + log_sd, means, zero[None], one, one).backward()
        optimiser.step()
    within = (means.abs() <= 1.96 * log_sd.exp()).float().mean()
    assert float(within) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("sd", [0.001, 0.05, 0.3, 2.0])
def test_pull_on_a_mean_grows_as_it_is_known_better(sd: float) -> None:
    """By hand, at an error of half an sd: error / (sd * signal), with sd from 0.02 to 1 signal."""
    mean = torch.zeros(1, 1, requires_grad=True)
    true, signal = torch.tensor([[0.5 * sd]]), torch.tensor([[0.8]])
    flat = torch.zeros(1, 1, 1)
    losses.loss_of(mean, flat, torch.log(torch.tensor([[sd]])), true, flat, signal, signal).backward()
    assert mean.grad is not None
    counted = min(max(sd, losses.SHARPEST * 0.8), 0.8)
    assert float(mean.grad) == pytest.approx(-2 * 0.5 * sd / (counted * 0.8), rel=1e-5)
