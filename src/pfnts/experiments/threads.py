"""One thread for numerical libraries, so that a sum is added up in one order everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
