"""How the network is trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pfnts.backbones.network.inference.frame import CELLS, NARROW


@dataclass(frozen=True)
class Recipe:
    """How to train."""

    seconds: float = 900.0
    """Time to train for; the learning rate falls to nothing at its end."""
    learning_rate: float = 4e-3
    adam_rate: float = 1.5e-3
    """Learning rate of what is not a matrix between layers."""
    warmup_steps: int = 200
    rows_per_step: int = 65_536
    cells_per_step: int = 800_000
    """Tables in a step are as many as fit both."""
    lengths: tuple[int, ...] = (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
    """Rows of a table; 0 stands for histories of fewer than 32 rows."""
    length_weights: tuple[float, ...] = (0.16, 0.14, 0.14, 0.15, 0.14, 0.13, 0.085, 0.045, 0.015)
    late_length_weights: tuple[float, ...] = (0.14, 0.11, 0.1, 0.12, 0.12, 0.14, 0.12, 0.1, 0.05)
    """The same for the last part of the training."""
    late: float = 0.75
    """Share of the time after which the last part begins."""
    few: tuple[int, ...] = (2, 6, 13, 24)
    """Rows of short histories."""
    widths: tuple[int, ...] = (2, 4, 6, 10, 14, 20, 40, 100)
    width_weights: tuple[float, ...] = (0.05, 0.17, 0.2, 0.2, 0.15, 0.12, 0.07, 0.04)
    steps_per_draw: int = 16
    """Steps that share a shape and one call of the prior, which is slow in small calls."""
    uses: int = 3
    """Steps in which a table is used, its columns told apart in another way each time."""
    shapes_at_once: int = 6
    """Shapes that take turns, so that steps in a row differ in theirs."""
    seed: int = 0

    def widths_of(self, rows: int) -> list[int]:
        """Columns that tables of so many rows have: long ones are never shown with many (`frame.CELLS`)."""
        return [p for p in self.widths if p <= NARROW or rows * p <= 2.5 * CELLS]

    def batch(self, rows: int, features: int) -> int:
        """Tables of a step: as many as fit, at least eight."""
        rows = rows or self.most_of_few
        fit = min(self.rows_per_step // rows, self.cells_per_step // (rows * features))
        return max(8, fit // 8 * 8)

    @property
    def most_of_few(self) -> int:
        """Rows of the longest of the short tables, with those that are asked for."""
        return max(self.few) + asked_of(0)

    def shapes(self) -> Iterator[Shape]:
        """Every shape that a minibatch may have, those of long tables first: they need the most memory."""
        for rows in reversed(self.lengths):
            for features in self.widths_of(rows):
                batch, asked = self.batch(rows, features), asked_of(rows)
                for n in [rows] if rows else [known + asked for known in self.few]:
                    yield Shape(batch, n, features, asked, together=rows == 0)


class Shape(NamedTuple):
    """The shape of a minibatch."""

    batch: int
    rows: int
    features: int
    asked: int
    """As many rows at the end are asked for,"""
    together: bool
    """each after the rows before the first of them, not after the rows before it."""


def asked_of(rows: int) -> int:
    """How many of the rows at the end are asked for."""
    return max(32, rows // 4)
