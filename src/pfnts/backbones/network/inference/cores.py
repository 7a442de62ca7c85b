"""The cores of a CPU side by side: each takes whole pieces of the work, not a share of every operation.

PyTorch would cut up each operation and let all threads wait at its end, thousands of times a second. That is
slow where operations are small, and very slow where anything else keeps one of the cores busy.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import torch

S = TypeVar("S")
T = TypeVar("T")

_ALL_CORES = threading.Lock()


class Cores:
    """Threads that do the pieces of a piece of work; within, an operation keeps to its thread.

    Parameters
    ----------
    threads
        How many work at a time, the calling one included.

    Examples
    --------
    >>> with Cores.lent() as cores:
    ...     cores.each(lambda piece: 2 * piece, [1, 2, 3])
    [2, 4, 6]
    """

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads

    @staticmethod
    @contextmanager
    def lent(device: str = "cpu") -> Iterator[Cores]:
        """Take the threads that PyTorch may use here; if there are many, one borrower at a time."""
        threads = torch.get_num_threads()
        if threads == 1 or device != "cpu":
            yield Cores()
            return
        with _ALL_CORES:
            torch.set_num_threads(1)
            try:
                yield Cores(threads)
            finally:
                torch.set_num_threads(threads)

    def each(self, work: Callable[[S], T], pieces: Sequence[S]) -> list[T]:
        """Do the work on every piece, the first ones first; results in order."""
        if self._threads == 1 or len(pieces) == 1:
            return [work(piece) for piece in pieces]
        results: dict[int, T] = {}
        waiting = iter(range(len(pieces)))

        @torch.inference_mode()
        def help_out() -> None:
            for i in waiting:
                results[i] = work(pieces[i])

        helpers = min(self._threads, len(pieces)) - 1
        others = [_workers(self._threads, os.getpid()).submit(help_out) for _ in range(helpers)]
        try:
            help_out()
        finally:
            wait(others)
        for other in others:
            other.result()  # raises what was raised there
        return [results[i] for i in range(len(pieces))]


ONE_CORE = Cores()


@lru_cache(maxsize=1)
def _workers(threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001 (a fork has no threads)
    return ThreadPoolExecutor(threads - 1, "pfnts", initializer=torch.set_num_threads, initargs=(1,))
