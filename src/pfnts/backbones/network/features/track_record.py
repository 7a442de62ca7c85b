"""Errors of each prediction on the rows before, and the average of predictions weighted by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pfnts.backbones.network.features.rows import Rows, numbers
from pfnts.backbones.network.features.table import FEATURES, PREDICTIONS

PATIENCE = 4.0
"""A likelihood would have 2: errors of successive rows are correlated, and count half."""
_OTHERS = [f.name for f in FEATURES if f.kind == "prediction" and f.module != "track_record"]


@dataclass(frozen=True)
class TrackRecord:
    """Running sums over the rows of B histories."""

    sums: Rows
    """(B, n + 1, PREDICTIONS + 1), of squared errors and of targets, before each row and after the last."""

    @classmethod
    def none(cls, X: Tensor) -> TrackRecord:
        """Sums over no rows of histories (B, any, P)."""
        return cls(Rows.of(X.new_zeros(len(X), 1, PREDICTIONS + 1)))

    def extend(self, found: Mapping[str, Tensor], y: Tensor) -> tuple[TrackRecord, dict[str, Tensor]]:
        """Add rows with features (B, m, width) and targets y (B, m); return the features of the record."""
        others = torch.cat([found[name] for name in _OTHERS], -1)
        rows, last = self.sums.length - 1, self.sums.at([self.sums.length - 1])
        target = y[..., None]
        before, after = _running(last[..., : others.shape[-1]], (others - target) ** 2)
        target_before, target_after = _running(last[..., -1:], target)
        size = torch.arange(rows, rows + y.shape[1], device=y.device).to(y.dtype)[:, None]
        own = _own(others, before, target_before, size)
        own_before, own_after = _running(last[..., others.shape[-1] : -1], (own - target) ** 2)
        sums = self.sums.append(torch.cat([after, own_after, target_after], -1))
        return TrackRecord(sums), _named(own, torch.cat([before, own_before], -1), size)

    def at(self, found: Mapping[str, Tensor], sizes: Sequence[int]) -> dict[str, Tensor]:
        """Return the features of the record for queries with features (B, S, q, width), by the first rows."""
        others = torch.cat([found[name] for name in _OTHERS], -1)
        sums, size = self.sums.at(sizes)[:, :, None], numbers(sizes, others)[:, None, None]
        return _named(_own(others, sums[..., : others.shape[-1]], sums[..., -1:], size), sums[..., :-1], size)


def _running(last: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """Continue sums (B, 1, K) by (B, m, K): before and after each of the new rows."""
    after = last + new.cumsum(1)
    return torch.cat([last, after[:, :-1]], 1), after


def _own(others: Tensor, errors: Tensor, targets: Tensor, size: Tensor) -> Tensor:
    """Return the average of predictions (..., K) by their errors, and the mean of the targets, (..., 2)."""
    weight = torch.softmax(-size / PATIENCE * torch.log1p(errors), -1)
    average = (weight * others).sum(-1, keepdim=True)
    return torch.cat([average, (targets / size.clamp(min=1)).expand_as(average)], -1)


def _named(own: Tensor, errors: Tensor, size: Tensor) -> dict[str, Tensor]:
    rms = ((errors + 0.01) / (size + 1)).log() / 2
    return {
        "average by errors": own[..., :1],
        "mean": own[..., 1:],
        "errors": rms.expand(*own.shape[:-1], -1),
        "rows": (torch.log1p(size) / 4).expand_as(own[..., :1]),
    }
