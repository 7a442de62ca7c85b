"""The prior the network is fitted to: random bandit histories, drawn in batches on the device.

A table is drawn in four steps: where its contexts lie (`inputs`), what they are worth (`functions`), which
of them a learner would have met (`choose_rows`), and what is then seen as reward (`draw_reward`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pfnts.backbones.embedded.dice import Dice
from pfnts.backbones.embedded.functions import draw_function, standardise


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


def draw_tables(
    batch: int, rows: int, features: int, *, dice: Dice, groups: int = 8, draws: int = 4
) -> Tables:
    """Draw ``batch`` histories; each of ``groups`` equal parts shares its discrete choices."""
    parts = [draw_group(batch // groups, rows, features, dice=dice, draws=draws) for _ in range(groups)]
    return Tables(
        X=torch.cat([p.X for p in parts]),
        y=torch.cat([p.y for p in parts]),
        mean=torch.cat([p.mean for p in parts]),
        again=torch.cat([p.again for p in parts], 1),
    )


def draw_group(batch: int, rows: int, features: int, *, dice: Dice, draws: int) -> Tables:
    """Draw histories that share the family of functions, the number of arms and how they were collected."""
    adaptive = dice.chance(0.3)
    candidates = 2 * rows if adaptive else rows
    arms = dice.integer(2, min(8, features - 1)) if features >= 3 and dice.chance(0.35) else 0
    shown, view = draw_inputs(batch, candidates, features - arms, dice=dice)
    if arms:
        arm = draw_arms(batch, candidates, arms, dice=dice)  # (B, m)
        one_hot = torch.nn.functional.one_hot(arm, arms).to(shown.dtype)
        value = arm_values(view, arm, arms, dice=dice)
        shown = torch.cat([shown, one_hot], -1)
    else:
        value = draw_function(view, dice=dice)
    value = standardise(value).clamp(-6, 6)
    if adaptive:
        chosen = choose_rows(value, dice=dice)
        value = value.gather(1, chosen)
        shown = shown.gather(1, chosen[..., None].expand(-1, -1, features))
    reward = draw_reward(value, shown, dice=dice)
    shown = hide_cells(shown, value, dice=dice)
    return Tables(
        X=shown,
        y=reward.sample(dice),
        mean=reward.mean,
        again=torch.stack([reward.sample(dice) for _ in range(draws)]),
    )


def draw_inputs(batch: int, rows: int, features: int, *, dice: Dice) -> tuple[Tensor, Tensor]:
    """Draw contexts as shown and as the reward function sees them, both (B, m, P).

    The two differ where a column is a categorical code: the number shown says nothing of its worth.
    """
    normal = dice.normal(batch, rows, features)
    uniform = (dice.uniform(batch, rows, features) * 2 - 1) * math.sqrt(3)
    mixing = dice.normal(batch, features, features) / math.sqrt(features)
    share = dice.uniform(batch, 1, 1)
    correlated = normal * share + (1 - share) * (normal @ mixing)
    centre = dice.normal(batch, 6, features) * 1.5
    cluster = dice.index(6, batch, rows)
    clustered = 0.6 * normal + centre.gather(1, cluster[..., None].expand(-1, -1, features))
    kind = dice.uniform(batch, 1, 1)
    X = torch.where(kind < 0.45, uniform, torch.where(kind < 0.7, normal, correlated))
    X = torch.where(kind > 0.93, clustered, X)

    mixed = dice.uniform(batch, 1, 1) < 0.4  # tables with columns that are not continuous
    role = dice.uniform(batch, 1, features)
    binary = (dice.normal(batch, 1, features) * 0.8 < X).float()
    rounded = torch.round(X * torch.exp(dice.uniform(batch, 1, features) * 1.5))
    skewed = torch.exp(0.8 * X)
    X = torch.where(mixed & (role < 0.3), binary, X)
    X = torch.where(mixed & (role > 0.3) & (role < 0.45), rounded, X)
    X = torch.where(mixed & (role > 0.92), skewed, X)

    levels = dice.integer(3, 12)
    code = ((torch.erf(X / math.sqrt(2)) + 1) / 2 * levels).long().clamp(0, levels - 1)
    worth = dice.normal(batch, features, levels)
    worth_of = worth[:, None].expand(-1, rows, -1, -1).gather(3, code[..., None])[..., 0]
    categorical = mixed & (role > 0.45) & (role < 0.6)
    view = torch.where(categorical, worth_of, X)
    return torch.where(categorical, code.float(), X), standardise(view)


def draw_arms(batch: int, rows: int, arms: int, *, dice: Dice) -> Tensor:
    """Draw which arm each row tried, (B, m), with unequal shares."""
    weight = torch.exp(dice.normal(batch, arms) * 1.2)
    return torch.multinomial(weight, rows, replacement=True, generator=dice.generator)


def arm_values(view: Tensor, arm: Tensor, arms: int, *, dice: Dice) -> Tensor:
    """Worth of each row under its arm: a shared function, functions of their own, or something between.

    An arm's own function is the group's function with the columns in another order.
    """
    batch, _, features = view.shape
    order = dice.uniform(batch, arms, features).argsort(-1)
    own_order = order.gather(1, arm[..., None].expand(-1, -1, features))
    own = standardise(draw_function(view.gather(2, own_order), dice=dice))
    shared = standardise(draw_function(view, dice=dice))
    share = dice.uniform(batch, 1)
    share = torch.where(dice.uniform(batch, 1) < 0.5, share.round(), share)
    offset = dice.normal(batch, arms).gather(1, arm) * torch.exp(dice.normal(batch, 1) * 0.7 - 0.7)
    return share * shared + (1 - share) * own + offset


def choose_rows(value: Tensor, *, dice: Dice) -> Tensor:
    """Pick one of two candidates (B, 2n) for each row: the better one ever more often, as a learner would."""
    batch, candidates = value.shape
    rows = candidates // 2
    first, second = value[:, :rows], value[:, rows:]
    progress = torch.arange(rows, device=value.device) / rows
    eagerness = dice.uniform(batch, 1)
    begin = dice.uniform(batch, 1) * 0.5
    keen = dice.uniform(batch, rows) < eagerness * ((progress - begin) / (1 - begin)).clamp(0, 1) ** 0.5
    index = torch.arange(rows, device=value.device).expand(batch, -1)
    return torch.where(keen & (second > first), index + rows, index)


def hide_cells(X: Tensor, value: Tensor, *, dice: Dice) -> Tensor:
    """Hide some cells in some tables, sometimes more often where the reward is high."""
    batch, _, features = X.shape
    rate = dice.uniform(batch, 1, features) * 0.35 * (dice.uniform(batch, 1, features) < 0.4)
    rate = rate * (dice.uniform(batch, 1, 1) < 0.15)
    informative = (dice.uniform(batch, 1, 1) < 0.3) * value[..., None].clamp(-1, 1) * 0.8
    return torch.where(dice.uniform(*X.shape) < rate * (1 + informative), torch.nan, X)


class Reward(Protocol):
    """What is seen of a worth."""

    @property
    def mean(self) -> Tensor:
        """Expected reward, (B, n)."""
        ...

    def sample(self, dice: Dice) -> Tensor:
        """Draw rewards, (B, n)."""
        ...


def draw_reward(value: Tensor, X: Tensor, *, dice: Dice) -> Reward:
    """Draw the kind of reward of a group, and the parameters of each table."""
    kind = dice.choice([0.5, 0.06, 0.31, 0.07, 0.06])
    if kind < 2:
        return Noisy.draw(value, X, heavy=kind == 1, dice=dice)
    if kind < 4:
        return Share.draw(value, trials=1 if kind == 2 else dice.integer(2, 20), dice=dice)
    return Count.draw(value, dice=dice)


@dataclass(frozen=True)
class Noisy:
    """The worth itself, with noise from none to three times the signal, even or not, heavy tailed or not."""

    mean: Tensor
    scale: Tensor
    heavy: bool

    @staticmethod
    def draw(value: Tensor, X: Tensor, *, heavy: bool, dice: Dice) -> Noisy:
        """Draw the noise's size, (B, n)."""
        batch = len(value)
        size = torch.exp(dice.uniform(batch, 1) * math.log(300) - math.log(100)) * (
            dice.uniform(batch, 1) > 0.04
        )
        driver = standardise(X[..., 0].clamp(-4, 4))
        strength = dice.normal(batch, 1) * 0.6 * (dice.uniform(batch, 1) < 0.25)
        return Noisy(value, size * torch.exp(strength * driver), heavy)

    def sample(self, dice: Dice) -> Tensor:
        """Draw rewards, (B, n)."""
        noise = dice.normal(*self.mean.shape)
        if self.heavy:  # a t distribution with three degrees of freedom
            noise = 0.7 * noise / ((dice.normal(3, *noise.shape) ** 2).mean(0).sqrt() + 0.05)
        return self.mean + self.scale * noise


@dataclass(frozen=True)
class Share:
    """The share of some trials that paid; with one trial, yes or no."""

    mean: Tensor
    trials: int

    @staticmethod
    def draw(value: Tensor, *, trials: int, dice: Dice) -> Share:
        """Draw how the worth becomes a probability: steep or flat, common or rare."""
        steep = torch.exp(dice.uniform(len(value), 1) * 3.5)
        return Share(
            torch.sigmoid(steep * (value - dice.normal(len(value), 1) * 1.2)).clamp(1e-3, 1 - 1e-3), trials
        )

    def sample(self, dice: Dice) -> Tensor:
        """Draw rewards, (B, n)."""
        paid = dice.uniform(self.trials, *self.mean.shape) < self.mean
        return paid.float().mean(0)


@dataclass(frozen=True)
class Count:
    """How often something happened."""

    mean: Tensor

    @staticmethod
    def draw(value: Tensor, *, dice: Dice) -> Count:
        """Draw how the worth becomes a rate."""
        spread = dice.uniform(len(value), 1) * 1.2 + 0.1
        return Count(torch.exp((spread * value + dice.normal(len(value), 1) * 0.8).clamp(-6, 4)))

    def sample(self, dice: Dice) -> Tensor:
        """Draw rewards, (B, n)."""
        return torch.poisson(self.mean, generator=dice.generator)
