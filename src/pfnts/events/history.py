"""What a log amounts to: arms, decisions that wait for a reward, and the rows that count, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.arrays import Counts, Matrix, Vector
from pfnts.contexts import Schema, compact, read
from pfnts.contexts.values import shown
from pfnts.events.actions import CANDIDATE, ActionSet
from pfnts.events.event import (
    ArmAdded,
    ArmRemoved,
    Context,
    Corrected,
    Decided,
    Encoded,
    Event,
    Label,
    Observed,
    Rewarded,
    Shares,
)

ROWS_TO_CORRECT = 32
"""A correction counts once the history has grown by one row in so many: a model is then learned again."""
MOST_VALUES = 1_000_000
"""Features that the candidates of one decision may have in all: a log keeps them."""


@dataclass
class _Made:
    """A decision in the log."""

    row: Vector
    features: Vector
    arm: int
    label: Label
    share: float
    """Propensity of the arm."""
    place: int | None = None
    """Row of its reward; None before the reward arrived."""


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
    features
        Features of each of these arms; None where arms have no features, now and ever.
    arm_schema
        What the columns of features are; inferred from those of the first arms, or of the first candidates,
        when not given.

    Examples
    --------
    >>> history = History(["a", "b"])
    >>> history.fold(Observed(context=[0.5], arm="b", value=3.0))
    >>> history.size, history.arms, history.rewards
    (1, array([1]), array([3.]))
    """

    def __init__(
        self,
        arms: Sequence[Label],
        schema: Schema | None = None,
        *,
        features: Sequence[Context] | None = None,
        arm_schema: Schema | None = None,
    ) -> None:
        self.schema = schema
        """What the columns of a context are; None before the first."""
        self.has_features = features is not None
        """Whether arms have features."""
        self.arm_schema = arm_schema
        """What the columns of features are; None where there are none so far."""
        self.arm_features = np.empty((len(arms), 0))
        """Features of each arm number, (N, A)."""
        if features:
            self.arm_features, self.arm_schema = self.encode_features(features)
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
        self.actions = self._actions()
        """The arms that are there now."""
        self.revision = 0
        """Number of times that rewards of earlier rows were corrected."""
        self._corrections: dict[int, float] = {}
        self._corrected_at = 0
        self._decisions: dict[str, _Made] = {}
        # With room for more rows; what follows are views of the first ones.
        self._room = np.empty((0, 0)), np.empty(0, dtype=np.int64), np.empty(0), np.empty(0)
        self.rows, self.arms, self.rewards, self.shares = self._room
        """Contexts and features (n, P + A), numbers of the arms pulled (n,), rewards (n,), and propensities
        of these arms when they were chosen (n,), 1 for a row without a decision."""
        self.contexts, self.features = self.rows, self.rows
        """(n, P) encoded contexts, and (n, A) features of the arms pulled, or candidates."""

    def candidates(self, features: Any) -> ActionSet:
        """Encode what a decision brings along: a list of features, or a table with one row for each."""
        if isinstance(features, str) or not hasattr(features, "__len__") or not len(features):
            raise ValueError(
                f"candidates must be a list of features or a table, one row for each, got {shown(features)}"
            )
        table = read(features)
        if table.single:
            raise ValueError(
                f"candidates must be many, one row of features for each, got {shown(features)}; "
                "put a single one into a list"
            )
        if table.n_rows * len(table.names) > MOST_VALUES:
            raise ValueError(
                f"candidates must have at most {MOST_VALUES:,} features in all, got {table.n_rows:,} with "
                f"{len(table.names):,} each; leave out those that cannot be chosen"
            )
        floats, schema = self.encode_features(table)
        numbers, labels = (CANDIDATE,) * len(floats), _positions(len(floats))
        # A copy: the log must not change with what the caller does to the table.
        return ActionSet(numbers, floats, labels, compact(table), schema)

    def waiting(self, arms: Sequence[int]) -> Counts:
        """Decisions of each of these arm numbers that are still without a reward; 0 for candidates."""
        return _counts(np.maximum(self.decided - self.rewarded, 0), arms)

    def rows_of(self, arms: Sequence[int]) -> Counts:
        """Rows of each of these arm numbers; 0 for candidates."""
        return _counts(self.rewarded, arms)

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
        return "waiting" if made.place is None else "rewarded"

    def chosen(self, decision: str) -> Label | None:
        """Label of the arm that a decision was for; None for an unknown one."""
        made = self._decisions.get(decision)
        return None if made is None else made.label

    def encode_features(self, features: Any) -> tuple[Matrix, Schema]:
        """Encode the features (K, A) of arms or candidates by the schema so far; nothing changes."""
        try:
            table = read(features)
            return (self.arm_schema or Schema.infer(table)).learn(table)
        except ValueError as error:
            # The rules are those of contexts, and so are their words.
            words = str(error).replace("context must", "features must").replace("context", "feature")
            raise ValueError(f"arms: {words.replace('schema=', 'Features(schema=)')}") from error

    def number_of(self, arm: Any) -> int:
        """Number of an arm that is there now; any other is an error."""
        known = isinstance(arm, str | int) and not isinstance(arm, bool) and arm in self.numbers
        if not known or self.numbers[arm] not in self.live:
            removed = ", which was removed" if known else ""
            raise ValueError(f"arm must be one of {list(self.actions.labels)}, got {arm!r}{removed}")
        return self.numbers[arm]

    def check(self, event: Event) -> None:
        """Raise if an event does not fit what came before it; nothing changes."""
        match event:
            case Decided():
                self._check_decision(event)
            case Rewarded() | Corrected():
                status = self.status(event.id)
                if status == "unknown":
                    raise ValueError(
                        f"decision must be one that this policy took, it has none with the id {event.id!r}; "
                        "for a row without a decision pass context, arm= and reward="
                    )
                if isinstance(event, Rewarded) and status == "rewarded":
                    raise ValueError(f"a decision has one reward, {event.id!r} has it already")
                if isinstance(event, Corrected) and status == "waiting":
                    raise ValueError(f"a reward must be there to be corrected, {event.id!r} has none so far")
            case Observed(arm=None):
                pass
            case Observed():
                self.number_of(event.arm)
            case ArmAdded():
                if event.arm in self.actions.labels:
                    raise ValueError(f"arm must be new, {event.arm!r} is one of {list(self.actions.labels)}")
            case ArmRemoved():
                self.number_of(event.arm)
                if len(self.live) == 1:
                    raise ValueError(
                        f"arm must not be the only one left, got {event.arm!r}; add another first"
                    )
            case _:
                raise TypeError(f"events must be those of a policy's log, got {event!r}")
        self._check_features(event)

    def _check_decision(self, event: Decided) -> None:
        if not isinstance(event.id, str):
            raise ValueError(f"id must be a string, got {event.id!r}")
        if event.id in self._decisions:
            raise ValueError(f"id must be new, there is a decision {event.id!r} already")
        brought = event.candidates
        labels = self.actions.labels if brought is None else _positions(brought.n_rows)
        shares = event.propensities
        given = shares.labels if isinstance(shares, Shares) else tuple(shares)
        if (given != labels and set(given) != set(labels)) or not set(event.eligible or ()) <= set(labels):
            raise ValueError(f"propensities must be those of {list(labels)}, got {event}")
        if event.arm not in labels:
            raise ValueError(f"arm must be one of {list(labels)}, got {event.arm!r}")

    def _check_features(self, event: Event) -> None:
        match event:
            case Decided(candidates=brought) | Observed(features=brought) | ArmAdded(features=brought):
                if brought is not None and not self.has_features:
                    raise ValueError(
                        "features of arms must not be given to a policy whose arms have none, got "
                        f"{shown(brought)}; make it with a mapping of arms to features, or with arms=None"
                    )
            case _:
                return
        if isinstance(event, ArmAdded) and self.has_features and brought is None:
            raise ValueError(
                f"features must be given, as of all other arms, got none for {event.arm!r}; give None for a "
                "missing value"
            )
        if isinstance(event, Observed) and (event.arm is None) != (brought is not None):
            raise ValueError(f"a row must have either an arm or the features of a candidate, got {event}")

    def fold(self, event: Event) -> None:
        """Apply the next event, which fits."""
        match event:
            case Decided():
                row, features, number = self._encoded(event)
                share = float(event.propensities[event.arm])
                self._decisions[event.id] = _Made(row, features, number, event.arm, share)
                if number != CANDIDATE:
                    self.decided[number] += 1
            case Rewarded():
                made = self._decisions[event.id]
                self._append(made.row, made.features, made.arm, event.value, made.share)
                made.place = self.size - 1
            case Corrected():
                place = self._decisions[event.id].place
                assert place is not None
                self._corrections[place] = event.value
                self._corrected_at = self._corrected_at or self.size + max(1, self.size // ROWS_TO_CORRECT)
            case Observed():
                self._append(*self._encoded(event), event.value, 1.0)
            case ArmAdded():
                new = np.empty((1, 0))
                if event.features is not None:
                    new, self.arm_schema = self.encode_features([event.features])
                known = self.arm_features.reshape(len(self.arm_features), new.shape[1])
                self.arm_features = np.concatenate([known, new])
                # The label first: others may read the arms that are there without waiting.
                self.labels.append(event.arm)
                self.numbers[event.arm] = number = len(self.labels) - 1
                self.live = (*self.live, number)
                self.decided, self.rewarded = np.append(self.decided, 0), np.append(self.rewarded, 0)
                self.actions = self._actions()
            case ArmRemoved():
                self.live = tuple(number for number in self.live if number != self.numbers[event.arm])
                self.actions = self._actions()
        self.position += 1

    def _encoded(self, event: Decided | Observed) -> tuple[Vector, Vector, int]:
        """Row, features and number of the arm of an event; the schemas learn its categories."""
        known = event.encoded
        if known is None:
            table = read(event.context)
            [row], schema = (self.schema or Schema.infer(table)).learn(table)
            known = Encoded(row, schema)
        self.schema = known.schema
        brought = event.candidates if isinstance(event, Decided) else event.features
        if brought is None:
            number = self.numbers[event.arm]  # type: ignore[index]
            return known.row, self.arm_features[number], number
        if known.features is not None:
            self.arm_schema = known.arm_schema
            return known.row, known.features, CANDIDATE
        listed, place = (brought, event.arm) if isinstance(event, Decided) else ([brought], 0)
        features, self.arm_schema = self.encode_features(listed)
        return known.row, features[place], CANDIDATE  # type: ignore[index]

    def _actions(self) -> ActionSet:
        labels = tuple(self.labels[number] for number in self.live)
        return ActionSet(self.live, self.arm_features[list(self.live)], labels)

    def _append(self, row: Vector, features: Vector, arm: int, reward: float, share: float) -> None:
        n, width = self.size, len(row)
        if n == len(self._room[2]):
            room, columns = max(64, 2 * n), width + len(features)
            self._room = (
                _grown(self.rows, (room, columns)),
                _grown(self.arms, (room,)),
                _grown(self.rewards, (room,)),
                _grown(self.shares, (room,)),
            )
        rows, arms, rewards, shares = self._room
        rows[n, :width], rows[n, width:] = row, features
        arms[n], rewards[n], shares[n] = arm, reward, share
        if arm != CANDIDATE:
            self.rewarded[arm] += 1
        self.size = n = n + 1
        self.rows, self.arms, self.rewards, self.shares = rows[:n], arms[:n], rewards[:n], shares[:n]
        self.contexts, self.features = self.rows[:, :width], self.rows[:, width:]
        if self._corrections and n >= self._corrected_at:
            for place, value in self._corrections.items():
                rewards[place] = value
            self._corrections, self._corrected_at = {}, 0
            self.revision += 1


def _grown(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Copy rows into a larger array."""
    grown = np.empty(shape, dtype=array.dtype)
    if len(array):
        grown[: len(array)] = array
    return grown


@lru_cache(maxsize=64)
def _positions(count: int) -> tuple[int, ...]:
    """Labels of candidates, shared by the decisions of a log."""
    return tuple(range(count))


def _counts(counts: Counts, arms: Sequence[int]) -> Counts:
    return np.array([counts[arm] if arm != CANDIDATE else 0 for arm in arms], dtype=np.int64)
