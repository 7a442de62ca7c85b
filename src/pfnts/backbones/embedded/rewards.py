"""What is seen of a worth: noisy rewards, yes or no, shares, counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pfnts.backbones.embedded.dice import Dice
from pfnts.backbones.embedded.functions import standardise


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
    kind = dice.choice([0.54, 0.06, 0.28, 0.06, 0.06])
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
        return Share(torch.sigmoid(steep * (value - dice.normal(len(value), 1) * 1.2)), trials)

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


def draw_rates(*shape: int, dice: Dice, rare: float) -> Tensor:
    """Draw chances of success: of any size, up to 20 %, or, in a share ``rare``, down to 0.1 %."""
    kind, size = dice.uniform(*shape), dice.uniform(*shape)
    few = torch.exp(math.log(0.001) + size * math.log(200))
    return torch.where(kind < rare, few, torch.where(kind < 0.4 + 0.6 * rare, 0.2 * size, size))
