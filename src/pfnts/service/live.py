"""An experiment that is being served: its state, its model, and what the model has still to learn."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from pfnts.events import Event
from pfnts.service.errors import Unavailable
from pfnts.service.experiment import ExperimentState
from pfnts.service.model import Model, StoppedError, Version
from pfnts.service.store import Record, Store

log = logging.getLogger("pfnts.service")
_PAGE = 2000


class LiveExperiment:
    """Follows the log of an experiment.

    The state is up to date before anybody is told of a record; the model catches up beside serving.

    Parameters
    ----------
    name
        Of an experiment in the store.
    store
        Where its log is.
    stopping
        Says whether learning should be given up.
    """

    def __init__(self, name: str, store: Store, stopping: Callable[[], bool] = lambda: False) -> None:
        self.name = name
        self._stopping = stopping
        self._store = store
        self.lock = threading.RLock()
        self.broken: str | None = None
        """Why it cannot be served; None while it can."""
        self.refreshed = time.monotonic()
        """When the model last caught up, by the steady clock."""
        self.head = -1
        """Last position that the store was seen to have."""
        self.estimates: tuple[float, dict[str, Any]] = (float("-inf"), {})
        """What the latest decisions say, and when that was computed, by the steady clock."""
        self.model: Model | None = None
        self._backlog: list[Event] = []
        self._reload = False
        self.state = self._begin()
        self.follow()

    @property
    def version(self) -> Version | None:
        """What answers now; None before the columns of a context are known."""
        return None if self.model is None else self.model.serving

    @property
    def lag(self) -> int:
        """Records that the model has not taken in; 0 as long as there is none to make."""
        version = self.version
        if version is None:
            return 0 if self.state.schema is None else self.state.position + 1
        return max(self.head, self.state.position) - version.position

    def reached(self, position: int) -> bool:
        """Whether the model stands on this position or a later one, if it is to have one at all."""
        if self.broken is not None or self.state.schema is None:
            return True
        return self.version is not None and self.version.position >= position

    def check(self) -> None:
        """Complain if it cannot be served."""
        if self.broken is not None:
            raise Unavailable(f"experiment {self.name!r} cannot be served: {self.broken}")

    def offer(self, records: Sequence[Record]) -> None:
        """Take in records that were appended; what is missing before them is read from the store."""
        self._take(records)
        if records[-1].position > self.state.position:
            self.follow()

    def follow(self) -> None:
        """Take in what the store has beyond the state."""
        # The store is read without the lock: it may take its time, and others only want to look.
        while self.broken is None and (
            records := self._store.read(self.name, self.state.position, limit=_PAGE)
        ):
            self._take(records)

    def learn(self) -> bool:
        """Bring the model up to the state; one thread calls it. False if there was nothing to learn."""
        if self.broken is not None:
            return False
        if self._reload:
            self._load_again()
            return True
        if self.state.schema is None:
            return False
        try:
            return self._learn()
        except StoppedError:
            raise
        except Exception as error:
            # The log is what it is; a model that cannot take it in must not pretend to.
            log.exception("the model of %r cannot take in the log", self.name)
            self.broken = f"its model cannot take in the log ({error})"
            return False

    def _learn(self) -> bool:
        # Made without the lock: weights may have to be read.
        model = self.model or Model(self.state.make_policy, self._stopping)
        with self.lock:
            events, self._backlog = self._backlog, []
            position, fingerprint = self.state.position, self.state.fingerprint
        if model.serving.position == position:
            return False
        model.learn(events, position, fingerprint)
        self.model = model
        self.refreshed = time.monotonic()
        return True

    def _begin(self) -> ExperimentState:
        [first] = self._store.read(self.name, -1, limit=1)
        return ExperimentState(first)

    def _take(self, records: Sequence[Record]) -> None:
        with self.lock:
            for record in records:
                if self.broken is None and record.position == self.state.position + 1:
                    self._fold(record)

    def _fold(self, record: Record) -> None:
        try:
            self._backlog += self.state.fold(record)
        except Exception as error:
            log.exception("record %d of %r does not fit its log", record.position, self.name)
            self.broken = f"record {record.position} does not fit the log ({error})"
        self._reload = self._reload or record.kind == "erased"

    def _load_again(self) -> None:
        """After an erasure everything is folded anew: what was erased must not live on in a model."""
        with self.lock:
            self._reload = False
        try:
            self._fold_anew()
        except BaseException:
            self._reload = True  # it is tried again
            raise

    def _fold_anew(self) -> None:
        erasures = self.state.counts["erased"]
        state = self._begin()
        events: list[Event] = []

        def fold_rest() -> None:
            while records := self._store.read(self.name, state.position, limit=_PAGE):
                for record in records:
                    events.extend(state.fold(record))

        fold_rest()
        model = None
        if state.schema is not None:
            model = Model(state.make_policy, self._stopping)
            learned, position = len(events), state.position
            model.learn(list(events), position, state.fingerprint)
            del events[:learned]
        with self.lock:
            fold_rest()
            self.state, self.model, self._backlog = state, model, events
            # What another erasure took away meanwhile may have been read before.
            self._reload = self._reload or state.counts["erased"] > erasures
