"""What the network said about queries after a prefix of a history, and what a history remembers of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pfnts.backbones.base import Matrix, Vector
from pfnts.backbones.embedded.model import quantile_levels

REMEMBERED = 4
"""Answers of a history that can be given again."""
_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class Said:
    """What the network says about q queries after one prefix."""

    mean: Vector
    """(q,), in the units of the targets"""
    mean_sd: Vector
    """(q,), likewise"""
    shown: Tensor
    """(q, Q), quantiles as targets are shown to the network; not yet sorted"""
    scale: float
    centre: float

    @staticmethod
    def of(mean: Tensor, shown: Tensor, log_sd: Tensor, *, scale: float, centre: float) -> Said:
        """Take what the network put out, on the CPU."""
        sd = log_sd.double().exp().numpy() * scale
        return Said(_in_units(mean, scale, centre), sd, shown, scale, centre)

    def quantiles(self, levels: Vector) -> Matrix:
        """Quantiles at some levels, (len(levels), q)."""
        if not len(levels):
            return np.empty((0, len(self.mean)))
        known = np.sort(_in_units(self.shown, self.scale, self.centre))  # (q, Q)
        at = quantile_levels(known.shape[1]).numpy()
        return np.array([np.interp(levels, at, row) for row in known]).T


class Answers:
    """The last answers about a history, by what was asked.

    Contexts are asked about when an arm is to be chosen, and again when the reward is there and the forecast
    of it is scored. Where the last bit is given up, the first answer serves both times.
    """

    def __init__(self) -> None:
        self._known: deque[tuple[int, dict[bytes, int], Said]] = deque(maxlen=REMEMBERED)

    def add(self, size: int, x: Matrix, said: Said) -> None:
        """Remember what was said about queries (q, P) after ``size`` rows."""
        self._known.append((size, {row.tobytes(): i for i, row in enumerate(x)}, said))

    def find(self, size: int, x: Matrix) -> Said | None:
        """What was said about queries (q, P) after ``size`` rows; None if one of them is new."""
        known = [(places, said) for at, places, said in reversed(self._known) if at == size]
        found: list[tuple[Said, int]] = []
        for row in x if known else ():
            key = row.tobytes()
            place = next(((said, places[key]) for places, said in known if key in places), None)
            if place is None:
                return None
            found.append(place)
        return _gathered(found) if found else None


def _gathered(found: Sequence[tuple[Said, int]]) -> Said:
    """Some of what was said after one prefix."""
    first, _ = found[0]
    return Said(
        np.array([said.mean[i] for said, i in found]),
        np.array([said.mean_sd[i] for said, i in found]),
        torch.stack([said.shown[i] for said, i in found]),
        first.scale,
        first.centre,
    )


def _in_units(shown: Tensor, scale: float, centre: float) -> Matrix:
    """Numbers as the network has them, in the units of the targets."""
    found: Matrix = np.clip(shown.double().numpy() * scale + centre, -_LARGEST, _LARGEST)
    return found
