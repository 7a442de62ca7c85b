"""Runs in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import cast

from pfnts.experiments.jobs import Failure, Finished, Job, Listener, Results, work
from pfnts.experiments.provenance import cores
from pfnts.experiments.threads import one_thread_children


class LocalEngine:
    """Makes runs in processes of this machine, one thread each; those on a GPU share it.

    Parameters
    ----------
    workers
        Runs at a time; as many as there are cores when left out. With 1, or one run, this process
        makes them.
    """

    def __init__(self, *, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be a positive integer, got {workers}")
        self.workers = cores() if workers is None else workers

    def execute(self, jobs: Sequence[Job], *, listener: Listener) -> Results:
        """Yield what becomes of every job; one that fails stops no other."""
        if self.workers > 1 and len(jobs) > 1:
            yield from _execute(jobs, workers=self.workers, listener=listener)
        else:
            yield from (work(job, partial(listener, job)) for job in jobs)


def _execute(jobs: Sequence[Job], *, workers: int, listener: Listener) -> Results:
    waiting = deque(jobs)
    # All at once: sending a large job waits until its process has started.
    idle = [_Worker() for _ in jobs[:workers]]
    busy: dict[Connection, _Worker] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                # One that was killed while it had nothing to do takes no run with it.
                idle = [worker for worker in idle if worker.alive]
                worker = idle.pop() if idle else _Worker()
                worker.begin(waiting.popleft())
                busy[worker.connection] = worker
            for connection in wait(list(busy)):
                worker = busy[cast(Connection, connection)]
                message = worker.hear()
                if isinstance(message, tuple):
                    listener(worker.job, *message)
                    continue
                del busy[worker.connection]
                if worker.alive:
                    idle.append(worker)
                yield message
    finally:
        for worker in (*busy.values(), *idle):
            worker.end()


class _Worker:
    """A process that makes one run after another, as this end of it."""

    def __init__(self) -> None:
        self.job: Job
        # Spawned, not forked: a copy of a process with threads of torch in it may hang.
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with one_thread_children():
            self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def begin(self, job: Job) -> None:
        self.job = job
        # A process that dies meanwhile is noticed when it is listened to.
        with suppress(OSError):
            self.connection.send(job)

    def hear(self) -> tuple[int, float] | Finished | Failure:
        """Wait for steps and number so far, or for the end; a process that has died leaves a failure."""
        try:
            heard = cast("tuple[int, float] | Finished | Failure", self.connection.recv())
            # The job, with its inputs, is here: it need not travel back.
            return heard if isinstance(heard, tuple) else replace(heard, job=self.job)
        except (EOFError, OSError):
            self.end()
            return Failure(self.job, f"its process ended by {_exit(self._process.exitcode)}")

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _serve(connection: Connection) -> None:
    """Make runs as they are asked for, until nobody asks any more."""
    # Ctrl-C in a terminal reaches every process; the parent answers for all of them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        done = work(job, lambda *report: connection.send(report), elsewhere=True)
        connection.send(replace(done, job=None))


def _end_with_parent() -> None:
    """Leave when the parent has gone, even if it was killed: nobody is left to take the results."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _exit(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit status {code}"
    name = signal.Signals(-code).name
    return f"{name}, perhaps for want of memory" if name == "SIGKILL" else name
