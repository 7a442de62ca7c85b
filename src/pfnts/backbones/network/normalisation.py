"""Centre and scale of a prefix, by which a whole history is shown to the network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

CLIP_X = 8.0
CLIP_Y = 30.0


@dataclass(frozen=True)
class Normalisation:
    """Centre and scale of every column, and of the targets, over some first rows."""

    x_centre: Tensor
    x_scale: Tensor
    """(..., 1, P)"""
    y_centre: Tensor
    y_scale: Tensor
    """(..., 1)"""

    @staticmethod
    def of(X: Tensor, y: Tensor) -> Normalisation:
        """Take the statistics of rows X (..., k, P), NaN where missing, and y (..., k)."""
        x_centre, x_scale = robust_moments(X, dim=-2)
        y_centre, y_scale = robust_moments(y, dim=-1)
        # Nothing but zeros and nothing but ones must not look alike: what is unseen lies on the other side.
        constant = y.amax(-1, keepdim=True) == y.amin(-1, keepdim=True)
        y_centre = torch.where(constant, 0.0, y_centre)
        return Normalisation(x_centre, x_scale, y_centre, y_scale)

    def contexts(self, X: Tensor) -> Tensor:
        """Normalise contexts (..., m, P)."""
        return ((X - self.x_centre) / self.x_scale).clamp(-CLIP_X, CLIP_X)

    def targets(self, y: Tensor) -> Tensor:
        """Normalise targets (..., m)."""
        return ((y - self.y_centre) / self.y_scale).clamp(-CLIP_Y, CLIP_Y)


def robust_moments(x: Tensor, *, dim: int, limit: float = 12.0, rounds: int = 6) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation over ``dim`` of what is not NaN, single far outliers pulled in.

    Only a value more than ``limit`` deviations away is pulled in, which takes over ``limit ** 2`` values:
    rare rewards of 1 among zeros keep their weight. A constant has its own size as scale, or 1 if it is 0.
    """
    present = ~torch.isnan(x)
    count = present.sum(dim, keepdim=True).clamp(min=1)
    value = torch.where(present, x, 0.0)
    largest = value.abs().amax(dim, keepdim=True)
    unit = torch.where(largest > 0, largest, 1.0)
    value = value / unit  # so that squares are finite
    centre = value.sum(dim, keepdim=True) / count
    spread = torch.zeros_like(centre)
    for _ in range(rounds):
        deviation = torch.where(present, value - centre, 0.0)
        spread = ((deviation**2).sum(dim, keepdim=True) / count).sqrt()
        before = value
        value = torch.where(present, centre + torch.clamp(deviation, -limit * spread, limit * spread), 0.0)
        centre = value.sum(dim, keepdim=True) / count
        if x.device.type == "cpu" and torch.equal(value, before):  # elsewhere it takes longer to find out
            break  # nothing would change any more
    size = centre.abs()
    constant = spread <= 8 * torch.finfo(x.dtype).eps * size
    scale = torch.where(constant, torch.where(size > 0, size, 1 / unit), spread)
    return centre * unit, (scale * unit).clamp(min=torch.finfo(x.dtype).tiny)
