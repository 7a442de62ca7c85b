"""What the service asks of a store: append in one order, find by id, read in order."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

FORMAT = 2
"""Number of the tables' format; a store of an older one is brought up to it when it is opened."""

Context: TypeAlias = dict[str, Any] | list[Any]


class StoreUnavailableError(RuntimeError):
    """The store did not take or give what was asked for; nothing was acknowledged."""


class FencedError(RuntimeError):
    """Another process leads by now; what this one wanted to write as the leader was not written."""


@dataclass(frozen=True)
class Draft:
    """An entry that wants a position in an experiment's log."""

    experiment: str
    kind: str
    id: str
    """Unique among the entries of its kind in the experiment."""
    time: float
    data: dict[str, Any]
    unit: str | None = None
    context: Context | None = None
    candidates: list[Context] | None = None
    """Features of the candidates that a decision was among, or of the one that a row is about."""
    needs: str | None = None
    """Id of a decision that must be in the log."""
    revision: int | None = None
    """Number of administrative entries that the log must have, so that no two changes cross."""
    new: bool = False
    """Whether it begins a log; any other entry needs one."""


@dataclass(frozen=True)
class Record:
    """An entry of an experiment's log."""

    experiment: str
    position: int
    kind: str
    id: str
    time: float
    data: dict[str, Any] = field(compare=False)
    text: str
    """``data`` as it is stored."""
    unit: str | None = None
    context: Context | None = None
    candidates: list[Context] | None = None


ADMINISTRATIVE = ("arm_added", "arm_removed", "changed", "schema")
"""Kinds of entries of which the order decides what is allowed."""


@dataclass(frozen=True)
class Key:
    """Who may do what; of the key itself only a hash is stored."""

    id: str
    name: str
    role: str
    experiment: str | None
    """The only experiment it is good for; None for all."""
    digest: str
    created: float
    revoked: float | None = None


class Store(ABC):
    """Logs of experiments, keys, and a few facts about the store itself.

    Positions of an experiment are 0, 1, 2, ... without gaps, in the order in which entries became visible.
    What `append` returned is on the disk. `append` and `erase` are called by one thread at a time; all else
    by any thread.
    """

    many: bool
    """Whether other processes may append as well."""

    @abstractmethod
    def append(self, drafts: Sequence[Draft], *, epoch: int | None = None) -> list[Record | None]:
        """Append drafts in one transaction; None for each whose id is taken or whose conditions fail.

        With ``epoch``, nothing is written unless this process still leads under that number.
        """

    @abstractmethod
    def erase(self, draft: Draft, unit: str) -> tuple[Record | None, int]:
        """Forget what is known of a unit, and append the draft, in one transaction; count the entries."""

    def scrub(self) -> None:  # noqa: B027 (most stores have nothing to do)
        """Remove what was erased from files in which the store still has it."""

    @abstractmethod
    def find(self, experiment: str, kind: str, id: str) -> Record | None:
        """Look an entry up by its id."""

    @abstractmethod
    def read(self, experiment: str, after: int, *, limit: int = 1000) -> list[Record]:
        """Entries past a position, in order."""

    @abstractmethod
    def last(self, experiment: str, kind: str, *, limit: int) -> list[Record]:
        """The newest entries of a kind, newest first."""

    @abstractmethod
    def experiments(self) -> dict[str, int]:
        """Names of the experiments, and the last position of each."""

    def time(self) -> float:
        """Seconds since 1970 by the clock that all processes of the store share."""
        return time.time()

    @abstractmethod
    def meta(self, name: str, default: str | None = None) -> str | None:
        """A fact about the store; ``default`` is stored first if there is none."""

    @abstractmethod
    def probe(self) -> None:
        """Write something harmless; raises `StoreUnavailableError` if the store takes nothing."""

    @abstractmethod
    def lead(self, holder: str, *, seconds: float) -> int | None:
        """Lead, or go on leading, for so long: the epoch, or None while another process leads."""

    @abstractmethod
    def keys(self) -> list[Key]:
        """All keys, revoked ones included."""

    @abstractmethod
    def add_key(self, key: Key) -> None:
        """Store a key."""

    @abstractmethod
    def revoke_key(self, id: str, time: float) -> bool:
        """Revoke a key; False if there is none, or it was revoked before."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""


def dumps(value: Any, *, canonical: bool = False) -> str:
    """Write JSON; ``canonical`` gives mappings that are equal the same text, whatever their order.

    Examples
    --------
    >>> dumps({"b": 1, "a": None}), dumps({"b": 1, "a": None}, canonical=True)
    ('{"b":1,"a":null}', '{"a":null,"b":1}')
    """
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), sort_keys=canonical)
