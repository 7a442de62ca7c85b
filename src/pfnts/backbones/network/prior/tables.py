"""The prior the network is fitted to: random bandit histories, drawn in batches on the device.

A table is drawn in four steps: contexts (`inputs`), mean rewards (`functions`), the rows that a policy would
have chosen (`logging_policy`), rewards (`rewards`). `mixture` has the shares of the kinds of table; in one of
them the reward says whether a class was named correctly (`classes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from pfnts.backbones.network.prior.classes import draw_classes
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.functions import Function, draw_dense, draw_function, standardise
from pfnts.backbones.network.prior.inputs import draw_inputs
from pfnts.backbones.network.prior.logging_policy import CANDIDATES, choose_rows
from pfnts.backbones.network.prior.mixture import Mixture
from pfnts.backbones.network.prior.rewards import (
    Noisy,
    Reward,
    Share,
    draw_faint_reward,
    draw_rates,
    draw_reward,
)


@dataclass(frozen=True)
class Tables:
    """A batch of histories of one shape."""

    X: Tensor
    """(B, n, P) contexts as shown; NaN where missing."""
    y: Tensor
    """(B, n) rewards."""
    mean: Tensor
    """(B, n) what the reward was in expectation, known because we drew it."""
    again: Tensor
    """(draws, B, n) further rewards at the same contexts: more targets to learn from at no cost."""
    arms: Tensor
    """(B,) how many of the last columns name an arm."""

    @property
    def names_arm(self) -> Tensor:
        """(B, P), true for columns that name an arm."""
        features = self.X.shape[2]
        return torch.arange(features, device=self.X.device) >= features - self.arms[:, None]

    def take(self, tables: Tensor, *, first: int, last: int) -> Tables:
        """Keep some tables, and of each its first and last rows."""
        rows = self.y.shape[1]
        kept = torch.cat([torch.arange(first), torch.arange(rows - last, rows)]).to(tables.device)
        at = tables[:, None], kept
        return Tables(self.X[at], self.y[at], self.mean[at], self.again[:, at[0], at[1]], self.arms[tables])


def draw_tables(
    batch: int,
    rows: int,
    features: int,
    *,
    queries: int,
    rng: DeviceRng,
    mixture: Mixture | None = None,
    groups: int = 8,
    draws: int = 4,
) -> Tables:
    """Draw ``batch`` histories; each of ``groups`` equal parts shares its discrete choices.

    The last ``queries`` rows are to be predicted: most of them come from the population, not from a policy.
    """
    size = (batch // groups, rows, features)
    mixture = mixture or Mixture()
    parts = [draw_group(*size, queries=queries, rng=rng, mixture=mixture, draws=draws) for _ in range(groups)]
    return Tables(
        X=torch.cat([p.X for p in parts]),
        y=torch.cat([p.y for p in parts]),
        mean=torch.cat([p.mean for p in parts]),
        again=torch.cat([p.again for p in parts], 1),
        arms=torch.cat([p.arms for p in parts]),
    )


def draw_group(
    batch: int, rows: int, features: int, *, queries: int, rng: DeviceRng, mixture: Mixture, draws: int
) -> Tables:
    """Draw histories that share the family of functions, the number of arms and how they were collected."""
    kind, trend = rng.choice(mixture.kinds()), trend_of(rows)
    draw = partial(draw_values, batch, rows, features, queries=queries, rng=rng, mixture=mixture)
    reward: Reward
    if kind == 0:
        shown, value, arms = draw(trend=trend)
        reward = draw_reward(value, shown, rng=rng)
    elif kind == 1:
        shown, value, arms = draw_classes(batch, rows, features, queries=queries, rng=rng, trend=trend)
        reward = Share(value, 1)
    elif kind < 4:
        shown, value, reward, arms = draw_rarities(
            batch, rows, features, queries=queries, rng=rng, mixture=mixture, trend=trend, noise=kind == 3
        )
    elif kind == 4:
        shown, value, arms = draw(trend=1.0, function=draw_dense)
        reward = Noisy.draw_sized(value, least=0.33, most=2.0, rng=rng)
    else:
        shown, value, arms = draw(trend=trend)
        reward = draw_faint_reward(value, rng=rng)
    shown = hide_cells(shown, value, rng=rng)
    return Tables(
        X=shown,
        y=reward.sample(rng),
        mean=reward.mean,
        again=torch.stack([reward.sample(rng) for _ in range(draws)]),
        arms=torch.full((batch,), arms, device=shown.device),
    )


def trend_of(rows: int) -> float:
    """Share of functions that follow a straight line first of all: larger where rows are few.

    A few rows tell little of anything else, so a mistaken belief in a trend costs little and a mistaken doubt
    much.

    Examples
    --------
    >>> trend_of(64), trend_of(256)
    (0.65, 0.5)
    """
    return 0.65 - 0.075 * min(4.0, max(0.0, math.log2(rows / 64)))


def draw_values(
    batch: int,
    rows: int,
    features: int,
    *,
    queries: int,
    rng: DeviceRng,
    mixture: Mixture,
    trend: float,
    function: Function = draw_function,
) -> tuple[Tensor, Tensor, int]:
    """Draw contexts (B, n, P), what they are worth, (B, n), and how many of the last columns name an arm."""
    collected = rng.chance(mixture.chosen)
    candidates = CANDIDATES * rows if collected else rows
    arms = rng.integer(2, min(8, features - 1)) if features >= 3 and rng.chance(0.35) else 0
    if arms:
        # A policy chooses among the arms for a context; alone, an arm is tried on contexts that suit it.
        shown, view = draw_inputs(batch, rows, features - arms, rng=rng, mixture=mixture)
        shown, view = (x.repeat(1, candidates // rows, 1) for x in (shown, view))
        arm = draw_arms(batch, candidates, arms, rng=rng)  # (B, m)
        value = standardise(arm_values(view, arm, arms, rng=rng, trend=trend, function=function))
        shown = torch.cat([shown, torch.nn.functional.one_hot(arm, arms).to(shown.dtype)], -1)
        appeal = value
    else:
        shown, view = draw_inputs(batch, candidates, features, rng=rng, mixture=mixture)
        value = appeal = standardise(function(view, rng=rng, trend=trend))
        if collected and rng.chance(0.7):
            other = standardise(function(view, rng=rng, trend=trend))
            appeal = value - torch.exp(0.7 * rng.normal(batch, 1)) * other
    value = value.clamp(-6, 6)
    if collected:
        chosen = choose_rows(standardise(appeal), queries=queries, rng=rng)
        value = value.gather(1, chosen)
        shown = shown.gather(1, chosen[..., None].expand(-1, -1, features))
    return shown, value, arms


def draw_rarities(
    batch: int,
    rows: int,
    features: int,
    *,
    queries: int,
    rng: DeviceRng,
    mixture: Mixture,
    noise: bool,
    trend: float,
) -> tuple[Tensor, Tensor, Reward, int]:
    """Draw contexts, worth, reward and number of arms where there is little to be learned.

    Rare yes or no, whose chance follows the context, or the arm alone, or nothing. Or noise around a level.
    """
    if not noise and not rng.chance(mixture.flat):
        shown, value, arms = draw_values(
            batch, rows, features, queries=queries, rng=rng, mixture=mixture, trend=trend
        )
        rate = draw_rates(batch, 1, rng=rng, rare=0.5).clamp(1e-4, 1 - 1e-4)
        effect = 1.5 * rng.uniform(batch, 1) ** 2  # mostly weak
        return shown, value, Share(torch.sigmoid(torch.logit(rate) + effect * value), 1), arms
    arms = rng.integer(2, min(8, features - 1)) if features >= 3 and rng.chance(0.4) else 0
    shown, _ = draw_inputs(batch, rows, features - arms, rng=rng, mixture=mixture)
    arm = draw_arms(batch, rows, max(arms, 1), rng=rng)
    if arms:
        shown = torch.cat([shown, torch.nn.functional.one_hot(arm, arms).to(shown.dtype)], -1)
    if noise:
        level = rng.normal(batch, max(arms, 1)).gather(1, arm)
        return shown, level, Noisy.draw(level, shown, heavy=False, rng=rng), arms
    alike = rng.uniform(batch, 1) < 0.5
    rate = draw_rates(batch, max(arms, 1), rng=rng, rare=0.05)
    near = rate[:, :1] * torch.exp(0.4 * rng.normal(batch, max(arms, 1)))
    rate = torch.where(alike, near, rate).clamp(0, 1).gather(1, arm)
    return shown, rate, Share(rate, 1), arms


def draw_arms(batch: int, rows: int, arms: int, *, rng: DeviceRng) -> Tensor:
    """Draw which arm each row tried, (B, m), with unequal shares."""
    weight = torch.exp(rng.normal(batch, arms) * 1.2)
    return torch.multinomial(weight, rows, replacement=True, generator=rng.generator)


def arm_values(
    view: Tensor, arm: Tensor, arms: int, *, rng: DeviceRng, trend: float, function: Function = draw_function
) -> Tensor:
    """Worth of each row under its arm: a shared function, functions of their own, or something between.

    An arm's own function is the group's function with the columns in another order.
    """
    batch, _, features = view.shape
    order = rng.uniform(batch, arms, features).argsort(-1)
    own_order = order.gather(1, arm[..., None].expand(-1, -1, features))
    own = standardise(function(view.gather(2, own_order), rng=rng, trend=trend))
    shared = standardise(function(view, rng=rng, trend=trend))
    share = rng.uniform(batch, 1)
    share = torch.where(rng.uniform(batch, 1) < 0.5, share.round(), share)
    offset = rng.normal(batch, arms).gather(1, arm) * torch.exp(rng.normal(batch, 1) * 0.7 - 0.7)
    return share * shared + (1 - share) * own + offset


def hide_cells(X: Tensor, value: Tensor, *, rng: DeviceRng) -> Tensor:
    """Hide some cells in some tables, sometimes more often where the reward is high."""
    batch, _, features = X.shape
    rate = rng.uniform(batch, 1, features) * 0.35 * (rng.uniform(batch, 1, features) < 0.4)
    rate = rate * (rng.uniform(batch, 1, 1) < 0.15)
    informative = (rng.uniform(batch, 1, 1) < 0.3) * value[..., None].clamp(-1, 1) * 0.8
    return torch.where(rng.uniform(*X.shape) < rate * (1 + informative), torch.nan, X)
