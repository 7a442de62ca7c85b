"""Contexts on their way into a policy: as they were given, and as floats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from pfnts.contexts import Schema, Table, plain, read
from pfnts.events.event import Context, Encoded
from pfnts.policies.decision import Matrix


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
        table = None if self.table is None else self.table.take(np.arange(count))
        return replace(self, X=self.X[:count], table=table)

    def plain(self, i: int) -> Context:
        """Row i as a log keeps it."""
        if self.table is None:
            row: Matrix = self.X[i]
            return row
        return plain(replace(self.table.take(np.array([i])), single=True))

    def encoded(self, i: int) -> Encoded:
        """Row i as floats, with its schema."""
        return Encoded(self.X[i], self.schema)
