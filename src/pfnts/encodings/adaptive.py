"""The paper's adaptive encoding: the layout that predicts rewards better decides."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pfnts.backbones.base import Backbone
from pfnts.encodings.history import History
from pfnts.encodings.schedule import Schedule
from pfnts.encodings.sequences import Sequences
from pfnts.encodings.switching import Switching
from pfnts.scores import crps

_OTHER = {"disjoint": "joint", "joint": "disjoint"}

# As many levels as a PFN puts out; the CRPS of a Gaussian is then right to 0.3 %.
_LEVELS = np.arange(1, 100) / 100


@dataclass(frozen=True)
class Adaptive:
    """Settings of ``encoding="adaptive"``.

    Disjoint and joint sequences grow side by side. When the number of rewards reaches a switch time, every
    reward since the last one is scored under both by the CRPS of the newest snapshot that had not seen it
    (rewards too early for a snapshot in either are left out), and the layout with the lower total answers
    from then on. At the last switch time the other is dropped.

    Parameters
    ----------
    switch_times
        Numbers of rewards at which the totals are compared, increasing.
    arm_threshold
        With fewer arms than this the disjoint layout answers first, otherwise the joint one.

    Examples
    --------
    >>> Adaptive().switch_times
    (128, 256, 512, 1024, 2048)
    """

    switch_times: tuple[int, ...] = (128, 256, 512, 1024, 2048)
    arm_threshold: int = 10
    name = "adaptive"

    def __post_init__(self) -> None:
        times = tuple(self.switch_times)
        object.__setattr__(self, "switch_times", times)
        if not times or times[0] < 1 or any(b <= a for a, b in pairwise(times)):
            raise ValueError(f"switch_times must be positive and increasing, got {times}")

    def start(self, *, backbone: Backbone, schedule: Schedule, n_arms: int) -> AdaptiveEncoding:
        """Begin without any history."""
        return AdaptiveEncoding(self, backbone=backbone, schedule=schedule, n_arms=n_arms)


class AdaptiveEncoding(Switching):
    """Two sets of sequences, one active, one challenging until the last switch time.

    Parameters
    ----------
    settings
        When to compare, and which layout begins.
    backbone
        Makes the sequences.
    schedule
        When posteriors are refreshed.
    n_arms
        Number of arms at the beginning.
    """

    def __init__(self, settings: Adaptive, *, backbone: Backbone, schedule: Schedule, n_arms: int) -> None:
        first = "disjoint" if n_arms < settings.arm_threshold else "joint"
        super().__init__(first, backbone=backbone, schedule=schedule)
        self._challenger: Sequences | None = self._sequences(_OTHER[first])
        self._times = settings.switch_times
        self._passed = 0
        self.totals = {"disjoint": 0.0, "joint": 0.0}
        """CRPS of each layout up to the last switch time."""

    @property
    def challenger(self) -> str | None:
        """Name of the layout that is scored but does not answer; None once it has been dropped."""
        return None if self._challenger is None else self._challenger.layout

    def advance(self, history: History) -> None:
        """Take in the rows that the history has gained; compare the layouts at each switch time passed."""
        self._active.advance(history)
        if self._challenger is None:
            return
        self._challenger.advance(history)
        while self._challenger is not None and history.size >= self._times[self._passed]:
            self._switch(history)

    def rebuild(self, history: History) -> None:
        """Start the sequences again: an arm was added."""
        self._active.rebuild(history)
        if self._challenger is not None:
            self._challenger.rebuild(history)

    def state(self) -> dict[str, Any]:
        """Which layout is active, the totals, and how many switch times have passed."""
        return {"active": self.layout, "totals": dict(self.totals), "passed": self._passed}

    def restore(self, state: dict[str, Any], history: History) -> None:
        """Take up a saved comparison and replay the history."""
        self._passed = int(state["passed"])
        self.totals = {name: float(state["totals"][name]) for name in _OTHER}
        self._active = self._sequences(state["active"])
        ended = self._passed == len(self._times)
        self._challenger = None if ended else self._sequences(_OTHER[state["active"]])
        self.advance(history)

    def _switch(self, history: History) -> None:
        """Score the interval that ends here; the better layout becomes active."""
        challenger = self._challenger
        if challenger is None:
            return
        first = self._times[self._passed - 1] if self._passed else 0
        scores = interval_scores(
            self._active, challenger, history, np.arange(first, self._times[self._passed])
        )
        for sequences, score in zip((self._active, challenger), scores, strict=True):
            self.totals[sequences.layout] += score
        if self.totals[challenger.layout] < self.totals[self.layout]:
            self._active, challenger = challenger, self._active
        self._passed += 1
        self._challenger = challenger if self._passed < len(self._times) else None


def interval_scores(
    one: Sequences, other: Sequences, history: History, rows: np.ndarray[Any, np.dtype[np.int64]]
) -> tuple[float, float]:
    """Total CRPS of both over those rows of the history that both can predict without having seen them."""
    groups = one.scorable(rows), other.scorable(rows)
    common = set.intersection(*(set().union(*group.values()) for group in groups))
    totals = []
    for sequences, group in zip((one, other), groups, strict=True):
        total = 0.0
        for (track, size), members in group.items():
            kept = [row for row in members if row in common]
            if kept:
                quantiles = sequences.past_quantiles(track, size, kept, _LEVELS)
                total += float(crps(_LEVELS, quantiles, history.rewards[kept]).sum())
        totals.append(total)
    return totals[0], totals[1]
