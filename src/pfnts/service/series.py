"""Counts over time in a bounded number of steps."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

MOST_STEPS = 120
"""Steps that are kept; when there are more, each two become one."""
SHORTEST = 1.0
"""Seconds of a step in the beginning."""


@dataclass
class Cell:
    """What happened to one arm in one step."""

    decisions: int = 0
    rewards: int = 0
    total: float = 0.0
    squares: float = 0.0
    entropy: float = 0.0

    def add(self, other: Cell) -> None:
        """Take in another cell."""
        self.decisions += other.decisions
        self.rewards += other.rewards
        self.total += other.total
        self.squares += other.squares
        self.entropy += other.entropy


class Series:
    """Cells by step and arm; the steps grow longer as time goes on.

    Examples
    --------
    >>> series = Series()
    >>> series.at(0.0, "a").decisions += 1
    >>> series.at(10_000.0, "a").decisions += 1
    >>> series.width, [step["time"] for step in series.steps()]
    (128.0, [0.0, 9984.0])
    """

    def __init__(self) -> None:
        self.width = SHORTEST
        """Seconds of a step."""
        self._cells: dict[int, dict[str, Cell]] = {}

    def at(self, time: float, arm: str) -> Cell:
        """The cell of a time and an arm."""
        while self._cells and abs(int(time // self.width) - min(self._cells)) >= MOST_STEPS:
            self.width *= 2
            merged: dict[int, dict[str, Cell]] = {}
            for step, cells in self._cells.items():
                into = merged.setdefault(step // 2, defaultdict(Cell))
                for name, cell in cells.items():
                    into[name].add(cell)
            self._cells = merged
        return self._cells.setdefault(int(time // self.width), defaultdict(Cell))[arm]

    def steps(self) -> list[dict[str, Any]]:
        """All steps in order, plain JSON values."""
        return [
            {"time": step * self.width, "arms": {arm: vars(cell) for arm, cell in self._cells[step].items()}}
            for step in sorted(self._cells)
        ]
