"""Runs side by side in this process: their questions to a network are answered together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from queue import SimpleQueue

from pfnts.backbones.together import Meeting, MeetingClosedError
from pfnts.experiments.engines.base import Listener, Results
from pfnts.experiments.engines.local import LocalEngine
from pfnts.experiments.jobs import Failure, Finished, Job, work
from pfnts.experiments.threads import one_thread

RUNS = 40
"""Side by side, if nothing is said: each takes some hundred megabytes of a card for 10,000 rounds."""


class LockstepEngine:
    """Plays many runs side by side in one process, for a card that answers many questions as fast as one.

    Each run goes on to its next question; when all have one, the network is asked all of them at once. The
    numbers are those of single runs up to the rounding of single precision, which may turn a close decision.
    A run's seconds are those that it shared with the others. What cannot share a network, the baselines say,
    is made by processes of this machine afterwards.

    Parameters
    ----------
    workers
        Runs at a time.

    Examples
    --------
    >>> LockstepEngine(workers=8).workers
    8
    """

    def __init__(self, *, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be a positive integer, got {workers}")
        self.workers = RUNS if workers is None else workers

    def execute(self, jobs: Sequence[Job], *, listener: Listener) -> Results:
        """Yield what becomes of every job; one that fails stops no other."""
        yield from side_by_side([job for job in jobs if shares(job)], runs=self.workers, listener=listener)
        yield from LocalEngine().execute([job for job in jobs if not shares(job)], listener=listener)


def shares(job: Job) -> bool:
    """Whether a job computes on the device it was asked to, and not on the CPU for want of a choice."""
    return job.spec.device(job.asked) != "cpu"


def side_by_side(jobs: Sequence[Job], *, runs: int, listener: Listener, elsewhere: bool = False) -> Results:
    """Do jobs in threads of this process, ``runs`` at a time; see `pfnts.experiments.jobs.work`."""
    heard: SimpleQueue[tuple[Job, int, float] | Finished | Failure] = SimpleQueue()
    meeting, waiting, stopped = Meeting(), deque(jobs), threading.Event()

    def progress(job: Job, steps: int, value: float) -> None:
        if stopped.is_set():
            raise MeetingClosedError("the runs were stopped")
        heard.put((job, steps, value))

    def play() -> None:
        while waiting and not stopped.is_set():
            try:
                job = waiting.popleft()
            except IndexError:  # another took the last one
                return
            with meeting.attended():
                done = work(job, partial(progress, job), elsewhere=elsewhere)
            heard.put(done)

    players = [threading.Thread(target=play, daemon=True) for _ in range(min(runs, len(jobs)))]
    with one_thread():  # for as long as any of them runs: each would put it back at its own end
        try:
            for player in players:
                player.start()
            left = len(jobs)
            while left:
                message = heard.get()
                if isinstance(message, tuple):
                    listener(*message)
                else:
                    left -= 1
                    yield message
        finally:
            stopped.set()
            meeting.close()
            for player in players:
                if player.ident is not None:
                    player.join()
