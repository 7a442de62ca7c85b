"""What an engine is given, and what it gives back."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pfnts.experiments.provenance import provenance
from pfnts.experiments.runner import run
from pfnts.experiments.spec import RunSpec
from pfnts.experiments.store import producer
from pfnts.simulation import Trajectory
from pfnts.simulation.loop import Progress

Listener = Callable[[RunSpec, int, float], None]
"""Told which run is under way, its rounds done and its regret so far; first with 0 rounds, when it starts."""


class UnusableDeviceError(ValueError):
    """An engine has not the device that its jobs ask for."""


@dataclass(frozen=True)
class Job:
    """One run to be made, perhaps by another process or on another machine."""

    spec: RunSpec
    """What to run."""
    producer: Mapping[str, Any]
    """The software and settings it will be filed under; whoever runs it must have the same."""
    data: Path | None = None
    """Folder with the tables of OpenML scenarios."""
    device: str = "cpu"
    """Where the policy computes, if it leaves a choice."""


@dataclass(frozen=True)
class Finished:
    """A run that was made."""

    spec: RunSpec
    """What was run."""
    trajectory: Trajectory
    """What came of it."""
    made: dict[str, Any]
    """Versions and machine."""


@dataclass(frozen=True)
class Failure:
    """A run that was not made."""

    spec: RunSpec
    """What was to be run."""
    reason: str
    """What happened, in a sentence."""
    traceback: str = ""
    """Where, as far as it is known."""


Results = Generator[Finished | Failure, None, None]
"""What becomes of the jobs, in the order in which they end; closing it ends what is under way."""


class Engine(Protocol):
    """Something that makes runs, several at a time if it can."""

    def execute(self, jobs: Sequence[Job], *, listener: Listener) -> Results:
        """Yield what becomes of every job; one that fails stops no other."""
        ...


def work(job: Job, progress: Progress) -> Finished | Failure:
    """Make one run here and now; an error becomes a `Failure`."""
    try:
        here = producer(job.spec)
        if here != job.producer:
            raise RuntimeError(
                f"pfnts, its weights, defaults and modules of your own must be the same on every machine, "
                f"got {here} on this one and "
                f"{dict(job.producer)} where the runs are kept"
            )
        progress(0, 0.0)
        trajectory = run(job.spec, data=job.data, device=job.device, progress=progress)
        return Finished(job.spec, trajectory, provenance(device=job.spec.policy.device(job.device)))
    except Exception as error:
        return Failure(job.spec, f"{type(error).__name__}: {error}", traceback.format_exc())
