from __future__ import annotations

import pytest
import torch

from pfnts.backbones.embedded import prior
from pfnts.backbones.embedded.dice import Dice


@pytest.mark.parametrize("features", [1, 2, 5, 40])
@pytest.mark.parametrize("seed", range(3))
def test_tables_have_their_shapes_and_are_finite(features: int, seed: int) -> None:
    tables = prior.draw_tables(16, 32, features, dice=Dice(seed), groups=8, draws=3)
    assert tables.X.shape == (16, 32, features)
    assert tables.y.shape == tables.mean.shape == (16, 32)
    assert tables.again.shape == (3, 16, 32)
    assert not torch.isinf(tables.X).any()
    for part in (tables.y, tables.mean, tables.again):
        assert torch.isfinite(part).all()


def test_one_seed_gives_one_batch() -> None:
    one, other = (prior.draw_tables(8, 16, 4, dice=Dice(3)) for _ in range(2))
    assert torch.equal(one.y, other.y)
    assert not torch.equal(one.y, prior.draw_tables(8, 16, 4, dice=Dice(4)).y)


def rewards(seed: int) -> dict[str, prior.Reward]:
    dice = Dice(seed)
    value, X = dice.normal(8, 64), dice.normal(8, 64, 3)
    return {
        "noise": prior.Noisy.draw(value, X, heavy=False, dice=dice),
        "heavy noise": prior.Noisy.draw(value, X, heavy=True, dice=dice),
        "yes or no": prior.Share.draw(value, trials=1, dice=dice),
        "share": prior.Share.draw(value, trials=5, dice=dice),
        "count": prior.Count.draw(value, dice=dice),
    }


@pytest.mark.parametrize("kind", list(rewards(0)))
@pytest.mark.parametrize("seed", range(3))
def test_rewards_are_what_is_expected_on_average(kind: str, seed: int) -> None:
    reward = rewards(seed)[kind]
    dice = Dice(1000 + seed)
    again = torch.stack([reward.sample(dice) for _ in range(300)])
    error = (again - reward.mean).mean((0, 2))  # over 19,200 draws for each table
    spread = (again - reward.mean).flatten().std()
    assert error.abs().max() < 0.06 * spread + 1e-6


def test_further_rewards_are_those_of_the_same_table() -> None:
    tables = prior.draw_tables(16, 64, 4, dice=Dice(2), draws=200)
    error = (tables.again.mean((0, 2)) - tables.mean.mean(1)).abs()
    spread = tables.again.std(0).mean(1)
    assert (error < 0.2 * spread + 1e-3).all()


def test_binary_rewards_are_0_or_1_and_shares_are_parts() -> None:
    for seed in range(3):
        kinds = rewards(seed)
        assert set(kinds["yes or no"].sample(Dice(seed)).unique().tolist()) <= {0.0, 1.0}
        fifths = kinds["share"].sample(Dice(seed)) * 5
        torch.testing.assert_close(fifths, fifths.round())
        assert ((kinds["yes or no"].mean > 0) & (kinds["yes or no"].mean < 1)).all()
        assert (kinds["count"].sample(Dice(seed)) % 1 == 0).all()


def test_rare_rewards_occur() -> None:
    shares = prior.Share.draw(Dice(0).normal(500, 64), trials=1, dice=Dice(1)).mean.mean(1)
    assert 0.05 < ((shares > 0) & (shares < 0.1)).float().mean() < 0.6


def test_noise_goes_from_none_to_three_times_the_signal() -> None:
    value, X = Dice(0).normal(2000, 16), Dice(1).normal(2000, 16, 2)
    noise = prior.Noisy.draw(value, X, heavy=False, dice=Dice(2))
    size = noise.scale.median(1).values
    assert (size == 0).any()
    assert 2 < size.quantile(0.99) < 9
    uneven = noise.scale.std(1) / (noise.scale.mean(1) + 1e-9) > 0.05
    assert 0.1 < uneven.float().mean() < 0.4


def test_adaptive_choice_raises_the_later_rewards() -> None:
    value = Dice(0).normal(64, 512)
    chosen = prior.choose_rows(value, dice=Dice(1))
    assert (chosen % 256 == torch.arange(256)).all()
    taken = value.gather(1, chosen)
    assert taken[:, 192:].mean() > taken[:, :64].mean() + 0.1


def test_arms_are_one_hot_columns_of_their_own() -> None:
    arm = prior.draw_arms(8, 200, 4, dice=Dice(0))
    assert arm.shape == (8, 200)
    assert set(arm.unique().tolist()) == {0, 1, 2, 3}
    value = prior.arm_values(Dice(1).normal(8, 200, 3), arm, 4, dice=Dice(2))
    assert value.shape == (8, 200)
    assert torch.isfinite(value).all()


def test_arms_may_share_a_function_or_not() -> None:
    # The same contexts under two arms: in some tables the worths move together, in others they do not.
    view = Dice(0).normal(200, 60, 4).repeat(1, 2, 1)
    arm = torch.cat([torch.zeros(200, 60), torch.ones(200, 60)], 1).long()
    together = []
    for seed in range(4):
        first, second = prior.arm_values(view, arm, 2, dice=Dice(seed)).chunk(2, 1)
        together += [
            float(torch.corrcoef(torch.stack(pair))[0, 1]) for pair in zip(first, second, strict=True)
        ]
    shared = sum(r > 0.95 for r in together) / len(together)
    assert 0.1 < shared < 0.9


def test_only_some_cells_of_some_tables_are_hidden() -> None:
    X, value = Dice(0).normal(400, 50, 6), Dice(1).normal(400, 50)
    hidden = torch.isnan(prior.hide_cells(X, value, dice=Dice(2)))
    tables = hidden.flatten(1).any(1).float().mean()
    assert 0.05 < tables < 0.3
    assert hidden.float().mean((1, 2)).max() < 0.5


def test_codes_differ_from_what_they_are_worth_and_other_columns_do_not() -> None:
    shown, view = prior.draw_inputs(64, 200, 8, dice=Dice(0))
    assert shown.shape == view.shape == (64, 200, 8)
    stacked = torch.stack([shown, view]).permute(1, 3, 0, 2).flatten(0, 1)  # (tables * columns, 2, rows)
    varied = stacked[stacked.std(-1).amin(1) > 0.01]
    together = torch.stack([torch.corrcoef(pair)[0, 1] for pair in varied])
    same = (together > 0.999).float().mean()
    assert 0.8 < same < 1.0
