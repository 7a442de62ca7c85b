"""Rewards of a given mean: with noise, yes or no, shares, counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.functions import standardise


class Reward(Protocol):
    """Distribution of the rewards of a batch of tables."""

    @property
    def mean(self) -> Tensor:
        """Expected reward, (B, n)."""
        ...

    def sample(self, rng: DeviceRng) -> Tensor:
        """Draw rewards, (B, n)."""
        ...


def draw_reward(value: Tensor, X: Tensor, *, rng: DeviceRng) -> Reward:
    """Draw the kind of reward of a group, and the parameters of each table."""
    kind = rng.choice([0.51, 0.06, 0.32, 0.06, 0.05])
    if kind < 2:
        return Noisy.draw(value, X, heavy=kind == 1, rng=rng)
    if kind < 4:
        return Share.draw(value, trials=1 if kind == 2 else rng.integer(2, 20), rng=rng)
    return Count.draw(value, rng=rng)


def draw_faint_reward(value: Tensor, *, rng: DeviceRng) -> Reward:
    """Draw rewards of whose variance the worth explains one to ten per cent: amounts, or yes or no."""
    if rng.chance(0.6):
        return Noisy.draw_sized(value, least=3.0, most=10.0, rng=rng)
    rate = draw_rates(len(value), 1, rng=rng, rare=0.3).clamp(0.01, 0.99)
    share = torch.exp(-math.log(10) * (1 + rng.uniform(len(value), 1)))  # of the variance, 0.01 to 0.1
    effect = (
        share / (rate * (1 - rate))
    ).sqrt()  # of the log odds; a small one moves the chance by rate (1 - rate)
    return Share(torch.sigmoid(torch.logit(rate) + effect.clamp(max=1.5) * value), 1)


@dataclass(frozen=True)
class Noisy:
    """The worth itself, with noise from none to three times the signal, even or not, heavy tailed or not.

    In a third of the tables noise and signal are of one size.
    """

    mean: Tensor
    scale: Tensor
    heavy: bool

    @staticmethod
    def draw(value: Tensor, X: Tensor, *, heavy: bool, rng: DeviceRng) -> Noisy:
        """Draw the noise's size, (B, n)."""
        batch = len(value)
        size = torch.exp(rng.uniform(batch, 1) * math.log(300) - math.log(100))
        much = torch.exp(rng.uniform(batch, 1) * math.log(6) - math.log(3))  # as rewards mostly have it
        size = torch.where(rng.uniform(batch, 1) < 0.35, much, size) * (rng.uniform(batch, 1) > 0.04)
        driver = standardise(X[..., 0].clamp(-4, 4))
        strength = rng.normal(batch, 1) * 0.6 * (rng.uniform(batch, 1) < 0.25)
        return Noisy(value, size * torch.exp(strength * driver), heavy)

    @staticmethod
    def draw_sized(value: Tensor, *, least: float, most: float, rng: DeviceRng) -> Noisy:
        """Draw noise of one size in a table, between two limits, evenly on the log scale."""
        size = least * torch.exp(rng.uniform(len(value), 1) * math.log(most / least))
        return Noisy(value, size.expand_as(value), heavy=False)

    def sample(self, rng: DeviceRng) -> Tensor:
        """Draw rewards, (B, n)."""
        noise = rng.normal(*self.mean.shape)
        if self.heavy:  # a t distribution with three degrees of freedom
            noise = 0.7 * noise / ((rng.normal(3, *noise.shape) ** 2).mean(0).sqrt() + 0.05)
        return self.mean + self.scale * noise


@dataclass(frozen=True)
class Share:
    """The share of some trials that paid; with one trial, yes or no."""

    mean: Tensor
    trials: int

    @staticmethod
    def draw(value: Tensor, *, trials: int, rng: DeviceRng) -> Share:
        """Draw how the worth becomes a probability: steep or flat, common or rare."""
        steep = torch.exp(rng.uniform(len(value), 1) * 3.3 - 0.9)
        common = 1.2 * rng.normal(len(value), 1)
        return Share(torch.sigmoid(steep * value + steep.clamp(min=1) * common), trials)

    def sample(self, rng: DeviceRng) -> Tensor:
        """Draw rewards, (B, n)."""
        paid = rng.uniform(self.trials, *self.mean.shape) < self.mean
        return paid.float().mean(0)


@dataclass(frozen=True)
class Count:
    """Number of events."""

    mean: Tensor

    @staticmethod
    def draw(value: Tensor, *, rng: DeviceRng) -> Count:
        """Draw how the worth becomes a rate."""
        spread = rng.uniform(len(value), 1) * 1.2 + 0.1
        return Count(torch.exp((spread * value + rng.normal(len(value), 1) * 0.8).clamp(-6, 4)))

    def sample(self, rng: DeviceRng) -> Tensor:
        """Draw rewards, (B, n)."""
        return torch.poisson(self.mean, generator=rng.generator)


def draw_rates(*shape: int, rng: DeviceRng, rare: float) -> Tensor:
    """Draw chances of success: of any size, up to 20 %, or, in a share ``rare``, down to 0.1 %."""
    kind, size = rng.uniform(*shape), rng.uniform(*shape)
    few = torch.exp(math.log(0.001) + size * math.log(200))
    return torch.where(kind < rare, few, torch.where(kind < 0.4 + 0.6 * rare, 0.2 * size, size))
