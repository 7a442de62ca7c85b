"""The sequences of one layout: rows go in, and posteriors rest on the rows up to the last refresh point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix, Vector
from pfnts.backbones.base import Append, Backbone, PredictiveSequence
from pfnts.layouts.layout import Layout
from pfnts.layouts.schedule import FIRST_POSTERIOR, next_refresh

_FEWEST_ROUNDS = 64
"""Rounds worth predicting for all arms, even if one is likely to be refreshed before."""


@dataclass(frozen=True)
class Refreshing:
    """When a sequence is refreshed."""

    factor: float
    """Growth of the sequence between two refreshes."""
    early: frozenset[int]
    """An arm's own numbers of rows at which it is refreshed as well."""


@dataclass
class ArmSequence:
    """One sequence: the numbers of its rows, and the refresh point that posteriors rest on."""

    refreshing: Refreshing
    rows: list[int] = field(default_factory=list)
    """Numbers of its rows in the history; those past ``size`` were appended ahead."""
    size: int = 0
    """Rows counted so far."""
    version: int = 0
    """Rows that the posterior rests on: the last refresh point; 0 before the first."""
    held: Counter[int] = field(default_factory=Counter)
    """Rows of each arm among these."""
    reward_variance: float = 0.0
    """Variance of the rewards of all arms when that point was reached."""
    sequence: PredictiveSequence | None = None
    """Rows that the backbone holds."""
    counts: Counter[int] = field(default_factory=Counter)
    """Rows of each arm so far."""
    next: int = FIRST_POSTERIOR
    """Size at which it is refreshed next."""

    @property
    def due(self) -> int:
        """Rows until the next refresh point."""
        return self.next - self.size

    @property
    def waiting(self) -> list[int]:
        """Rows that the backbone does not hold yet."""
        return self.rows[0 if self.sequence is None else self.sequence.size :]

    def count(self, arm: int) -> bool:
        """Count the next row, of an arm; return whether a refresh is due."""
        self.size += 1
        self.counts[arm] += 1
        return self.size >= self.next or self.counts[arm] in self.refreshing.early

    def refresh(self, so_far: Vector) -> None:
        """Rest posteriors on all rows counted, if these are enough; ``so_far`` are all arms' rewards."""
        if self.size < FIRST_POSTERIOR:
            return
        self.version, self.held = self.size, self.counts.copy()
        self.reward_variance = float(np.var(so_far))
        self.next = next_refresh(self.size, self.refreshing.factor)

    def first_refresh(self, arms: Counts) -> int:
        """Return the place of the first of these rows of arms (m,) that would refresh it; m if none."""
        first = min(len(arms), self.due - 1)
        for arm in np.unique(arms).tolist() if self.refreshing.early else ():
            places = np.flatnonzero(arms == arm)
            left = [own - self.counts[arm] for own in self.refreshing.early if own > self.counts[arm]]
            if left and min(left) <= len(places):
                first = min(first, int(places[min(left) - 1]))
        return first


class LayoutSequences:
    """The sequences of a layout, by arm number: one for each arm, or the same one for all.

    Parameters
    ----------
    layout
        Which sequence a row belongs to, and what it looks like there.
    n_arms
        Arms there may be.
    width
        Floats in a row before the layout.
    refreshing
        When a sequence is refreshed.
    """

    def __init__(self, layout: Layout, *, n_arms: int, width: int, refreshing: Refreshing) -> None:
        self.layout = layout
        self._n_arms = n_arms
        self._keep = layout.arm_columns(width, n_arms=n_arms)
        made = [ArmSequence(refreshing) for _ in range(1 if layout.shared else n_arms)]
        self.by_arm = made * max(1, n_arms) if layout.shared else made
        """The sequence of each arm."""

    def __getitem__(self, arm: int) -> ArmSequence:
        return self.by_arm[arm]

    @property
    def distinct(self) -> list[ArmSequence]:
        """Each sequence once."""
        return self.by_arm[:1] if self.layout.shared else self.by_arm

    def rows_of(self, X: Matrix, arms: Counts) -> Matrix:
        """Return rows of the sequences for rows (n, W) of the design and arm numbers (n,)."""
        return self.layout.features(X, arms, n_arms=self._n_arms)

    def note(self, rows: Sequence[int], arms: Counts) -> None:
        """Assign rows, by their numbers in the history, to the sequences of their arms (n,)."""
        if self.layout.shared:
            self.by_arm[0].rows.extend(rows)
            return
        for row, arm in zip(rows, arms.tolist(), strict=True):
            self.by_arm[arm].rows.append(row)

    def refresh(self, so_far: Vector) -> None:
        """Refresh all sequences."""
        for sequence in self.distinct:
            sequence.refresh(so_far)

    def appends(
        self,
        design: Callable[[list[int]], Matrix],
        arms: Counts,
        rewards: Vector,
        *,
        backbone: Backbone,
        scored: Mask,
    ) -> list[tuple[list[int], Append]]:
        """Return what is to be appended to each sequence, and the rows whose forecasts are wanted.

        Parameters
        ----------
        design
            Returns rows of the history before the layout, (m, W), by their numbers.
        arms, rewards
            Of all rows of the history, (n,).
        backbone
            Makes sequences.
        scored
            Rows (n,) whose forecasts are wanted, where enough rows of the sequence come before.
        """
        found = []
        for one in self.distinct:
            rows = one.waiting
            if not rows:
                continue
            X, y = self.rows_of(design(rows), arms[rows]), rewards[rows]
            begin = 0
            if one.sequence is None:  # the first rows have no forecasts
                begin = min(FIRST_POSTERIOR, len(rows))
                one.sequence = backbone.sequence(X[:begin], y[:begin], keep=self._keep)
            if begin < len(rows):
                wanted = scored[rows[begin:]]
                wanted &= one.sequence.size + np.arange(len(wanted)) >= FIRST_POSTERIOR
                chosen = [row for row, want in zip(rows[begin:], wanted.tolist(), strict=True) if want]
                found.append((chosen, Append(one.sequence, X[begin:], y[begin:], wanted)))
        return found

    def unchanged(self, arms: Counts) -> int:
        """Return how many rows of these arms (m,), in this order, refresh no sequence."""
        if self.layout.shared:
            return self.by_arm[0].first_refresh(arms)
        first = len(arms)
        for arm in np.unique(arms).tolist():
            places = np.flatnonzero(arms == arm)
            refresh = self.by_arm[arm].first_refresh(arms[places])
            if refresh < len(places):
                first = min(first, int(places[refresh]))
        return first

    def likely_rounds(self) -> int:
        """Return the rounds until the next refresh, if each arm is pulled as often as so far."""
        if self.layout.shared:
            return self.by_arm[0].due
        rows = sum(one.size for one in self.by_arm)
        rounds = [one.due * rows // one.size for one in self.by_arm if one.size]
        return max(_FEWEST_ROUNDS, min(rounds, default=0))
