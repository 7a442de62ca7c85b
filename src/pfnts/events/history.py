"""What a log amounts to: arms, decisions that wait for a reward, and the rows that count, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema, read
from pfnts.events.event import (
    ArmAdded,
    ArmRemoved,
    Context,
    Decided,
    Encoded,
    Event,
    Label,
    Observed,
    Rewarded,
)

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass
class _Made:
    """A decision in the log."""

    row: Vector
    arm: int
    rewarded: bool = False


class History:
    """The fold over a policy's events.

    An arm's number is its place among all arms there have ever been: it never changes and is never given to
    another arm, so that rows of removed arms keep their meaning. Rows are in the order in which rewards came.

    Parameters
    ----------
    arms
        Labels of the arms at the beginning.
    schema
        What the columns of a context are; inferred from the first context when not given.

    Examples
    --------
    >>> history = History(["a", "b"])
    >>> history.fold(Observed(context=[0.5], arm="b", value=3.0))
    >>> history.size, history.arms, history.rewards
    (1, array([1]), array([3.]))
    """

    def __init__(self, arms: Sequence[Label], schema: Schema | None = None) -> None:
        self.schema = schema
        """What the columns of a context are; None before the first."""
        self.labels: list[Label] = list(arms)
        """Labels by number, of all arms there have ever been."""
        self.live: tuple[int, ...] = tuple(range(len(self.labels)))
        """Numbers of the arms that are there now."""
        self.decided = np.zeros(len(self.labels), dtype=np.int64)
        """Decisions for each arm number, rewarded or not."""
        self.rewarded = np.zeros(len(self.labels), dtype=np.int64)
        """Rewards of each arm number."""
        self.size = 0
        """Rows that count."""
        self.position = 0
        """Events folded."""
        self.numbers: dict[Label, int] = {label: number for number, label in enumerate(self.labels)}
        """Number of the newest arm of each label, there now or not."""
        self._decisions: dict[str, _Made] = {}
        self._contexts = np.empty((0, 0))
        self._arms = np.empty(0, dtype=np.int64)
        self._rewards = np.empty(0)

    @property
    def contexts(self) -> Matrix:
        """(n, P) encoded contexts."""
        return self._contexts[: self.size]

    @property
    def arms(self) -> NDArray[np.int64]:
        """(n,) numbers of the arms pulled."""
        return self._arms[: self.size]

    @property
    def rewards(self) -> Vector:
        """(n,) rewards."""
        return self._rewards[: self.size]

    def new_ids(self, count: int) -> list[str]:
        """Ids that no decision has yet: numbers in the log."""
        found: list[str] = []
        number = len(self._decisions)
        while len(found) < count:
            if str(number) not in self._decisions:
                found.append(str(number))
            number += 1
        return found

    def status(self, decision: str) -> str:
        """Say of a decision's id whether it is "unknown", "waiting" for its reward, or "rewarded"."""
        made = self._decisions.get(decision)
        if made is None:
            return "unknown"
        return "rewarded" if made.rewarded else "waiting"

    def encode(self, context: Context) -> Encoded:
        """Encode one context by the schema so far; nothing changes."""
        table = read(context)
        schema = Schema.infer(table) if self.schema is None else self.schema.extended(table)
        return Encoded(schema.encode(table)[0], schema)

    def check(self, event: Event) -> None:
        """Complain if an event does not fit what came before it; nothing changes."""
        live = {self.labels[number] for number in self.live}
        match event:
            case Decided() if self.status(event.id) != "unknown":
                raise ValueError(f"id must be new, there is a decision {event.id!r} already")
            case Decided() if set(event.propensities) != live or not set(event.eligible or ()) <= live:
                raise ValueError(f"propensities must be those of {sorted(map(str, live))}, got {event}")
            case Rewarded() if self.status(event.id) == "unknown":
                raise ValueError(f"id must be that of a decision in the log, there is no {event.id!r}")
            case Rewarded() if self.status(event.id) == "rewarded":
                raise ValueError(f"a decision has one reward, {event.id!r} has it already")
            case ArmAdded() if event.arm in live:
                raise ValueError(f"arm must be new, {event.arm!r} is one of {sorted(map(str, live))}")
            case Decided() | Observed() | ArmRemoved() if event.arm not in live:
                raise ValueError(f"arm must be one of {sorted(map(str, live))}, got {event.arm!r}")
            case ArmRemoved() if len(live) == 1:
                raise ValueError(f"arm must not be the only one left, got {event.arm!r}; add another first")

    def fold(self, event: Event) -> None:
        """Take in the next event, which fits."""
        match event:
            case Decided():
                row, number = self._encoded(event), self.numbers[event.arm]
                self._decisions[event.id] = _Made(row, number)
                self.decided[number] += 1
            case Rewarded():
                made = self._decisions[event.id]
                self._append(made.row, made.arm, event.value)
                made.rewarded = True
            case Observed():
                self._append(self._encoded(event), self.numbers[event.arm], event.value)
            case ArmAdded():
                # The label first: others may read the arms that are there without waiting.
                self.labels.append(event.arm)
                self.numbers[event.arm] = number = len(self.labels) - 1
                self.live = (*self.live, number)
                self.decided, self.rewarded = np.append(self.decided, 0), np.append(self.rewarded, 0)
            case ArmRemoved():
                self.live = tuple(number for number in self.live if number != self.numbers[event.arm])
        self.position += 1

    def _encoded(self, event: Decided | Observed) -> Vector:
        encoded = self.encode(event.context) if event.encoded is None else event.encoded
        self.schema = encoded.schema
        return encoded.row

    def _append(self, row: Vector, arm: int, reward: float) -> None:
        if self.size == len(self._rewards):
            room = max(64, 2 * self.size)
            grown = np.empty((room, len(row))), np.empty(room, dtype=np.int64), np.empty(room)
            if self.size:
                for new, old in zip(grown, (self._contexts, self._arms, self._rewards), strict=True):
                    new[: self.size] = old
            self._contexts, self._arms, self._rewards = grown
        self._contexts[self.size], self._arms[self.size], self._rewards[self.size] = row, arm, reward
        self.rewarded[arm] += 1
        self.size += 1
