"""What a decision is about, on its way into a policy: as it was given, and as floats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np

from pfnts.contexts import Schema, Table, compact, plain, read
from pfnts.contexts.values import shown
from pfnts.events import CANDIDATE, ActionSet, History, Label
from pfnts.events.event import Context, Encoded
from pfnts.policies.decision import Matrix

MOST_VALUES = 1_000_000
"""Features that the candidates of one decision may have in all: a log keeps them."""


@dataclass(frozen=True)
class Rows:
    """One context or a batch of them."""

    X: Matrix
    """(n, P) floats."""
    schema: Schema
    """The schema that made them; it knows all their categories."""
    single: bool
    """Whether it was one context."""
    table: Table | None
    """As given; None where that was the floats themselves."""

    @classmethod
    def of(cls, contexts: Any, schema: Schema | None) -> Self:
        """Encode contexts by a schema, or by one inferred from them."""
        if (
            schema is not None
            and schema.plain
            and isinstance(contexts, np.ndarray)
            and contexts.dtype.kind == "f"
        ):
            return cls(schema.encode(contexts), schema, contexts.ndim == 1, None)
        table = read(contexts)
        schema = Schema.infer(table) if schema is None else schema.extended(table)
        return cls(schema.encode(table), schema, table.single, table)

    def expect(self, *, single: bool) -> Self:
        """Return itself, or complain that it is not one context, or not a batch."""
        if self.single and not single:
            raise ValueError("contexts must be a batch, got a single context; use decide")
        if single and not self.single:
            raise ValueError(f"context must be a single one, got a batch of {len(self.X)}; use decide_batch")
        return self

    def first(self, count: int) -> Self:
        """Keep the first rows."""
        return self.part(slice(count))

    def part(self, which: slice) -> Self:
        """Keep some rows."""
        table = None if self.table is None else self.table.take(np.arange(len(self.X))[which])
        return replace(self, X=self.X[which], table=table)

    def plain(self, i: int) -> Context:
        """Row i as a log keeps it."""
        if self.table is None:
            row: Matrix = self.X[i]
            return row
        return plain(replace(self.table.take(np.array([i])), single=True))

    def encoded(self, i: int) -> Encoded:
        """Row i as floats, with its schema."""
        return Encoded(self.X[i], self.schema)


@dataclass(frozen=True)
class Offer:
    """What a decision is among: the policy's arms, or candidates of its own."""

    labels: tuple[Label, ...]
    """Of the arms; of candidates, their positions."""
    actions: ActionSet
    candidates: Table | None = None
    """Features as a log keeps them; None where they are those of the policy's arms."""
    arm_schema: Schema | None = None
    """The schema that encoded them; it knows all their categories."""

    @classmethod
    def arms(cls, history: History) -> Self:
        """The policy's arms."""
        if not history.live:
            raise ValueError(
                "candidates must be given: the policy was made with arms=None and has no arms of its own"
            )
        return cls(tuple(history.labels[number] for number in history.live), history.actions)

    @classmethod
    def of(cls, candidates: Any, history: History) -> Self:
        """Encode candidates: a list of features, or a table with one row for each."""
        if isinstance(candidates, str) or not hasattr(candidates, "__len__") or not len(candidates):
            raise ValueError(
                f"candidates must be a list of features or a table, one row for each, got {shown(candidates)}"
            )
        table = read(candidates)
        if table.single:
            raise ValueError(
                f"candidates must be many, one row of features for each, got {shown(candidates)}; "
                "put a single one into a list"
            )
        if table.n_rows * len(table.names) > MOST_VALUES:
            raise ValueError(
                f"candidates must have at most {MOST_VALUES:,} features in all, got {table.n_rows:,} with "
                f"{len(table.names):,} each; leave out those that cannot be chosen"
            )
        features, schema = history.encode_features(table)
        actions = ActionSet((CANDIDATE,) * len(features), features)
        # A copy: the log must not change with what the caller does to the table.
        return cls(_positions(len(features)), actions, compact(table), schema)

    def encoded(self, encoded: Encoded, chosen: int) -> Encoded:
        """Add what the log must know of the candidate chosen."""
        if self.candidates is None:
            return encoded
        return replace(encoded, features=self.actions.features[chosen], arm_schema=self.arm_schema)


@lru_cache(maxsize=64)
def _positions(count: int) -> tuple[int, ...]:
    """Labels of candidates, shared by the decisions of a log."""
    return tuple(range(count))
