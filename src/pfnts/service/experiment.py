"""The state of an experiment: a fold over the records of its log."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any

from pfnts import policies
from pfnts.contexts import Schema
from pfnts.events import ArmAdded, ArmRemoved, Event, Observed, Rewarded, from_dict
from pfnts.layouts import Features
from pfnts.policies import Policy
from pfnts.service.schemas import Experiment
from pfnts.service.series import Cell, Series
from pfnts.service.store.base import ADMINISTRATIVE, Record

_RECENT = 50
_PASSED_OVER = 5000
CANDIDATES = "candidates"
"""What candidates are counted as, in the place of an arm."""


@dataclass(slots=True)
class Made:
    """A decision in the log."""

    position: int
    time: float
    deadline: float
    arm: str
    group: str
    """Who chose: "policy", or the baseline for the "holdout" or because of the mode ("baseline")."""
    settled: str | None = None
    """By what it was settled: "reward", "default" or "missing"; None while it waits."""
    value: float | None = None
    learnable: bool = True
    """Whether it is in the policy's log."""
    held_out: float | None = None
    """Probability with which its unit was held out; None while the mode kept the policy from serving."""


class ExperimentState:
    """Everything the service knows about an experiment, folded from its records and from nothing else.

    Parameters
    ----------
    first
        The record that began it.
    """

    def __init__(self, first: Record) -> None:
        self.settings = Experiment.model_validate(first.data["settings"])
        self.name = self.settings.name
        self.created = first.time
        self.mode: str = self.settings.mode
        self.holdout = self.settings.holdout
        self.arms: list[str] = [arm.id for arm in self.settings.arms]
        self.removed: set[str] = set()
        self.ever = tuple(self.arms)
        """All arms there ever were, in the order in which they came."""
        self.features = {arm.id: arm.features for arm in self.settings.arms if arm.features is not None}
        """Those of each arm there ever was; empty where arms have none."""
        self.baseline = self.settings.baseline_arm or next(iter(self.arms), None)
        """None where decisions bring candidates, the first of which it is."""
        self.arm_schema = self._first_arm_schema()
        self.schema = None if self.arm_schema is None and not self.arms else self.declared
        """What the columns of a context are; None before all columns, those of candidates too, are known."""
        self.revision = 0
        """Administrative entries so far."""
        self.position = -1
        self.time = first.time
        self.decisions: dict[str, Made] = {}
        self.counts: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.groups: dict[str, Cell] = {}
        self.series = Series()
        self.recent: deque[Record] = deque(maxlen=_RECENT)
        self._waiting: list[tuple[float, str]] = []
        self._withheld: list[Event] = []
        self._chain = hashlib.sha256()

    @property
    def declared(self) -> Schema | None:
        """What the experiment said about its columns in the beginning."""
        return None if self.settings.columns is None else Schema.of(self.settings.columns)

    def _first_arm_schema(self) -> Schema | None:
        if self.settings.arm_columns is not None:
            return Schema.of(self.settings.arm_columns)
        return Schema.infer(list(self.features.values())) if self.features else None

    @property
    def brings(self) -> bool:
        """Whether every decision brings its own candidates."""
        return not self.settings.arms

    @property
    def fingerprint(self) -> str:
        """Hash of the log up to the position; contexts are left out, since they may be erased."""
        return self._chain.hexdigest()[:16]

    @property
    def learns(self) -> bool:
        """Whether rewards reach the model now."""
        return self.mode in ("online", "shadow")

    def make_policy(self) -> Policy:
        """Make the policy that has seen nothing."""
        choice = self.settings.policy
        options: dict[str, Any] = dict(choice.settings)
        if choice.name != "uniform":
            options["explore"] = self.settings.explore
        first = [arm.id for arm in self.settings.arms]
        arms: Any = {arm: self.features[arm] for arm in first} if self.features else first or None
        by_features = choice.name == "pfn-ts" and options.get("encoding", "features") == "features"
        if self.arm_schema is not None and by_features:
            options["encoding"] = Features(schema=self.arm_schema)
        return policies.make(choice.name, arms=arms, schema=self.schema, **options)

    def due(self, now: float, *, limit: int) -> list[str]:
        """Ids of decisions whose time is over, at most so many; they stay here until they are settled."""
        found: list[str] = []
        kept = []
        for _ in range(_PASSED_OVER):  # others wait for the lock meanwhile
            if not self._waiting or self._waiting[0][0] >= now or len(found) == limit:
                break
            entry = heapq.heappop(self._waiting)
            if self.decisions[entry[1]].settled is None:
                found.append(entry[1])
                kept.append(entry)
        for entry in kept:
            heapq.heappush(self._waiting, entry)
        return found

    def fold(self, record: Record) -> list[Event]:
        """Take in the next record; the events that the policy has to take in."""
        if record.position != self.position + 1:
            raise ValueError(
                f"records must have no gaps, got {record.position} after {self.position} in {self.name!r}"
            )
        handler = getattr(self, f"_{record.kind}")
        events: list[Event] = handler(record)
        self.position = record.position
        self.time = max(self.time, record.time)
        self.revision += record.kind in ADMINISTRATIVE
        self.counts[record.kind] += 1
        self._chain.update(f"{record.position} {record.kind} {record.id} {record.text}\n".encode())
        return events

    def _created(self, record: Record) -> list[Event]:  # noqa: ARG002
        return []

    def _schema(self, record: Record) -> list[Event]:
        self.schema = Schema.from_json(record.data["schema"])
        if "arm_schema" in record.data:
            self.arm_schema = Schema.from_json(record.data["arm_schema"])
        return []

    def _changed(self, record: Record) -> list[Event]:
        self.mode = record.data.get("mode", self.mode)
        self.baseline = record.data.get("baseline_arm", self.baseline)
        self.holdout = record.data.get("holdout", self.holdout)
        if not self.learns:
            return []
        events, self._withheld = self._withheld, []
        return events

    def _arm_added(self, record: Record) -> list[Event]:
        features = record.data.get("features")
        if features is not None:
            self.features = {**self.features, record.id: features}
        self.arms = [*self.arms, record.id]  # others look at the list without waiting
        self.ever = (*self.ever, record.id)
        return [ArmAdded(record.id, features)]

    def _arm_removed(self, record: Record) -> list[Event]:
        if record.id not in self.arms:
            raise ValueError(f"an arm that is removed must be there, {record.id!r} is not")
        self.arms = [arm for arm in self.arms if arm != record.id]
        self.removed = {*self.removed, record.id}
        return [ArmRemoved(record.id)]

    def _decided(self, record: Record) -> list[Event]:
        data = record.data
        arm, shares = served(data)
        made = Made(record.position, record.time, data["deadline"], arm, data["group"])
        # A decision whose context was erased, or whose arm was removed just before, teaches nothing.
        made.learnable = record.context is not None and (self.brings or arm in self.arms)
        made.held_out = self.holdout if self.mode in ("online", "frozen") else None
        self.decisions[record.id] = made
        heapq.heappush(self._waiting, (made.deadline, record.id))
        self.reasons[data["event"]["reason"]] += 1
        cell = self.series.at(record.time, self._shown(arm))
        cell.decisions += 1
        cell.entropy += entropy(list(shares.values()))
        self.groups.setdefault(made.group, Cell()).decisions += 1
        self.recent.append(record)
        return [self._for_policy(record)] if made.learnable else []

    def _for_policy(self, record: Record) -> Event:
        """The event of a decision as the policy wants it: about the arms that are there at its position.

        Another arm may have been added or removed after the model answered and before that was stored.
        """
        if record.candidates is not None:
            return from_dict(
                {**record.data["event"], "context": record.context, "candidates": record.candidates}
            )
        event, shares = record.data["event"], dict(record.data["event"]["propensities"])
        eligible = event["eligible"]
        if shares.keys() != set(self.arms) or eligible is not None:
            event = event | {
                "propensities": [[arm, shares.get(arm, 0.0)] for arm in self.arms],
                "eligible": eligible and [arm for arm in eligible if arm in self.arms],
            }
        return from_dict({**event, "context": record.context})

    def _settled(self, record: Record) -> list[Event]:
        made = self.decisions[record.id]
        made.settled = record.data["by"]
        made.value = record.data["value"]
        self.counts[made.settled] += 1
        if made.value is None:
            return []
        for cell in (self.series.at(made.time, self._shown(made.arm)), self.groups[made.group]):
            cell.rewards += 1
            cell.total += made.value
            cell.squares += made.value**2
        return self._taught([Rewarded(record.id, made.value)] if made.learnable else [])

    def _late(self, record: Record) -> list[Event]:  # noqa: ARG002
        return []

    def _observed(self, record: Record) -> list[Event]:
        arm, value = record.data["arm"], record.data["value"]
        if record.context is None or (arm not in self.arms and not self.brings):
            return []
        features = None if record.candidates is None else record.candidates[0]
        return self._taught([Observed(record.context, arm, value, imported=True, features=features)])

    def _erased(self, record: Record) -> list[Event]:  # noqa: ARG002
        return []

    def _shown(self, arm: str) -> str:
        """Under which name an arm is counted: candidates come once, and are counted together."""
        return CANDIDATES if self.brings else arm

    def _taught(self, events: list[Event]) -> list[Event]:
        if self.learns:
            return events
        self._withheld += events
        return []


def served(data: dict[str, Any], of: str = "event") -> tuple[str, dict[str, float]]:
    """Arm and propensities of a decision by their ids; a policy's log has candidates by their positions.

    Parameters
    ----------
    data
        Of the decision's record.
    of
        "event", or "shadow" for what the model would have done.

    Examples
    --------
    >>> served({"event": {"arm": 1, "propensities": [[0, 0.2], [1, 0.8]]}, "candidates": ["x", "y"]})
    ('y', {'x': 0.2, 'y': 0.8})
    """
    names, event = data.get("candidates"), data[of]
    if names is None:
        return event["arm"], dict(event["propensities"])
    return names[event["arm"]], {names[place]: share for place, share in event["propensities"]}


def entropy(shares: list[float]) -> float:
    """Entropy of propensities as a share of the largest possible: 0 for a sure choice, 1 for any alike.

    Examples
    --------
    >>> entropy([0.5, 0.5]), entropy([1.0, 0.0]), entropy([1.0])
    (1.0, 0.0, 0.0)
    """
    if len(shares) < 2:
        return 0.0
    return -sum(share * math.log(share) for share in shares if share > 0) / math.log(len(shares)) + 0.0
