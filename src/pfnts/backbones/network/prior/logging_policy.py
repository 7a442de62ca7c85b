"""Simulate logging by a policy; queries come from the whole population.

The rows of a history are those on which a policy expected much of the arm. A decision needs the mean reward
of every arm at the next context, wherever that is: so the network learns how little rows say about contexts
unlike them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pfnts.backbones.network.prior.device_rng import DeviceRng

CANDIDATES = 4
"""Rows drawn for each that a policy chooses."""
POPULATION = 0.75
"""Share of the histories whose queries come from the whole population; those of the others are chosen too."""


def choose_rows(appeal: Tensor, *, queries: int, rng: DeviceRng) -> Tensor:
    """Pick one of `CANDIDATES` for each row (B, n), by their appeal (B, CANDIDATES n).

    The candidates of row i are columns i, n + i, ... of ``appeal``. The policy, which sees it through noise,
    takes the most appealing ever more often, and otherwise the first.
    """
    batch, rows = len(appeal), appeal.shape[1] // CANDIDATES
    blur = rng.log_uniform(0.05, 1.0) * rng.normal(*appeal.shape)
    best = (appeal + blur).unflatten(1, (CANDIDATES, rows)).argmax(1)
    progress = torch.arange(rows, device=appeal.device) / rows
    eagerness = rng.uniform(batch, 1) ** 0.25
    begin = 1.5 * rng.uniform(batch, 1) - 1
    keen = rng.uniform(batch, rows) < eagerness * ((progress - begin) / (1 - begin)).clamp(0, 1) ** 0.5
    keen &= ~from_population(batch, rows, queries=queries, rng=rng)
    return torch.arange(rows, device=appeal.device) + rows * best * keen


def from_population(batch: int, rows: int, *, queries: int, rng: DeviceRng) -> Tensor:
    """Return which rows (B, n) come from the population: the last ``queries`` rows of most histories."""
    last = torch.arange(rows, device=rng.device) >= rows - queries
    return last & (rng.uniform(batch, 1) < POPULATION)
