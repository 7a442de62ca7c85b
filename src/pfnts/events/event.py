"""The events of a policy's log: frozen, and plain JSON when written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema, Table, compact, plain, plain_rows

Label: TypeAlias = str | int
LARGEST_REWARD = 1e100
"""Largest size of a reward: its square, and sums of squares, must stay finite."""
Context: TypeAlias = dict[str, Any] | list[Any] | NDArray[np.float64]
"""One context as plain JSON values, by name or by position; or a row of floats. Features of arms likewise."""


@dataclass(frozen=True, eq=False, repr=False)
class Shares(Mapping[Label, float]):
    """Propensities by label, in eight bytes each: a log has those of all arms in every decision.

    Examples
    --------
    >>> Shares(("a", "b"), np.array([0.25, 0.75]))
    {'a': 0.25, 'b': 0.75}
    """

    labels: tuple[Label, ...]
    shares: NDArray[np.float64]

    def __getitem__(self, label: Label) -> float:
        try:
            return float(self.shares[self.labels.index(label)])
        except ValueError:
            raise KeyError(label) from None

    def __iter__(self) -> Iterator[Label]:
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return repr(dict(self))

    def items(self) -> Any:
        """Label and propensity of each arm."""
        return dict(zip(self.labels, self.shares.tolist(), strict=True)).items()


@dataclass(frozen=True)
class Encoded:
    """A context as floats, and the schema that made them: known while an event has not left the process."""

    row: NDArray[np.float64]
    """(P,)"""
    schema: Schema
    """It knows the categories of this context."""
    features: NDArray[np.float64] | None = None
    """(A,) those of the candidate chosen, where there were candidates."""
    arm_schema: Schema | None = None
    """It knows the categories of all candidates."""


@dataclass(frozen=True)
class Decided:
    """An arm was chosen at a context."""

    kind: ClassVar[str] = "decided"
    id: str
    """Names the decision; its reward refers to it."""
    context: Context
    arm: Label
    """Label of the arm; where there were candidates, the position of one."""
    propensities: Mapping[Label, float]
    """Probability of each arm that was there, by label; of each candidate, by position."""
    reason: str
    """How the decision came about: "warmup", "thompson", "greedy", "explore", "holdout",
    "max_share" or "fallback"."""
    eligible: tuple[Label, ...] | None = None
    """Arms that could have been chosen; None for all."""
    candidates: Table | None = field(default=None, compare=False)
    """Features of the candidates that the decision was among; None where it was among the policy's arms."""
    encoded: Encoded | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Rewarded:
    """The reward of a decision arrived."""

    kind: ClassVar[str] = "rewarded"
    id: str
    """The decision's."""
    value: float


@dataclass(frozen=True)
class Corrected:
    """The reward of a decision was another one."""

    kind: ClassVar[str] = "corrected"
    id: str
    """The decision's, which has a reward."""
    value: float


@dataclass(frozen=True)
class Observed:
    """A reward arrived together with its context and arm: a row without a decision."""

    kind: ClassVar[str] = "observed"
    context: Context
    arm: Label | None
    """Label of the arm; None for a candidate."""
    value: float
    imported: bool = False
    """Whether it came with somebody else's log (`Policy.learn`), and not from this policy's own use."""
    encoded: Encoded | None = field(default=None, compare=False, repr=False)
    features: Context | None = None
    """Those of a candidate; an arm's are known."""


@dataclass(frozen=True)
class ArmAdded:
    """An arm became available."""

    kind: ClassVar[str] = "arm_added"
    arm: Label
    features: Context | None = None
    """What is known of it; None where arms have no features."""


@dataclass(frozen=True)
class ArmRemoved:
    """An arm is no longer available; what it taught stays."""

    kind: ClassVar[str] = "arm_removed"
    arm: Label


Event: TypeAlias = Decided | Rewarded | Corrected | Observed | ArmAdded | ArmRemoved

_KINDS: dict[str, type[Event]] = {
    event.kind: event for event in (Decided, Rewarded, Corrected, Observed, ArmAdded, ArmRemoved)
}


def to_dict(event: Event) -> dict[str, Any]:
    """Write an event as plain JSON values.

    Examples
    --------
    >>> to_dict(Rewarded("7", 1.0))
    {'kind': 'rewarded', 'id': '7', 'value': 1.0}
    """
    values = {f.name: getattr(event, f.name) for f in fields(event) if f.name != "encoded"}
    for name in ("candidates", "features"):
        if values.get(name, ()) is None:
            del values[name]
    for name in ("context", "features"):
        if name in values:
            values[name] = plain(values[name])
    if isinstance(event, Decided):
        # JSON has no keys but texts, and a label 1 is not the label "1".
        values["propensities"] = [[arm, share] for arm, share in event.propensities.items()]
        values["eligible"] = None if event.eligible is None else list(event.eligible)
        if event.candidates is not None:
            values["candidates"] = plain_rows(event.candidates)
    return {"kind": event.kind, **values}


def from_dict(values: dict[str, Any]) -> Event:
    """Read what `to_dict` wrote; anything else is a ValueError.

    Examples
    --------
    >>> from_dict({"kind": "arm_added", "arm": "b"})
    ArmAdded(arm='b', features=None)
    """
    try:
        values = dict(values)
        kind = _KINDS[values.pop("kind")]
        if kind is Decided:
            shares = values["propensities"]
            values["propensities"] = {_label(arm): _number(share, 0.0, 1.0 + 1e-9) for arm, share in shares}
            values["eligible"] = (
                None if values["eligible"] is None else tuple(map(_label, values["eligible"]))
            )
            if "candidates" in values:
                values["candidates"] = compact(list(map(_context, values["candidates"])))
        if "value" in values:
            values["value"] = _number(values["value"], -LARGEST_REWARD, LARGEST_REWARD)
        if "arm" in values and not (kind is Observed and values["arm"] is None):
            _label(values["arm"])
        texts = values.get("id", ""), values.get("reason", "")
        if not all(isinstance(text, str) for text in texts) or "encoded" in values:
            raise TypeError("id and reason are texts, and floats are made by the schema")
        if not isinstance(values.get("imported", False), bool):
            raise TypeError("imported is true or false")
        for name in ("context", "features"):
            _context(values.get(name, []))
        return kind(**values)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"events must be those of a policy's log, got {str(values)[:200]} ({error})"
        ) from error


def _label(value: Any) -> Label:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no label")
    return value


def _context(value: Any) -> Any:
    if not isinstance(value, dict | list):
        raise TypeError("a context, or features, are a mapping or a list")
    return value


def _number(value: Any, least: float, most: float) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise TypeError(f"{value!r} is no number from {least:g} to {most:g}")
    return float(value)
