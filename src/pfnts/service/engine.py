"""What is behind the HTTP interface: experiments that follow their logs, and the threads that serve them."""

from __future__ import annotations

import logging
import secrets
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pfnts
from pfnts.service.clock import Clock
from pfnts.service.drafts import Seal, settlement
from pfnts.service.errors import Busy, NotFound, Unavailable
from pfnts.service.inference import Inference
from pfnts.service.live import LiveExperiment
from pfnts.service.metrics import Metrics
from pfnts.service.model import StoppedError
from pfnts.service.store import FencedError, Record, Store, StoreUnavailableError
from pfnts.service.writer import Health, Writer

log = logging.getLogger("pfnts.service")
_VERSION = pfnts.__version__  # looked up once: it is read from the installed package's files


@dataclass(frozen=True)
class Limits:
    """How much the service takes on."""

    timeout: float = 0.5
    """Seconds after which a decision is the fallback."""
    requests: int = 64
    """Requests that are served at a time; beyond them 429 before anything is made of them."""
    queue: int = 256
    """Decisions that may wait for a model."""
    writes: int = 4096
    """Entries that may wait to be written."""
    batch: int = 64
    """Decisions of one question to a model; 1 asks about each by itself."""
    pause: float = 0.05
    """Seconds between two refreshes of the models, at least: what comes meanwhile is learned together."""
    poll: float = 0.1
    """Seconds between looks at the logs of other processes, and at deadlines."""
    patience: float = 10.0
    """Seconds that a client may take to send a request."""
    lease: float = 5.0
    """Seconds for which a leader leads without a sign of life."""


class Engine:
    """Serves the experiments of a store.

    Parameters
    ----------
    store
        Where the logs are; the engine closes it.
    limits
        How much to take on.
    clock
        The service's time.
    """

    def __init__(self, store: Store, *, limits: Limits | None = None, clock: Clock | None = None) -> None:
        self.store = store
        self.limits = limits or Limits()
        self.clock = clock or Clock(wall=store.time)
        self.metrics = Metrics()
        self.health = Health()
        self.replica = f"{socket.gethostname()}-{secrets.token_hex(3)}"
        self.streams = 0
        """Streams of events that are open."""
        self.exports = 0
        """Exports that are being made."""
        self.draining = False
        """Whether the end has come: streams should close."""
        self.ready = False
        """Whether every experiment was loaded."""
        self.epoch: int | None = None
        """Under which this process leads; None while another does."""
        secret = store.meta("secret", secrets.token_hex(32))
        assert secret is not None
        self.seal = Seal(bytes.fromhex(secret))
        self.unreadable: dict[str, str] = {}
        """Experiments of which not even the first record makes sense, and why."""
        self._experiments: dict[str, LiveExperiment] = {}
        self._goals: dict[str, int] = {}
        self._all_shown = True
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._news = threading.Event()
        self.writer = Writer(store, self._committed, room=self.limits.writes, health=self.health)
        self.inference = Inference(room=self.limits.queue, at_once=self.limits.batch)
        self._threads = [
            threading.Thread(target=target, name=f"pfnts-{name}", daemon=True)
            for name, target in (("learner", self._learn), ("housekeeper", self._keep_house))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def experiments(self) -> dict[str, LiveExperiment]:
        """The experiments, by name."""
        with self._lock:
            return dict(self._experiments)

    def experiment(self, name: str) -> LiveExperiment:
        """Look an experiment up among those that this process knows."""
        with self._lock:
            found = self._experiments.get(name)
        if found is not None:
            found.check()
            return found
        if name in self.unreadable:
            raise Unavailable(f"experiment {name!r} cannot be served: {self.unreadable[name]}")
        # Whoever is told that there is none throws its rewards away.
        self.check_loaded()
        raise NotFound(f"there is no experiment {name!r}")

    def check_loaded(self) -> None:
        """Complain while there may be experiments that this process does not know of."""
        if not self.ready:
            raise Unavailable("experiments are being loaded; try again in a second")

    def discover(self, name: str) -> None:
        """Look for an experiment that another process began a moment ago; it may take its time."""
        if self.store.many and self.store.read(name, -1, limit=1):
            self._load(name)

    def describe_model(self, live: LiveExperiment) -> dict[str, Any]:
        """Which model answers: its position in the log, the log's hash there, and the package."""
        version = live.version
        return {
            "position": -1 if version is None else version.position,
            "fingerprint": "" if version is None else version.fingerprint,
            "version": _VERSION,
        }

    def why_not_ready(self) -> list[str]:
        """Reasons for which nobody should send requests here; none when all is well."""
        reasons = [] if self.ready else ["experiments are being loaded"]
        if self.health.reason is not None:
            reasons.append(self.health.reason)
        threads = (*self._threads, self.writer.thread, self.inference.thread)
        return reasons + [
            f"the {thread.name} thread has stopped" for thread in threads if not thread.is_alive()
        ]

    def stop(self) -> None:
        """Answer and write what waits, then stop."""
        self.inference.stop()
        self._stopping.set()
        self._news.set()
        for thread in self._threads:
            thread.join()
        self.writer.stop()
        self.store.close()

    # The threads.

    def _committed(self, records: list[Record]) -> None:
        by_name: dict[str, list[Record]] = {}
        for record in records:
            by_name.setdefault(record.experiment, []).append(record)
        for name, found in by_name.items():
            try:
                live = self._known(name)
                if live is not None:
                    live.offer(found)
            except Exception:
                # They are in the store, which is the truth; here they are shown as soon as it can be read.
                log.warning("records of %r could not be shown at once", name, exc_info=True)
                self._all_shown = False
        self._news.set()

    def _known(self, name: str) -> LiveExperiment | None:
        """The experiment, loaded if need be; None if its log makes no sense from the first record on."""
        with self._lock:
            live = self._experiments.get(name)
        return self._load(name) if live is None and name not in self.unreadable else live

    def _load(self, name: str) -> LiveExperiment | None:
        try:
            loaded = LiveExperiment(name, self.store, self._stopping.is_set)
        except StoreUnavailableError:
            raise
        except Exception as error:
            log.exception("the log of %r makes no sense", name)
            self.unreadable[name] = f"its first record makes no sense ({error})"
            return None
        with self._lock:
            live = self._experiments.setdefault(name, loaded)
        self.clock.seen(live.state.time)
        self._news.set()
        return live

    def _learn(self) -> None:
        while not self._stopping.is_set():
            self._news.wait(1.0)
            self._news.clear()
            if any([self._guarded(live.learn) for live in self.experiments.values()]):
                self._stopping.wait(self.limits.pause)

    def _keep_house(self) -> None:
        next_lease = 0.0
        while not self._stopping.wait(self.limits.poll if self.ready else 0.01):
            self._guarded(self._follow)
            if time.monotonic() >= next_lease:
                next_lease = time.monotonic() + self.limits.lease / 3
                self._guarded(self._take_lead)
            self._guarded(self._expire)
            if self.health.reason is not None or time.monotonic() - self.health.written > 10:
                self._guarded(self._probe)

    def _guarded(self, work: Callable[[], Any]) -> Any:
        """Run a part of a thread's work; what fails is reported and tried again later."""
        try:
            return work()
        except FencedError as error:
            self.epoch = None
            log.warning("%s", error)
        except StoreUnavailableError as error:
            self.health.failed(error)
        except (StoppedError, Busy):
            pass
        except Exception:
            log.exception("unexpected failure in %s", threading.current_thread().name)
            time.sleep(0.1)
        return None

    def _follow(self) -> None:
        if self.ready and not self.store.many and self._all_shown:
            return
        self._all_shown = True
        before = {name: live.state.position for name, live in self.experiments.items()}
        heads = self.store.experiments()
        for name, position in before.items():
            if heads.get(name, -1) < position:
                self._forget(name, heads.get(name, -1), position)
        for name, head in heads.items():
            live = self._known(name)
            if live is None:
                continue
            live.head = head
            if live.state.position < head:
                live.follow()
                self.clock.seen(live.state.time)
                self._news.set()
        if not self.ready:
            # What others write never ends: ready is who has learned what was there in the beginning.
            self._goals = self._goals or heads
            self.ready = all(
                live.reached(self._goals.get(name, -1)) for name, live in self.experiments.items()
            )

    def _forget(self, name: str, head: int, position: int) -> None:
        """Drop an experiment whose log is shorter than it was: a backup was restored, or a standby took over.

        What it says now is the truth, and is read anew.
        """
        log.warning(
            "the log of %r ends at position %d, and ended at %d or later before", name, head, position
        )
        with self._lock:
            del self._experiments[name]
        self.ready, self._goals = False, {}  # until it has learned what is there now

    def _take_lead(self) -> None:
        self.epoch = self.store.lead(self.replica, seconds=self.limits.lease)

    def _expire(self) -> None:
        """Settle decisions whose reward did not come in time, if this process leads."""
        now = self.clock.now()
        for live in self.experiments.values():
            with live.lock:
                due = live.state.due(now, limit=500)  # others look as well: what is settled is let go of
                default = live.state.settings.reward.default
            if due and live.broken is None and self.epoch is not None:
                by = "missing" if default is None else "default"
                drafts = [settlement(live.name, id, time=now, value=default, by=by) for id in due]
                self.writer.submit(drafts, epoch=self.epoch).result(timeout=30)

    def _probe(self) -> None:
        self.store.probe()
        self.health.succeeded()
