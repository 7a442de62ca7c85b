"""What an engine is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from pfnts.experiments.jobs import Failure, Finished, Job

Listener = Callable[[Job, int, float], None]
"""Told which job is under way, its steps done and the number that goes with them; first with 0 steps."""


class UnusableDeviceError(ValueError):
    """An engine has not the device that its jobs ask for."""


Results = Generator[Finished | Failure, None, None]
"""What becomes of the jobs, in the order in which they end; closing it ends what is under way."""


class Engine(Protocol):
    """Something that does jobs, several at a time if it can."""

    def execute(self, jobs: Sequence[Job], *, listener: Listener) -> Results:
        """Yield what becomes of every job; one that fails stops no other."""
        ...
