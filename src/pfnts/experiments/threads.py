"""One thread for numerical libraries, so that a sum is added up in one order everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"), "1")
"""The last is read by XLA, which BFTS computes with."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch, BLAS and OpenMP libraries loaded by now to one thread; restore them at the end.

    How a long sum is split between threads decides its last digits, and a bandit's last digits decide an
    arm. With one thread a run is the same with any number of cores, workers or machines.

    Examples
    --------
    >>> import torch
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def one_thread_children() -> Iterator[None]:
    """Set variables for the processes started meanwhile: libraries read them when they are loaded."""
    before = {name: os.environ[name] for name in _ONE_THREAD if name in os.environ}
    os.environ.update(_ONE_THREAD)
    try:
        yield
    finally:
        for name in _ONE_THREAD:
            del os.environ[name]
        os.environ.update(before)
