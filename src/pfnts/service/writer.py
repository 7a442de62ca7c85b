"""The one thread that appends: whatever waits together is committed together."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from pfnts.service.errors import Busy
from pfnts.service.store import Draft, FencedError, Record, Store, StoreUnavailableError

_MOST_AT_ONCE = 512
"""Jobs of one transaction."""


@dataclass
class Health:
    """Whether the store takes what it is given."""

    reason: str | None = None
    """Why not; None while all is well."""
    written: float = field(default_factory=time.monotonic)
    """When it last took something, by the steady clock."""

    def failed(self, error: Exception) -> None:
        """Take note of a failure."""
        self.reason = str(error)

    def succeeded(self) -> None:
        """Take note of a success."""
        self.reason = None
        self.written = time.monotonic()


@dataclass(frozen=True)
class _Job:
    drafts: Sequence[Draft]
    epoch: int | None
    future: Future[list[Record | None]]

    def answer(self, outcome: list[Record | None] | Exception) -> None:
        """Tell whoever waits, if anybody still does."""
        if not self.future.set_running_or_notify_cancel():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Writer:
    """Commits drafts in groups, shows the records to the experiments, and only then answers.

    Parameters
    ----------
    store
        Where they go.
    committed
        Is shown the records of each transaction, before anybody is told; it does not fail.
    room
        Jobs that may wait; beyond them `Busy`.
    """

    def __init__(
        self, store: Store, committed: Callable[[list[Record]], None], *, room: int, health: Health
    ) -> None:
        self._store, self._committed, self._health = store, committed, health
        self._queue: queue.Queue[_Job | None] = queue.Queue(room)
        self._thread = threading.Thread(target=self._run, name="pfnts-writer", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Jobs that wait."""
        return self._queue.qsize()

    @property
    def thread(self) -> threading.Thread:
        """The thread that appends."""
        return self._thread

    def submit(self, drafts: Sequence[Draft], *, epoch: int | None = None) -> Future[list[Record | None]]:
        """Append drafts; the future holds their records, None for those that were not appended."""
        job = _Job(drafts, epoch, Future())
        try:
            self._queue.put_nowait(job)
        except queue.Full:
            raise Busy("more is waiting to be written than fits; try again in a second") from None
        return job.future

    def erase(self, draft: Draft, unit: str) -> tuple[Record | None, int]:
        """Erase a unit; waits for it."""
        try:
            record, count = self._store.erase(draft, unit)
        except StoreUnavailableError as error:
            self._health.failed(error)
            raise
        self._committed([record] if record else [])
        self._store.scrub()
        return record, count

    def stop(self) -> None:
        """Write what waits, then stop."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        stopping = False
        while not stopping:
            jobs = [self._queue.get()]
            while len(jobs) < _MOST_AT_ONCE:
                try:
                    jobs.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            stopping = None in jobs
            self._write([job for job in jobs if job is not None])

    def _write(self, jobs: list[_Job]) -> None:
        # What only the leader may write stands or falls with its epoch, and must not take others along.
        for epoch in dict.fromkeys(job.epoch for job in jobs):
            self._commit([job for job in jobs if job.epoch == epoch], epoch)

    def _commit(self, jobs: list[_Job], epoch: int | None) -> None:
        try:
            records = self._store.append([d for job in jobs for d in job.drafts], epoch=epoch)
        except (StoreUnavailableError, FencedError) as error:
            if isinstance(error, StoreUnavailableError):
                self._health.failed(error)
            for job in jobs:
                job.answer(error)
            return
        except Exception as error:
            # An entry that cannot be written is no other's fault: each by itself.
            for job in jobs if len(jobs) > 1 else ():
                self._commit([job], epoch)
            if len(jobs) == 1:
                jobs[0].answer(error)
            return
        self._health.succeeded()
        self._committed([record for record in records if record is not None])
        given = iter(records)
        for job in jobs:
            job.answer([next(given) for _ in job.drafts])
