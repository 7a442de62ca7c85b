"""What requests look like, and what is checked before anything is done with them."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    StringConstraints,
    WithJsonSchema,
)

LARGEST = 1e15
"""Largest size of a number in a context: its square must not drown everything else."""
MOST_ITEMS = 256
"""Items of one batch."""
MOST_COLUMNS = 1000


def _printable(text: str) -> str:
    """Refuse what no database, log or page should have to bear: control characters and broken Unicode."""
    for char in text:
        if unicodedata.category(char) in ("Cc", "Cs"):
            raise ValueError(f"must not contain control characters or surrogates, got U+{ord(char):04X}")
    return text


def _context(context: Any) -> Any:
    """Check the values of a context: plain ones, by name or by position."""
    if not isinstance(context, dict | list) or not 1 <= len(context) <= MOST_COLUMNS:
        raise ValueError(f"must be a mapping or a list of 1 to {MOST_COLUMNS} values")
    for name, value in context.items() if isinstance(context, dict) else enumerate(context):
        if isinstance(name, str) and not 1 <= len(_printable(name)) <= 100:
            raise ValueError(f"must name its columns with 1 to 100 characters, got {len(name)}")
        if isinstance(value, str) and len(value) <= 1000:
            _printable(value)
        elif isinstance(value, int | float) and not abs(value) <= LARGEST:
            raise ValueError(f"must hold finite numbers of at most {LARGEST:g} in size, not so in {name!r}")
        elif not isinstance(value, str | int | float | None) or isinstance(value, str):
            raise ValueError(
                f"must hold numbers, booleans, null or texts of at most 1000 characters, not so in {name!r}"
            )
    return context


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]
_NO_CONTROL = r"^[^\x00-\x1f\x7f-\x9f]*$"
Label = Annotated[
    str, StringConstraints(min_length=1, max_length=100, pattern=_NO_CONTROL), AfterValidator(_printable)
]
Unit = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=_NO_CONTROL), AfterValidator(_printable)
]
Number = Annotated[FiniteFloat, Field(strict=True, ge=-LARGEST, le=LARGEST)]
_VALUE = {
    "anyOf": [
        {"type": "number", "minimum": -LARGEST, "maximum": LARGEST},
        {"type": "string", "maxLength": 1000, "pattern": _NO_CONTROL},
        {"type": "boolean"},
        {"type": "null"},
    ]
}
Context = Annotated[
    dict[str, Any] | list[Any],
    BeforeValidator(_context),
    WithJsonSchema(
        {
            "oneOf": [
                {
                    "type": "object",
                    "propertyNames": {"minLength": 1, "maxLength": 100, "pattern": _NO_CONTROL},
                    "additionalProperties": _VALUE,
                    "minProperties": 1,
                    "maxProperties": MOST_COLUMNS,
                },
                {"type": "array", "items": _VALUE, "minItems": 1, "maxItems": MOST_COLUMNS},
            ],
            "examples": [{"age": 41, "plan": "free", "weekend": False}],
        }
    ),
]
Kind = Literal["numeric", "boolean", "date", "categorical"]
Columns = Annotated[
    dict[Label, Kind | Annotated[list[Label], Field(min_length=1, max_length=1000)]],
    Field(min_length=1, max_length=MOST_COLUMNS),
]
Mode = Literal["online", "shadow", "log_only", "frozen"]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, populate_by_name=True)


class Arm(_Strict):
    """Something that can be chosen."""

    id: Label
    features: Context | None = None
    """What is known of it, by name or by position; all arms of an experiment have features, or none has."""


class Candidate(Arm):
    """Something that can be chosen in one decision."""

    features: Context


class RewardRule(_Strict):
    """Which rewards count, and how long they are waited for."""

    wait: Annotated[float, Field(gt=0, le=366 * 86400.0)] = 86400.0
    """Seconds after the decision in which its reward counts."""
    default: Number | None = None
    """Reward of a decision that got none in time; left out, it counts as missing and teaches nothing."""
    min: Number = -1e9
    max: Number = 1e9


class PolicyChoice(_Strict):
    """A policy by its name, and settings of its own."""

    name: Literal["pfn-ts", "lin-ts", "lin-ucb", "ts", "uniform"] = "pfn-ts"
    settings: dict[
        Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")], bool | int | FiniteFloat | str
    ] = Field(default={}, max_length=16)


class Experiment(_Strict):
    """Everything that an experiment begins with."""

    name: Name
    arms: Annotated[list[Arm], Field(max_length=1000)]
    """What can be chosen; empty where every decision brings its own candidates."""
    columns: Columns | None = Field(default=None, alias="schema")
    """What the columns of a context are; taken from the first context when left out."""
    arm_columns: Columns | None = Field(default=None, alias="arm_schema")
    """What the features are; taken from the first arms or candidates when left out."""
    policy: PolicyChoice = PolicyChoice()
    reward: RewardRule = RewardRule()
    mode: Mode = "online"
    baseline_arm: Label | None = None
    """Served in shadow and log_only mode, to the holdout, and when the model is late; else the first arm."""
    explore: Share = 0.0
    """Share of decisions drawn at random among the eligible arms."""
    holdout: Share = 0.0
    """Share of units that always get the baseline arm."""


class ExperimentChange(_Strict):
    """What may be changed later; arms have addresses of their own."""

    mode: Mode | None = None
    baseline_arm: Label | None = None
    holdout: Share | None = None


class DecisionRequest(_Strict):
    """A context for which an arm is wanted."""

    decision_id: Id | None = None
    """Names the decision: asking again with the same id gives the same answer. Made up when left out."""
    unit: Unit | None = None
    """Who it is about: holdout by unit, erasure by unit."""
    context: Context
    eligible: Annotated[list[Label], Field(min_length=1, max_length=1000)] | None = None
    """Arms that may be chosen; all when left out."""
    candidates: Annotated[list[Candidate], Field(min_length=1, max_length=1000)] | None = None
    """What may be chosen, where the experiment has no arms; the first is the baseline."""

    @property
    def offered(self) -> list[Any] | None:
        """Features of the candidates."""
        return None if self.candidates is None else [candidate.features for candidate in self.candidates]


class RewardRequest(_Strict):
    """What a decision paid."""

    value: Number
    reward_id: Id | None = None


class DecisionBatch(_Strict):
    """Decisions that are asked for together."""

    items: Annotated[list[DecisionRequest], Field(min_length=1, max_length=MOST_ITEMS)]


class BatchReward(RewardRequest):
    """A reward that says to which decision it belongs."""

    decision_id: Id


class RewardBatch(_Strict):
    """Rewards that are handed in together."""

    items: Annotated[list[BatchReward], Field(min_length=1, max_length=MOST_ITEMS)]


class ImportedRow(_Strict):
    """A context, the arm (or the features of the candidate) it got, and what that paid."""

    context: Context
    arm: Label | None = None
    features: Context | None = None
    """Those of the candidate that was chosen, where the experiment has no arms."""
    value: Number
    unit: Unit | None = None
    """Who it is about, for erasure."""


class ImportRequest(_Strict):
    """Rows of a log, as a warm start."""

    import_id: Id
    """The same rows under the same id count once."""
    rows: Annotated[list[ImportedRow], Field(min_length=1, max_length=1000)]
