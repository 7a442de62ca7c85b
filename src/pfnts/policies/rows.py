"""Contexts on their way into a policy: as they were given, and as floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from pfnts.contexts import Schema, Table, plain_rows, read
from pfnts.contexts.schema import encoded
from pfnts.events.event import Context
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
    def of(cls, contexts: Any, schema: Schema | None, *, single: bool | None = None) -> Self:
        """Encode contexts by a schema, or by one inferred from them.

        ``single`` is whether one context must be given, or a batch; None where either will do.
        """
        if (
            schema is not None
            and schema.plain
            and isinstance(contexts, np.ndarray)
            and contexts.dtype.kind == "f"
        ):
            rows = cls(schema.encode(contexts), schema, contexts.ndim == 1, None)
        else:
            table = read(contexts)
            X, schema = encoded(table, schema)
            rows = cls(X, schema, table.single, table)
        if rows.single and single is False:
            raise ValueError("contexts must be a batch, got a single context; use decide")
        if not rows.single and single:
            raise ValueError(f"context must be a single one, got a batch of {len(rows.X)}; use decide_batch")
        return rows

    def part(self, which: slice) -> Self:
        """Keep some rows."""
        table = None if self.table is None else self.table.take(np.arange(len(self.X))[which])
        return replace(self, X=self.X[which], table=table)

    @cached_property
    def contexts(self) -> Sequence[Context]:
        """As a log keeps them."""
        return self.X if self.table is None else plain_rows(self.table)  # type: ignore[return-value]
