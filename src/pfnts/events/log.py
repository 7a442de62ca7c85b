"""A policy's log: events in order, and the one way to append to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

from pfnts.events.event import Event
from pfnts.events.history import History


class Log(Sequence[Event]):
    """Events in the order in which they happened, and the history that follows from them.

    Parameters
    ----------
    first
        Makes a history without events.

    Examples
    --------
    >>> from pfnts.events import Observed
    >>> log = Log(lambda: History(["a", "b"]))
    >>> log.append([Observed(context=[0.5], arm="b", value=3.0)])
    >>> len(log), log.history.size
    (1, 1)
    """

    def __init__(self, first: Callable[[], History]) -> None:
        self._first = first
        self._events: list[Event] = []
        self._history: History | None = first()

    @property
    def history(self) -> History:
        """The history after all events."""
        if self._history is None or self._history.position != len(self._events):
            self._history = None
            history = self._first()
            for event in self._events:
                history.fold(event)
            self._history = history
        return self._history

    def append(self, events: Iterable[Event]) -> None:
        """Append events that fit the log, all or none.

        After an error, Ctrl-C included, the log is as it was, or it holds all of them.
        """
        new, history = list(events), self.history
        try:
            for event in new:
                history.check(event)
                history.fold(event)
            self._events += new  # one step
        except BaseException:
            self._history = None  # it may hold some of them; it is made again from the events
            raise

    def cut(self, length: int) -> None:
        """Remove the events after the first ``length``: decisions that were not returned to anyone."""
        del self._events[length:]
        self._history = None

    def reset(self) -> None:
        """Make the history again from the events: another thread may have been applying some of them."""
        self._history = None

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> list[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | list[Event]:
        return self._events[place]
