"""How well each prediction has done so far, and what that makes of them together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pfnts.backbones.network.features.rows import Rows, numbers

ADDED = 2
"""Predictions that the record adds."""
PATIENCE = 4.0
"""In a likelihood it would be 2: errors of rows that come one after the other are alike, and count half."""


class Record:
    """Errors of predictions in B histories, which grow together.

    What is known of a row are predictions and, after them, notes, which predict nothing. The record adds two
    predictions, an average of the others by their squared errors on the rows so far (prequential) and the
    mean of the rows so far. It adds notes: the logarithm of the root mean squared error of every prediction,
    of these two as well, and of the number of rows.
    """

    def __init__(self) -> None:
        self._errors = Rows()
        self._own_errors = Rows()  # of the two predictions that are added
        self._targets = Rows()

    def fork(self) -> Record:
        """A copy that grows on its own."""
        copy = Record()
        copy._errors, copy._own_errors = self._errors.fork(), self._own_errors.fork()
        copy._targets = self._targets.fork()
        return copy

    def extend(self, first: Tensor, y: Tensor, *, notes: int) -> Tensor:
        """Add rows, each with what was said of it (B, m, K), and give that with what the record adds."""
        said = first[..., :-notes]
        if not self._errors.length:  # sums over no rows
            self._errors.add(torch.zeros_like(said[:, :1]))
            self._own_errors.add(torch.zeros_like(said[:, :1, :ADDED]))
            self._targets.add(torch.zeros_like(y[:, :1]))
        before, rows = self._errors.length - 1, y.shape[1]
        errors = _running(self._errors, (said - y[..., None]) ** 2)
        targets = _running(self._targets, y)[..., None]
        size = torch.arange(before, before + rows, device=y.device).to(y.dtype)[:, None]
        added = _added(said, errors, targets, size)
        own_errors = _running(self._own_errors, (added - y[..., None]) ** 2)
        return _completed(first, added, torch.cat([errors, own_errors], -1), size, notes)

    def complete(self, first: Tensor, sizes: Sequence[int], *, notes: int) -> Tensor:
        """Add to what is said of queries after the first rows (B, S, q, K), without learning from it."""
        said = first[..., :-notes]
        if not self._errors.length:
            return torch.nn.functional.pad(first, (0, 2 * ADDED + said.shape[-1] + 1))
        errors, own_errors = (x.at(sizes)[:, :, None] for x in (self._errors, self._own_errors))
        targets = self._targets.at(sizes)[:, :, None, None]  # (B, S, 1, K), as the errors
        size = numbers(sizes, first)[:, None, None]
        added = _added(said, errors, targets, size)
        return _completed(first, added, torch.cat([errors, own_errors], -1), size, notes)


def _running(sums: Rows, new: Tensor) -> Tensor:
    """Continue sums by (B, m, ...); give them as they were before each of the new rows."""
    last = sums.upto(sums.length)[:, -1:]
    grown = last + new.cumsum(1)
    sums.add(grown)
    return torch.cat([last, grown[:, :-1]], 1)


def _added(said: Tensor, errors: Tensor, targets: Tensor, size: Tensor) -> Tensor:
    """The average of predictions (..., K) by their errors so far, and the mean so far, (..., 2)."""
    weight = torch.softmax(-size / PATIENCE * torch.log1p(errors), -1)
    average = (weight * said).sum(-1, keepdim=True)
    return torch.cat([average, (targets / size.clamp(min=1)).expand_as(average)], -1)


def _completed(first: Tensor, added: Tensor, errors: Tensor, size: Tensor, notes: int) -> Tensor:
    """Predictions and those added, then notes and those added; errors are sums over ``size`` rows."""
    errors = ((errors + 0.01) / (size + 1)).log() / 2
    errors = errors.expand(*added.shape[:-1], -1)
    rows = (torch.log1p(size) / 4).expand_as(added[..., :1])
    return torch.cat([first[..., :-notes], added, first[..., -notes:], errors, rows], -1)
