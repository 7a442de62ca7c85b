"""The model of an experiment: two copies of its policy, so that learning never holds up serving.

What one copy has learned the other takes over where the policy can do so, and learns again where it cannot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pfnts.events import Event
from pfnts.policies import Policy

_AT_ONCE = 250
"""Events that are learned before it is asked again whether to go on."""


class StoppedError(RuntimeError):
    """Learning was given up half-way, because the process is about to end."""


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
    stopping
        Says whether learning should be given up, because the process is about to end.
    """

    def __init__(self, make: Callable[[], Policy], stopping: Callable[[], bool] = lambda: False) -> None:
        self._stopping = stopping
        self.serving = Version(make(), -1, "")
        """The copy that answers; swapped in whole."""
        self._spare = Version(make(), -1, "")
        self._missed: list[Event] = []

    def learn(self, events: Sequence[Event], position: int, fingerprint: str) -> None:
        """Take in the events up to a position; called by one thread only."""
        if not events:
            self.serving = replace(self.serving, position=position, fingerprint=fingerprint)
            return
        spare = self._spare.policy
        with self._spare.lock:
            spare.append(self._missed)
            self._missed = []
            spare.adopt(self.serving.policy)
            for first in range(0, len(events), _AT_ONCE):
                if self._stopping():
                    raise StoppedError("learning was given up; the log has everything")
                spare.append(events[first : first + _AT_ONCE])
                spare.catch_up()
        retired = self.serving
        self.serving = replace(self._spare, position=position, fingerprint=fingerprint)
        self._spare, self._missed = retired, list(events)
