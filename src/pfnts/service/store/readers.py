"""Connections for reading: few, lent to one thread at a time, and given back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from pfnts.service.store.base import StoreUnavailableError

MOST = 8
"""Connections of a process that read, at most."""
_PATIENCE = 10.0


class Closable(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Give it back."""


C = TypeVar("C", bound=Closable)


class Readers(Generic[C]):
    """Lends connections; threads come and go, and must leave none behind.

    Parameters
    ----------
    connect
        Opens a connection.
    """

    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._room = threading.Semaphore(MOST)
        self._free: list[C] = []
        self._closed = False

    @contextmanager
    def lend(self) -> Iterator[C]:
        """Lend a connection; if something fails on it, neither it nor those that lie idle are lent again."""
        if not self._room.acquire(timeout=_PATIENCE):
            raise StoreUnavailableError(f"the store is being read by {MOST} others, and none came to its end")
        try:
            with self._lock:
                if self._closed:
                    raise StoreUnavailableError("the store is closed")
                connection = self._free.pop() if self._free else None
            connection = connection or self._connect()
            try:
                yield connection
            except BaseException:
                connection.close()
                self._drop()  # a server that went away took them along
                raise
            with self._lock:
                if not self._closed:
                    self._free.append(connection)
                    return
            connection.close()
        finally:
            self._room.release()

    def close(self) -> None:
        """Close what is not lent; what is lent is closed when it comes back."""
        with self._lock:
            self._closed = True
        self._drop()

    def _drop(self) -> None:
        with self._lock:
            free, self._free = self._free, []
        for connection in free:
            connection.close()
