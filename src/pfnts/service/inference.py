"""The one thread that asks models: requests that wait together are one question."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator

from pfnts.events import Decided
from pfnts.policies.decision import Decision
from pfnts.service.errors import Busy
from pfnts.service.live import LiveExperiment
from pfnts.service.model import Version
from pfnts.service.schemas import DecisionRequest

log = logging.getLogger("pfnts.service")


@dataclass(frozen=True)
class Proposal:
    """What a model would do, and which one it was."""

    decision: Decision
    event: Decided
    version: Version


@dataclass
class Job:
    """A request that waits for a model."""

    live: LiveExperiment
    request: DecisionRequest
    id: str
    rng: Generator
    future: Future[Proposal | None] = field(default_factory=Future)
    """The proposal; None if the model had nothing to say."""


class Inference:
    """Takes what waits, asks each model once, and hands out proposals.

    Parameters
    ----------
    room
        Requests that may wait; beyond them `Busy`.
    at_once
        Requests of one question, at most.
    """

    def __init__(self, *, room: int, at_once: int = 64) -> None:
        self._queue: queue.Queue[Job | None] = queue.Queue(room)
        self._at_once = at_once
        self.batches = 0
        self.asked = 0
        self._thread = threading.Thread(target=self._run, name="pfnts-inference", daemon=True)
        self._thread.start()

    @property
    def thread(self) -> threading.Thread:
        """The thread that asks."""
        return self._thread

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return self._queue.qsize()

    def submit(self, job: Job) -> None:
        """Let a request wait for its proposal."""
        try:
            self._queue.put_nowait(job)
        except queue.Full:
            raise Busy("more decisions are waiting than can be served; try again in a second") from None

    def stop(self) -> None:
        """Answer what waits, then stop."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            jobs = [self._queue.get()]
            while len(jobs) < self._at_once:
                try:
                    jobs.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            stopping = None in jobs
            # Those whose client has had the fallback by now are not computed in vain.
            wanted = [job for job in jobs if job is not None and not job.future.done()]
            for group in _by_experiment(wanted):
                self._ask(group)

    def _ask(self, jobs: list[Job]) -> None:
        version = jobs[0].live.version
        if version is None:
            for job in jobs:
                _finish(job, None)
            return
        self.batches += 1
        self.asked += len(jobs)
        with version.lock:
            if len(jobs) > 1:
                _announce(version, jobs)
            for job in jobs:
                if not job.future.done():  # its client may have had the fallback meanwhile
                    _finish(job, _propose(version, job))


def _by_experiment(jobs: list[Job]) -> Iterator[list[Job]]:
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.live.name, []).append(job)
    yield from groups.values()


def _announce(version: Version, jobs: list[Job]) -> None:
    try:
        version.policy.prefetch([job.request.context for job in jobs])
    except Exception:
        # Contexts by name and by position do not mix, say; each is then asked about by itself.
        log.debug("the contexts of a batch could not be announced", exc_info=True)


def _propose(version: Version, job: Job) -> Proposal | None:
    """Ask about one context; None where the model knows none of the arms, or fails."""
    policy = version.policy
    try:
        arms, offered = job.live.state.arms, job.request.offered
        allowed = arms if job.request.eligible is None else set(arms).intersection(job.request.eligible)
        mask = np.array([arm in allowed for arm in policy.arms])
        if not mask.any() and offered is None:
            return None
        decision, event = policy.propose(
            job.request.context,
            rng=job.rng,
            eligible=None if mask.all() else mask,
            id=job.id,
            candidates=offered,
        )
    except Exception:
        log.exception("the model of %r failed; the baseline arm is served", job.live.name)
        return None
    return Proposal(decision, event, version)


def _finish(job: Job, proposal: Proposal | None) -> None:
    # From here on it cannot be cancelled: either the client gets this, or it has had the fallback.
    if job.future.set_running_or_notify_cancel():
        job.future.set_result(proposal)
