"""Shares of the kinds of table in the prior."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mixture:
    """Relative frequency of each kind of table, and what differs within a kind."""

    functions: float = 0.59
    """Rewards that follow a random function, and an arm in a third of the tables."""
    classes: float = 0.24
    """Classification: the reward is 1 if the class was named correctly."""
    rare: float = 0.14
    """Rewards of 0 or 1, often rare, that hardly follow the context."""
    level: float = 0.03
    """Noise around a level that does not depend on the context."""
    dense: float = 0.0
    """Linear functions of all columns, with about as much noise as signal."""
    faint: float = 0.0
    """Functions that explain one to ten per cent of the variance of the rewards."""
    chosen: float = 0.55
    """Share of the tables of functions whose rows a policy chose."""
    flat: float = 0.5
    """Share of the rare rewards that do not depend on the context at all."""
    levels: int = 20
    """Most levels of a categorical variable shown as columns of zeros and ones."""
    codes: int = 12
    """Most levels of one that is shown as a number."""

    def kinds(self) -> list[float]:
        """Return the relative frequencies, in the order of the fields."""
        return [self.functions, self.classes, self.rare, self.level, self.dense, self.faint]
