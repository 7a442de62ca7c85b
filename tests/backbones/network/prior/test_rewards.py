from __future__ import annotations

import pytest
import torch

from pfnts.backbones.network.prior import rewards as rewards_
from pfnts.backbones.network.prior.device_rng import DeviceRng


def rewards(seed: int) -> dict[str, rewards_.Reward]:
    rng = DeviceRng(seed)
    value, X = rng.normal(8, 64), rng.normal(8, 64, 3)
    return {
        "noise": rewards_.Noisy.draw(value, X, heavy=False, rng=rng),
        "heavy noise": rewards_.Noisy.draw(value, X, heavy=True, rng=rng),
        "yes or no": rewards_.Share.draw(value, trials=1, rng=rng),
        "share": rewards_.Share.draw(value, trials=5, rng=rng),
        "count": rewards_.Count.draw(value, rng=rng),
    }


@pytest.mark.parametrize("kind", list(rewards(0)))
@pytest.mark.parametrize("seed", range(3))
def test_rewards_are_what_is_expected_on_average(kind: str, seed: int) -> None:
    reward = rewards(seed)[kind]
    rng = DeviceRng(1000 + seed)
    again = torch.stack([reward.sample(rng) for _ in range(300)])
    error = (again - reward.mean).mean((0, 2))  # over 19,200 draws for each table
    spread = (again - reward.mean).flatten().std()
    assert error.abs().max() < 0.06 * spread + 1e-6


def test_binary_rewards_are_0_or_1_and_shares_are_parts() -> None:
    for seed in range(3):
        kinds = rewards(seed)
        assert set(kinds["yes or no"].sample(DeviceRng(seed)).unique().tolist()) <= {0.0, 1.0}
        fifths = kinds["share"].sample(DeviceRng(seed)) * 5
        torch.testing.assert_close(fifths, fifths.round())
        assert ((kinds["yes or no"].mean >= 0) & (kinds["yes or no"].mean <= 1)).all()
        assert (kinds["count"].sample(DeviceRng(seed)) % 1 == 0).all()


def test_rare_rewards_occur() -> None:
    shares = rewards_.Share.draw(DeviceRng(0).normal(500, 64), trials=1, rng=DeviceRng(1)).mean.mean(1)
    assert 0.05 < ((shares > 0) & (shares < 0.1)).float().mean() < 0.6


def test_noise_goes_from_none_to_three_times_the_signal() -> None:
    value, X = DeviceRng(0).normal(2000, 16), DeviceRng(1).normal(2000, 16, 2)
    noise = rewards_.Noisy.draw(value, X, heavy=False, rng=DeviceRng(2))
    size = noise.scale.median(1).values
    assert (size == 0).any()
    assert 2 < size.quantile(0.99) < 9
    uneven = noise.scale.std(1) / (noise.scale.mean(1) + 1e-9) > 0.05
    assert 0.1 < uneven.float().mean() < 0.4


@pytest.mark.parametrize("rare", [0.05, 0.5])
def test_rates_are_mostly_even_up_to_one_or_a_fifth_and_some_are_tiny(rare: float) -> None:
    rate = rewards_.draw_rates(20_000, rng=DeviceRng(0), rare=rare)
    assert ((rate >= 0) & (rate <= 1)).all()
    tiny = 0.05 * (1 - rare) * 0.4 * 0.2 + rare / 3  # below one in a hundred: a part of each kind
    assert 0.3 * tiny < (rate < 0.01).float().mean() < 3 * tiny + 0.02
    assert 0.2 < (rate > 0.2).float().mean() / (0.6 * (1 - rare)) < 1.2
