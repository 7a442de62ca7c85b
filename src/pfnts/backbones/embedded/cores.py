"""The cores of a CPU side by side: each takes whole passes of the network, not a share of every operation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import torch

S = TypeVar("S")
T = TypeVar("T")


def side_by_side(work: Callable[[S], T], parts: Sequence[S]) -> list[T]:
    """Do the work on every part, as many at a time as PyTorch may use threads; results in order.

    PyTorch would cut up each operation and wait for all threads at its end, thousands of times a second: with
    small operations, or where something else keeps a core busy, waiting takes longer than the work.

    Examples
    --------
    >>> side_by_side(lambda part: 2 * part, [1, 2, 3])
    [2, 4, 6]
    """
    threads = torch.get_num_threads()
    if threads == 1 or len(parts) == 1:
        return [work(part) for part in parts]
    try:
        return list(_workers(threads, os.getpid()).map(work, parts))
    finally:
        torch.set_num_threads(threads)  # what a worker sets for itself, PyTorch takes for new threads, too


@lru_cache(maxsize=1)
def _workers(threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001 (a fork has no threads)
    return ThreadPoolExecutor(threads, "pfnts", initializer=torch.set_num_threads, initargs=(1,))
