"""The service's time: it never goes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime


class Clock:
    """Seconds since 1970 by the server's clock, going on at its own pace where that one is stepped back.

    Deadlines are compared with this time alone; what clients believe the time to be plays no part.

    Parameters
    ----------
    wall
        The server's clock.
    steady
        A clock that nobody sets.

    Examples
    --------
    >>> wall, steady = iter([100.0, 40.0]), iter([0.0, 5.0])
    >>> clock = Clock(wall=lambda: next(wall), steady=lambda: next(steady))
    >>> clock.now(), clock.now()
    (100.0, 105.0)
    """

    def __init__(
        self, *, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall, self._steady = wall, steady
        self._lock = threading.Lock()
        self._last = (float("-inf"), 0.0)  # the latest time known, and the steady clock then

    def now(self) -> float:
        """Time now: the wall's, or the latest time known plus what has passed since, if that is later."""
        with self._lock:
            wall, steady = self._wall(), self._steady()
            latest, then = self._last
            now = max(wall, latest + max(steady - then, 0.0))
            self._last = now, steady
            return now

    def seen(self, moment: float) -> None:
        """Take note of a time in a log: from now on it is past."""
        with self._lock:
            steady = self._steady()
            latest, then = self._last
            if moment > latest + max(steady - then, 0.0):
                self._last = moment, steady


def iso(moment: float) -> str:
    """Write a time for people and programs.

    Examples
    --------
    >>> iso(0.25)
    '1970-01-01T00:00:00.250Z'
    """
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
