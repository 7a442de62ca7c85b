"""Whether a store is consistent: every log folds, and is the one that every decision says it stood on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pfnts.service.experiment import ExperimentState
from pfnts.service.model import Model
from pfnts.service.store import Record, Store

_PAGE = 2000


@dataclass(frozen=True)
class Finding:
    """What was found about an experiment."""

    experiment: str
    records: int
    decisions: int
    problem: str | None
    """What is wrong; None if nothing is."""


def check(store: Store) -> Iterator[Finding]:
    """Fold every log of a store and compare it with what was written down on the way.

    Parameters
    ----------
    store
        It is only read.
    """
    for name, last in store.experiments().items():
        yield _check(store, name, last)


def _check(store: Store, name: str, last: int) -> Finding:
    state: ExperimentState | None = None
    prints = {-1: ""}
    events = []
    try:
        for record in _records(store, name):
            state = ExperimentState(record) if state is None else state
            events += state.fold(record)
            prints[record.position] = state.fingerprint
            if record.kind == "decided":
                stood = record.data["model"]
                if prints.get(stood["position"]) != stood["fingerprint"]:
                    raise ValueError(
                        f"decision {record.id!r} at position {record.position} stood on another log up to "
                        f"position {stood['position']} than the one that is here"
                    )
        if state is None or state.position < last:
            raise ValueError(f"the log ends before its last position {last}")
        if state.schema is not None:
            Model(state.make_policy).learn(events, state.position, state.fingerprint)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        at = -1 if state is None else state.position
        return Finding(name, at + 1, 0 if state is None else len(state.decisions), f"{error}")
    return Finding(name, state.position + 1, len(state.decisions), None)


def _records(store: Store, name: str) -> Iterator[Record]:
    after = -1
    while records := store.read(name, after, limit=_PAGE):
        yield from records
        after = records[-1].position
