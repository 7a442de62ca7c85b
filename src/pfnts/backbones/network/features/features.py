"""Features of each row from the rows before it: predictions of simple models, and how far to trust them.

The network combines them instead of learning them by heart. With few rows and a nearly linear reward nothing
is better than ridge regression; on a smooth one, little is better than kernel ridge regression; where rows
are close together, little is better than the nearest; trees find jumps. `table` lists all features. Models
are refitted at sizes that grow geometrically, so n rows take about log n fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from pfnts.backbones.network.features.kernels import Kernels, equal_weights, wave_weights
from pfnts.backbones.network.features.neighbours import Neighbours
from pfnts.backbones.network.features.refits import four_per_doubling, grouped, latest
from pfnts.backbones.network.features.ridge import Ridge
from pfnts.backbones.network.features.rows import Rows, joined, stacked
from pfnts.backbones.network.features.table import arranged
from pfnts.backbones.network.features.track_record import TrackRecord
from pfnts.backbones.network.features.trees import Trees

UNLIKELY = -10.0
"""Least log probability of a regression."""
LIMIT = 10.0
"""Features are clipped at this value; for predictions it is in standard deviations of the targets."""


@dataclass(frozen=True)
class Features:
    """Rows of B histories of one shape, and the models fitted to them.

    Values are frozen and share buffers and fits, so any thread may extend or read any of them.

    Examples
    --------
    >>> X = torch.randn(1, 50, 3, dtype=torch.float64)
    >>> features, of_rows = Features.none(X).extend(X, X[..., 0])
    >>> of_rows.shape, features.at(X[:, :2], [30, 50]).shape
    (torch.Size([1, 50, 62]), torch.Size([1, 4, 62]))
    """

    names_arm: Tensor | None
    """(B or 1, P), which columns name an arm (one-hot)."""
    X: Rows
    y: Rows
    lines: Ridge
    waves: Ridge
    kernels: Kernels
    trees: Trees
    neighbours: Neighbours
    record: TrackRecord

    @classmethod
    def none(cls, X: Tensor, *, names_arm: Tensor | None = None) -> Features:
        """Hold no rows; X (B, any, P) has the batch, columns, dtype and device of later rows."""
        return cls(
            names_arm,
            Rows.of(X[:, :0]),
            Rows.of(X[:, :0, 0]),
            Ridge.lines(X),
            Ridge.waves(X),
            Kernels.none(X),
            Trees.none(),
            Neighbours.none(),
            TrackRecord.none(X),
        )

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.X.length

    @torch.no_grad()
    def extend(self, X: Tensor, y: Tensor) -> tuple[Features, Tensor]:
        """Append rows X (B, m, P), y (B, m); return also the features of each, (B, m, BASE_PREDICTIONS)."""
        before, after = self.rows, self.rows + X.shape[1]
        new_X = torch.nan_to_num(X)
        rows, targets = self.X.append(new_X), self.y.append(y)
        all_X, all_y = rows.first(after), targets.first(after)
        lines, waves = self.lines.extend(all_X, all_y), self.waves.extend(all_X, all_y)

        def weights(first: Tensor) -> Tensor:
            of_waves = latest(waves.fits, first.shape[1]).coefficients[..., 1]
            return torch.cat([equal_weights(first), wave_weights(first, of_waves, self.names_arm)])

        kernels = self.kernels.extend(all_X, all_y, weights)
        # Rows between two refits have the same coefficients.
        cuts = [before, *(s for s in four_per_doubling(after) if before < s < after), after]
        parts: list[dict[str, Tensor]] = []
        for group in grouped(cuts, len(X)):
            whole = regressions(lines, waves, kernels, all_X[:, group[0] : group[-1]], group[:-1])
            for i, (begin, end) in enumerate(pairwise(group)):
                part = slice(begin - group[0], end - group[0])
                parts.append({name: values[:, i, part] for name, values in whole.items()})
        found = {name: joined([each[name] for each in parts]) for name in parts[0]}
        trees, found["trees"] = self.trees.extend(all_X, all_y)
        neighbours, of_neighbours = self.neighbours.extend(all_X, all_y)
        record, of_record = self.record.extend(found | of_neighbours, y)
        features = Features(self.names_arm, rows, targets, lines, waves, kernels, trees, neighbours, record)
        return features, _clipped(arranged(found | of_neighbours | of_record))

    @torch.no_grad()
    def at(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return the features of queries X (B, q, P) after the first rows, (B, S q, K), size by size."""
        X = torch.nan_to_num(X)
        found = regressions(self.lines, self.waves, self.kernels, X, sizes)
        found["trees"] = self.trees.at(X, sizes)
        found |= self.neighbours.at(X, sizes, self.y.first(self.rows))
        return _clipped(arranged(found | self.record.at(found, sizes))).flatten(1, 2)


def regressions(
    lines: Ridge, waves: Ridge, kernels: Kernels, X: Tensor, sizes: Sequence[int]
) -> dict[str, Tensor]:
    """Return features of queries X (B, q, P) from regressions after some sizes, (B, S, q, width)."""
    each = [lines.at(X, sizes), waves.at(X, sizes), *kernels.at(X, sizes).chunk(2)]
    predicted = _clipped(torch.cat(each, -1))  # (B, S, q, 12)
    kernel_fits = [latest(kernels.fits, size) for size in sizes]
    evidence = torch.cat(
        [
            *(stacked([latest(r.fits, fit.size).evidence for fit in kernel_fits]) for r in (lines, waves)),
            *stacked([fit.evidence for fit in kernel_fits]).chunk(2),
        ],
        -1,
    )[:, :, None]
    log = torch.log_softmax(evidence.nan_to_num(-1e9), -1)
    names = ("lines", "waves", "kernel", "weighted kernel")
    return dict(zip(names, predicted.chunk(4, -1), strict=True)) | {
        "average by evidence": (predicted * log.exp()).sum(-1, keepdim=True),
        "leverage": lines.leverage(X, sizes)[..., None],
        "probabilities": (log.clamp(min=UNLIKELY) / 4).expand_as(predicted),
    }


def features_of(X: Tensor, y: Tensor, *, asked: int = 1, names_arm: Tensor | None = None) -> Tensor:
    """Return the features of every row of histories X (B, n, P), y (B, n), from the rows before it.

    The last ``asked`` rows are queries after the rows before the first of them.
    """
    first = X.shape[1] - asked
    if not first:
        raise ValueError(f"asked must be less than the number of rows, {X.shape[1]}, got {asked}")
    features, before = Features.none(X, names_arm=names_arm).extend(X[:, :first], y[:, :first])
    return torch.cat([before, features.at(X[:, first:], [first])], 1).float()


def _clipped(x: Tensor) -> Tensor:
    return x.nan_to_num(0.0).clamp(-LIMIT, LIMIT)
