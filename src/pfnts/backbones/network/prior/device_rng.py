"""Random numbers on a device, from one seed."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


class DeviceRng:
    """A generator on the device for arrays, and one on the host for choices that steer the program.

    Examples
    --------
    >>> DeviceRng(0).uniform(2, 3).shape
    torch.Size([2, 3])
    """

    def __init__(self, seed: int, *, device: str = "cpu") -> None:
        self.device = device
        self.generator = torch.Generator(device).manual_seed(seed)
        self._host = np.random.default_rng(seed)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers in [0, 1)."""
        return torch.rand(shape, device=self.device, generator=self.generator)

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(shape, device=self.device, generator=self.generator)

    def index(self, high: int, *shape: int) -> Tensor:
        """Integers in [0, high)."""
        return torch.randint(0, high, shape, device=self.device, generator=self.generator)

    def chance(self, probability: float) -> bool:
        """Decide on the host."""
        return bool(self._host.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """Choose an integer in [low, high] on the host."""
        return int(self._host.integers(low, high + 1))

    def log_uniform(self, low: float, high: float) -> float:
        """Choose a number on the host, evenly on the log scale."""
        return math.exp(self._host.uniform(math.log(low), math.log(high)))

    def choice(self, weights: list[float]) -> int:
        """Choose an index on the host with these probabilities."""
        return int(self._host.choice(len(weights), p=np.asarray(weights) / sum(weights)))
