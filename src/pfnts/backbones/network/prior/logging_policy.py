"""Which rows a policy would have tried an arm on; those who are asked about are anybody.

The rows of a history lie where a policy expected much of the arm. The contexts it is asked about do not: a
decision needs the worth of every arm for whoever comes next, so the network has to know what it may infer
about contexts unlike the rows, and how little.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pfnts.backbones.network.prior.device_rng import DeviceRng

CANDIDATES = 4
"""Rows drawn for each that is kept where a policy chooses."""
ANYBODY = 0.75
"""Share of the histories in which the rows asked about are anybody, not chosen like those before them."""


def choose_rows(appeal: Tensor, *, asked: int, rng: DeviceRng) -> Tensor:
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
    keen &= ~asked_about_anybody(batch, rows, asked=asked, rng=rng)
    return torch.arange(rows, device=appeal.device) + rows * best * keen


def asked_about_anybody(batch: int, rows: int, *, asked: int, rng: DeviceRng) -> Tensor:
    """Whether each row (B, n) is asked about and anybody: the last ``asked`` ones of most histories."""
    last = torch.arange(rows, device=rng.device) >= rows - asked
    return last & (rng.uniform(batch, 1) < ANYBODY)
