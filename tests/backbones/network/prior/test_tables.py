from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pfnts.backbones.network.prior import tables as prior
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.mixture import Mixture


@pytest.mark.parametrize("features", [1, 2, 5, 40])
@pytest.mark.parametrize("seed", range(3))
def test_tables_have_their_shapes_and_are_finite(features: int, seed: int) -> None:
    tables = prior.draw_tables(16, 32, features, queries=8, rng=DeviceRng(seed), groups=8, draws=3)
    assert tables.X.shape == (16, 32, features)
    assert tables.y.shape == tables.mean.shape == (16, 32)
    assert tables.again.shape == (3, 16, 32)
    assert not torch.isinf(tables.X).any()
    for part in (tables.y, tables.mean, tables.again):
        assert torch.isfinite(part).all()


def test_one_seed_gives_one_batch() -> None:
    one, other = (prior.draw_tables(8, 16, 4, queries=4, rng=DeviceRng(3)) for _ in range(2))
    assert torch.equal(one.y, other.y)
    assert not torch.equal(one.y, prior.draw_tables(8, 16, 4, queries=4, rng=DeviceRng(4)).y)


def test_further_rewards_are_those_of_the_same_table() -> None:
    tables = prior.draw_tables(16, 64, 4, queries=16, rng=DeviceRng(2), draws=200)
    error = (tables.again.mean((0, 2)) - tables.mean.mean(1)).abs()
    spread = tables.again.std(0).mean(1)
    assert (error < 0.2 * spread + 1e-3).all()


def test_rows_are_taken_from_the_begin_and_the_end() -> None:
    tables = prior.draw_tables(8, 16, 3, queries=4, rng=DeviceRng(5), draws=2)
    taken = tables.take(torch.tensor([6, 1]), first=3, last=4)
    for part, whole in ((taken.X, tables.X), (taken.y, tables.y), (taken.mean, tables.mean)):
        assert torch.equal(
            part.nan_to_num(), torch.cat([whole[[6, 1], :3], whole[[6, 1], 12:]], 1).nan_to_num()
        )
    assert torch.equal(taken.again, torch.cat([tables.again[:, [6, 1], :3], tables.again[:, [6, 1], 12:]], 2))


def test_arms_are_one_hot_columns_of_their_own() -> None:
    arm = prior.draw_arms(8, 200, 4, rng=DeviceRng(0))
    assert arm.shape == (8, 200)
    assert set(arm.unique().tolist()) == {0, 1, 2, 3}
    value = prior.arm_values(DeviceRng(1).normal(8, 200, 3), arm, 4, rng=DeviceRng(2), trend=0.35)
    assert value.shape == (8, 200)
    assert torch.isfinite(value).all()


def test_tables_say_which_of_their_columns_name_an_arm() -> None:
    with_arms = 0
    for seed in range(6):
        tables = prior.draw_tables(32, 24, 6, queries=8, rng=DeviceRng(seed), groups=32)
        for X, arms in zip(tables.X.nan_to_num(), tables.arms.tolist(), strict=True):
            named = X[:, 6 - arms :]
            assert set(named.unique().tolist()) <= {0.0, 1.0}
            assert (named.sum(1) <= 1).all()  # none where a cell is hidden
            with_arms += arms > 0
        assert torch.equal(tables.names_arm.sum(1), tables.arms)
        assert (
            tables.take(torch.tensor([5, 2]), first=3, last=4).arms.tolist() == tables.arms[[5, 2]].tolist()
        )
    assert 0.1 < with_arms / (6 * 32) < 0.7


def test_arms_may_share_a_function_or_not() -> None:
    # The same contexts under two arms: in some tables the worths move together, in others they do not.
    view = DeviceRng(0).normal(200, 60, 4).repeat(1, 2, 1)
    arm = torch.cat([torch.zeros(200, 60), torch.ones(200, 60)], 1).long()
    together = []
    for seed in range(4):
        first, second = prior.arm_values(view, arm, 2, rng=DeviceRng(seed), trend=0.35).chunk(2, 1)
        together += [
            float(torch.corrcoef(torch.stack(pair))[0, 1]) for pair in zip(first, second, strict=True)
        ]
    shared = sum(r > 0.95 for r in together) / len(together)
    assert 0.1 < shared < 0.9


def test_only_some_cells_of_some_tables_are_hidden() -> None:
    X, value = DeviceRng(0).normal(400, 50, 6), DeviceRng(1).normal(400, 50)
    hidden = torch.isnan(prior.hide_cells(X, value, rng=DeviceRng(2)))
    tables = hidden.flatten(1).any(1).float().mean()
    assert 0.05 < tables < 0.3
    assert hidden.float().mean((1, 2)).max() < 0.5


def test_tables_in_which_the_context_does_not_matter_occur() -> None:
    flat = []
    for seed in range(30):
        options = {"rng": DeviceRng(seed), "mixture": Mixture(), "trend": 0.35}
        _, _, reward, _ = prior.draw_rarities(4, 64, 5, queries=16, noise=False, **options)  # type: ignore[arg-type]
        flat += (reward.mean.amax(1) - reward.mean.amin(1) == 0).tolist()
    assert 0.1 < sum(flat) / len(flat) < 0.9


def test_rows_around_a_level_have_the_levels_of_their_arms_as_means() -> None:
    for seed in range(4):
        shown, level, reward, _ = prior.draw_rarities(
            8, 64, 5, queries=16, rng=DeviceRng(seed), mixture=Mixture(), trend=0.35, noise=True
        )
        assert torch.equal(reward.mean, level)
        assert all(len(row.unique()) <= 4 for row in level)
        assert shown.shape == (8, 64, 5)


def only(kind: str) -> Mixture:
    """A prior of one kind of table."""
    kinds = ("functions", "classes", "rare", "level", "dense", "faint")
    return Mixture(**{each: float(each == kind) for each in kinds})  # type: ignore[arg-type]


def linear_r2(X: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Share of the variance of y (B, n) that least squares on X (B, n, P) explains."""
    Z = torch.cat([X, torch.ones_like(X[..., :1])], -1).double()
    fitted = (Z @ torch.linalg.lstsq(Z, y.double()[..., None], driver="gelsd").solution)[..., 0]
    return 1 - (y - fitted).var(1) / y.double().var(1)


@pytest.mark.parametrize("seed", range(3))
def test_dense_tables_are_linear_with_about_as_much_noise_as_signal(seed: int) -> None:
    mixture = replace(only("dense"), chosen=0.0)
    tables = prior.draw_tables(64, 200, 2, queries=8, rng=DeviceRng(seed), mixture=mixture, groups=32)
    plain = ~torch.isnan(tables.X).flatten(1).any(1)
    r2 = linear_r2(tables.X[plain], tables.mean[plain])
    assert (r2 > 0.99).float().mean() > 0.6  # the others have codes or far values among their contexts
    ratio = (tables.y - tables.mean).std(1) / tables.mean.std(1)
    assert ratio.min() > 0.25
    assert ratio.max() < 3


@pytest.mark.parametrize("seed", range(3))
def test_faint_tables_explain_little_of_the_variance(seed: int) -> None:
    mixture = replace(only("faint"), chosen=0.0)
    tables = prior.draw_tables(64, 500, 4, queries=8, rng=DeviceRng(seed), mixture=mixture, groups=32)
    share = tables.mean.var(1) / tables.y.var(1).clamp(min=1e-9)
    assert share.median() < 0.1
    assert share.max() < 0.35
    assert (share > 0.005).float().mean() > 0.7


def test_share_of_rare_rewards_without_any_dependence_on_the_context() -> None:
    for flat in (0.0, 1.0):
        mixture = replace(only("rare"), flat=flat, chosen=0.0)
        tables = prior.draw_tables(64, 40, 1, queries=8, rng=DeviceRng(1), mixture=mixture, groups=32)
        constant = tables.mean.amax(1) - tables.mean.amin(1) < 1e-9
        assert bool(constant.all()) == bool(flat)
