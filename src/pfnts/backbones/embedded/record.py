"""How well each prediction has done so far, and what that makes of them together."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pfnts.backbones.embedded.rows import Rows

PATIENCE = 4.0
"""In a likelihood it would be 2: errors of rows that come one after the other are alike, and count half."""


class Record:
    """Errors of predictions in B histories, which grow together.

    What is known of a row are predictions and, after them, notes, which predict nothing. The record adds two
    predictions, an average of the others by their squared errors on the rows so far (prequential) and the
    mean of the rows so far, and two notes, the logarithms of that average's root mean squared error and of
    the number of rows.
    """

    def __init__(self) -> None:
        self._errors = Rows()
        self._own = Rows()
        self._targets = Rows()

    def fork(self) -> Record:
        """A copy that grows on its own."""
        copy = Record()
        copy._errors, copy._own = self._errors.fork(), self._own.fork()
        copy._targets = self._targets.fork()
        return copy

    def extend(self, first: Tensor, y: Tensor, *, notes: int) -> Tensor:
        """Add rows, each with what was said of it (B, m, K); give that with what it adds, (B, m, K + 4)."""
        said = first[..., :-notes]
        if not self._errors.length:  # sums over no rows
            self._errors.add(torch.zeros_like(said[:, :1]))
            self._own.add(torch.zeros_like(y[:, :1]))
            self._targets.add(torch.zeros_like(y[:, :1]))
        before, rows = self._errors.length - 1, y.shape[1]
        errors = _running(self._errors, (said - y[..., None]) ** 2)
        targets = _running(self._targets, y)
        size = torch.arange(before, before + rows, device=y.device).to(y.dtype)
        average = _average(said, errors, size[:, None])
        own = _running(self._own, (average - y) ** 2)
        return _completed(first, average, own, targets, size, notes)

    def complete(self, first: Tensor, sizes: Sequence[int], *, notes: int) -> Tensor:
        """Add to what is said of queries after the first rows (B, S, q, K), without learning from it."""
        said = first[..., :-notes]
        if not self._errors.length:
            return torch.cat([first, torch.zeros_like(first[..., :4])], -1)
        last = max(sizes) + 1
        errors = self._errors.upto(last)[:, sizes][:, :, None]  # (B, S, 1, K)
        own, targets = (x.upto(last)[:, sizes][:, :, None] for x in (self._own, self._targets))
        size = torch.tensor(sizes, dtype=first.dtype, device=first.device)[:, None]
        average = _average(said, errors, size[..., None])
        own, targets, size = (x.expand_as(average) for x in (own, targets, size))
        return _completed(first, average, own, targets, size, notes)


def _running(sums: Rows, new: Tensor) -> Tensor:
    """Continue sums by (B, m, ...); give them as they were before each of the new rows."""
    last = sums.upto(sums.length)[:, -1:]
    grown = last + new.cumsum(1)
    sums.add(grown)
    return torch.cat([last, grown[:, :-1]], 1)


def _average(said: Tensor, errors: Tensor, size: Tensor) -> Tensor:
    weight = torch.softmax(-size / PATIENCE * torch.log1p(errors), -1)
    return (weight * said).sum(-1)


def _completed(
    first: Tensor, average: Tensor, own: Tensor, targets: Tensor, size: Tensor, notes: int
) -> Tensor:
    mean = targets / size.clamp(min=1)
    error = ((own + 0.01) / (size + 1)).log() / 2
    rows = (torch.log1p(size) / 4).expand_as(average)
    said, noted = first[..., :-notes], first[..., -notes:]
    return torch.cat(
        [said, *(x[..., None] for x in (average, mean)), noted, *(x[..., None] for x in (error, rows))], -1
    )
