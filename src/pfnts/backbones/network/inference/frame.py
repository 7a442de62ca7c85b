"""How rows and targets are shown to the network: normalised, and with columns chosen, by the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfnts.backbones.base import Matrix, Vector
from pfnts.backbones.network.columns import ColumnReduction
from pfnts.backbones.network.normalisation import Normalisation

SMALLEST_BASIS, LARGEST_BASIS = 32, 2048
NARROW = 40
"""Number of columns that are always shown, and at most given to base predictions: their cost is cubic."""
CELLS = 16_384
"""More columns are shown if they times the rows of the basis are no more than this."""
WIDENED = 6.0
"""A mean's standard deviation is widened by this number over that of rows. After 3 to 64 rows that a policy
chose, the network's intervals of 95 % cover 89 of 100 means of held-out functions at contexts of the whole
population, and widened ones 95; where rows are drawn at random, 93 and 98."""
_LARGEST = np.finfo(np.float64).max


def basis_of(size: int) -> int:
    """Return the number of first rows whose frame a prefix of ``size`` rows has.

    All of them below 32; then the largest of 32, 64, ..., 2048 that is at most four fifths of the size.

    Examples
    --------
    >>> [basis_of(size) for size in (7, 31, 32, 79, 80, 159, 160, 2559, 2560, 100_000)]
    [7, 31, 32, 32, 64, 64, 128, 1024, 2048, 2048]
    """
    if size < SMALLEST_BASIS:
        return size
    basis = LARGEST_BASIS
    while basis > SMALLEST_BASIS and 5 * basis > 4 * size:
        basis //= 2
    return basis


@dataclass(frozen=True)
class Frame:
    """Centre, scale and choice of columns, by the first rows of a history."""

    basis: int
    """Number of these rows."""
    views: tuple[View, ...]
    """For the network, then for base predictions; the same if there is one."""

    @staticmethod
    def of(X: Matrix, y: Vector, *, keep: Sequence[int]) -> Frame:
        """Return the frame of rows (b, P) with targets (b,); columns in ``keep`` are never mixed."""
        view = View.of(X, y, width=max(NARROW, CELLS // len(y)), keep=keep)
        narrow = (View.of(X, y, width=NARROW, keep=keep),) if view.columns > NARROW else ()
        return Frame(len(y), (view, *narrow))

    @property
    def columns(self) -> int:
        """Number of columns that the network sees."""
        return self.views[0].columns

    @property
    def names_arm(self) -> Tensor:
        """Columns of base predictions that were to be kept, (P,) booleans."""
        return self.views[-1].kept

    def contexts(self, X: Matrix) -> tuple[Tensor, Tensor]:
        """Return contexts (m, P) for the network and for base predictions, in double precision."""
        shown = self.views[0].contexts(X)
        return shown, shown if len(self.views) == 1 else self.views[1].contexts(X)

    def targets(self, y: Vector) -> Tensor:
        """Normalise targets (m,), in double precision."""
        return self.views[0].normalisation.targets(torch.from_numpy(y))

    def rewards(self, normalised: Matrix) -> Matrix:
        """Return normalised means and quantiles in the units of the targets."""
        norm = self.views[0].normalisation
        return np.clip(normalised * float(norm.y_scale) + float(norm.y_centre), -_LARGEST, _LARGEST)

    def mean_sd(self, log_sd: Vector, sizes: NDArray[np.int64]) -> Vector:
        """Return standard deviations (q,) of means in the units of the targets, after ``sizes`` (q,) rows."""
        return np.exp(log_sd) * float(self.views[0].normalisation.y_scale) * (1 + WIDENED / sizes)


@dataclass(frozen=True)
class View:
    """A choice of columns, and their normalisation."""

    reduction: ColumnReduction
    normalisation: Normalisation
    kept: Tensor
    """(P',), columns that were to be kept."""

    @staticmethod
    def of(X: Matrix, y: Vector, *, width: int, keep: Sequence[int]) -> View:
        """Choose at most ``width`` columns, and take their statistics."""
        reduction = ColumnReduction.of(X, y, width=width, keep=keep)
        reduced = torch.from_numpy(reduction(X))
        kept = torch.zeros(reduced.shape[1], dtype=torch.bool)
        kept[reduction.places(keep)] = True
        return View(reduction, Normalisation.of(reduced, torch.from_numpy(y)), kept)

    @property
    def columns(self) -> int:
        """Number of columns chosen."""
        return len(self.kept)

    def contexts(self, X: Matrix) -> Tensor:
        """Choose and normalise the columns of contexts (m, P)."""
        return self.normalisation.contexts(torch.from_numpy(self.reduction(X)))
