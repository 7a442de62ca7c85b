"""The model of an experiment: two copies of its policy, so that learning never holds up serving."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pfnts.events import Event
from pfnts.policies import Policy


@dataclass(frozen=True)
class Version:
    """A policy that stands on the log up to a position, and does not move while its lock is held."""

    policy: Policy
    position: int
    fingerprint: str
    """Hash of the log up to the position."""
    lock: threading.Lock = field(default_factory=threading.Lock, compare=False)


class Model:
    """Answers from one copy of a policy while the other learns; then they change places.

    Parameters
    ----------
    make
        Makes a policy that has seen nothing.
    """

    def __init__(self, make: Callable[[], Policy]) -> None:
        self.serving = Version(make(), -1, "")
        """The copy that answers; swapped in whole."""
        self._spare = Version(make(), -1, "")
        self._missed: list[Event] = []

    def learn(self, events: Sequence[Event], position: int, fingerprint: str) -> None:
        """Take in the events up to a position; called by one thread only."""
        if not events:
            self.serving = replace(self.serving, position=position, fingerprint=fingerprint)
            return
        with self._spare.lock:
            self._spare.policy.append([*self._missed, *events])
            self._missed = []
            self._spare.policy.catch_up()
        retired = self.serving
        self.serving = replace(self._spare, position=position, fingerprint=fingerprint)
        self._spare, self._missed = retired, list(events)
