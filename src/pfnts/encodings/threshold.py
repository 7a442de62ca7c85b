"""Disjoint while the history is short, joint afterwards: the paper's rule of thumb."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pfnts.backbones.base import Backbone
from pfnts.encodings.history import History
from pfnts.encodings.schedule import Schedule
from pfnts.encodings.switching import Switching


@dataclass(frozen=True)
class Threshold:
    """Settings of ``encoding="threshold"``.

    Parameters
    ----------
    limit
        Rewards up to which the disjoint layout answers; beyond it the joint one does.

    Examples
    --------
    >>> Threshold(limit=64).limit
    64
    """

    limit: int = 128
    name = "threshold"

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError(f"limit must not be negative, got {self.limit}")

    def start(self, *, backbone: Backbone, schedule: Schedule, n_arms: int) -> ThresholdEncoding:  # noqa: ARG002
        """Begin without any history."""
        return ThresholdEncoding(self, backbone=backbone, schedule=schedule)


class ThresholdEncoding(Switching):
    """One set of sequences, exchanged once when the history passes the limit.

    Parameters
    ----------
    settings
        Where the limit lies.
    backbone
        Makes the sequences.
    schedule
        When posteriors are refreshed.
    """

    def __init__(self, settings: Threshold, *, backbone: Backbone, schedule: Schedule) -> None:
        super().__init__("disjoint", backbone=backbone, schedule=schedule)
        self._limit = settings.limit

    def advance(self, history: History) -> None:
        """Take in the rows that the history has gained, and change over when it is due."""
        if history.size > self._limit and self.layout == "disjoint":
            self._active = self._sequences("joint")
        self._active.advance(history)

    def rebuild(self, history: History) -> None:
        """Start the sequences again: an arm was added."""
        self._active.rebuild(history)

    def state(self) -> dict[str, Any]:
        """Nothing: the size of the history decides."""
        return {}

    def restore(self, state: dict[str, Any], history: History) -> None:  # noqa: ARG002
        """Replay the history."""
        self.advance(history)
