"""What the columns of a context are, and the float matrix they become."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts.column import Column, Matrix
from pfnts.contexts.inference import infer_column
from pfnts.contexts.table import Table, plain_rows, read
from pfnts.contexts.values import shown

MOST_FLOATS = 100_000
"""Floats that an encoded row may have."""


@dataclass(frozen=True)
class Schema:
    """Turns contexts into rows of floats, NaN where a value is missing.

    Parameters
    ----------
    columns
        The columns, in the order of the floats.

    Examples
    --------
    >>> schema = Schema.of({"age": "numeric", "vip": "boolean", "clinic": [1, 2]})
    >>> schema.encode({"age": 41, "vip": None, "clinic": 2.0})
    array([[41., nan,  0.,  1.]])
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not self.columns or not all(isinstance(column, Column) for column in self.columns):
            raise ValueError(f"schema must have at least one column, got {shown(self.columns)}")
        # Before anything of that size is made.
        width = sum(column.slots for column in self.columns)
        if width > MOST_FLOATS:
            raise ValueError(f"schema must make at most {MOST_FLOATS:,} floats of a context, got {width:,}")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"schema must have distinct column names, got {shown(list(self.names))}")

    @classmethod
    def of(cls, columns: Schema | Mapping[Any, Any]) -> Schema:
        """Make a schema from names to a kind, or to the list of categories; a schema stays as it is.

        Examples
        --------
        >>> Schema.of({"age": "numeric", "seen": "date", "plan": ["free", "paid"]}).features
        ('age', 'seen', 'plan=free', 'plan=paid')
        """
        if isinstance(columns, Schema):
            return columns
        if not isinstance(columns, Mapping) or not columns:
            raise ValueError(
                "schema must be a mapping of column names to kinds or lists of categories, got "
                f'{shown(columns)}; columns without names are called "0", "1", ...'
            )
        return cls(tuple(Column.of(str(name), kind) for name, kind in columns.items()))

    @classmethod
    def infer(cls, contexts: Any) -> Schema:
        """Guess the columns from contexts: booleans, numbers, dates, all else categories."""
        table = read(contexts)
        if not table.n_rows or not table.names:
            raise ValueError(
                "context must have at least one row and one column to infer a schema from, got "
                f"{table.n_rows} and {len(table.names)}; pass schema="
            )
        return cls(
            tuple(
                infer_column(name, values, nominal=name in table.nominal, written=table.written)
                for name, values in zip(table.names, table.columns, strict=True)
            )
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def width(self) -> int:
        """Number of floats in an encoded row."""
        return len(self.features)

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the floats in an encoded row."""
        return tuple(feature for column in self.columns for feature in column.features)

    @cached_property
    def plain(self) -> bool:
        """Whether every column is numeric."""
        return all(column.kind == "numeric" for column in self.columns)

    @cached_property
    def positional(self) -> bool:
        """Whether the columns are positions ("0", "1", ...), so that rows without names fit."""
        return self.names == tuple(map(str, range(len(self.columns))))

    def encode(self, contexts: Any) -> Matrix:
        """Encode one context or a batch as (n, width).

        A category without a place becomes all zeros; `extended` gives it one where one is free.

        Examples
        --------
        >>> Schema.of({"age": "numeric"}).encode([{"age": "41"}, {"age": "NA"}])
        array([[41.],
               [nan]])
        """
        if isinstance(contexts, np.ndarray) and contexts.dtype.kind == "f" and self._fast:
            return self._checked(contexts)
        columns = self._arranged(read(contexts))
        return np.concatenate(list(map(Column.encode, self.columns, columns)), axis=1)

    def extended(self, contexts: Any) -> Schema:
        """Give free one-hot places to categories not met before; the width stays as it is.

        Examples
        --------
        >>> Schema.infer({"plan": "free"}).extended({"plan": "paid"}).features[:3]
        ('plan=free', 'plan=paid', 'plan#2')
        """
        if self.plain:
            return self
        columns = tuple(map(Column.extended, self.columns, self._arranged(read(contexts))))
        return self if columns == self.columns else Schema(columns)

    def learn(self, table: Table) -> tuple[Matrix, Schema]:
        """Encode a table as (n, width) by the schema that is `extended` by it, and give that one as well."""
        given = table.columns if table.names == self.names else self._arranged(table)
        columns = tuple(
            column
            if column.kind != "categorical" or all(type(v) is str and v in column.places for v in values)
            else column.extended(values)
            for column, values in zip(self.columns, given, strict=True)
        )
        X = np.concatenate(list(map(Column.encode, columns, given)), axis=1)
        return X, self if columns == self.columns else Schema(columns)

    def closed(self) -> Schema:
        """Sort the categories and give up spare places: the schema of a table that is there in full."""
        return Schema(
            tuple(
                replace(c, categories=tuple(sorted(c.categories)), slots=len(c.categories) or 1)
                for c in self.columns
            )
        )

    def to_json(self) -> str:
        """Write the schema as JSON text."""
        return json.dumps(
            [
                {"name": c.name, "kind": c.kind, "categories": list(c.categories), "slots": c.slots}
                for c in self.columns
            ]
        )

    @classmethod
    def from_json(cls, text: str) -> Schema:
        """Read back what `to_json` wrote; anything else is a ValueError."""
        try:
            listed = json.loads(text)
            if len(listed) > MOST_FLOATS:
                raise ValueError(f"it has {len(listed):,} columns, at most {MOST_FLOATS:,} are allowed")
            return cls(
                tuple(Column(c["name"], c["kind"], tuple(c["categories"]), c["slots"]) for c in listed)
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            said = f"{type(error).__name__}: {error}"[:300]
            raise ValueError(f"schema must be JSON as to_json writes it, got {said}") from error

    @cached_property
    def _fast(self) -> bool:
        return self.plain and self.positional

    def _arranged(self, table: Table) -> list[Any]:
        """Give the table's columns in the schema's order."""
        names = list(self.names)
        given = dict(zip(table.names, table.columns, strict=True))
        if table.positional and not self.positional:
            raise ValueError(
                f"context must name its columns, which are {shown(names)}, got {len(table.names)} values "
                "without names; give a mapping, such as dict(zip(names, values)), or a frame"
            )
        if given.keys() != set(names):
            lacking = [name for name in names if name not in given]
            unknown = sorted(set(table.names) - set(names))
            raise ValueError(
                f"context must have the {len(names)} columns {shown(names)}, got {len(table.names)}: "
                f"it lacks {shown(lacking)}, unknown are {shown(unknown)}; give None or NaN for a missing "
                "value, leave out what is not a feature"
            )
        return [given[name] for name in names]

    def _checked(self, array: NDArray[Any]) -> Matrix:
        """Pass a float array through: the path every simulated round takes."""
        matrix = array[None] if array.ndim == 1 else array
        if matrix.ndim != 2 or matrix.shape[1] != len(self.columns):
            raise ValueError(
                f"context must have {len(self.columns)} features, got an array of shape {array.shape}"
            )
        encoded = matrix.astype(np.float64)
        if np.isinf(encoded).any():
            for j, column in enumerate(self.columns):
                column.encode(encoded[:, j])  # names row and column
        return encoded


@dataclass(frozen=True)
class Rows:
    """One context or a batch of them, on its way into a policy."""

    X: Matrix
    """(n, P) floats."""
    schema: Schema
    """The schema that made them; it knows all their categories."""
    single: bool
    """Whether it was one context."""
    contexts: Sequence[Any]
    """As a log keeps them: plain JSON values, or the floats where these were given."""

    @classmethod
    def of(cls, contexts: Any, schema: Schema | None, *, single: bool | None = None) -> Self:
        """Encode contexts by a schema, or by one inferred from them.

        ``single`` is whether one context must be given, or a batch; None where either will do.

        Examples
        --------
        >>> rows = Rows.of([{"age": 41}, {"age": None}], None)
        >>> rows.schema.features, rows.X.ravel(), rows.contexts
        (('age',), array([41., nan]), [{'age': 41}, {'age': None}])
        """
        if (
            schema is not None
            and schema._fast
            and isinstance(contexts, np.ndarray)
            and contexts.dtype.kind == "f"
        ):
            X = schema._checked(contexts)
            rows = cls(X, schema, contexts.ndim == 1, X)  # type: ignore[arg-type]
        else:
            table = read(contexts)
            X, schema = (schema or Schema.infer(table)).learn(table)
            rows = cls(X, schema, table.single, plain_rows(table))
        if rows.single and single is False:
            raise ValueError("contexts must be a batch, got a single context; use decide")
        if not rows.single and single:
            raise ValueError(f"context must be a single one, got a batch of {len(rows.X)}; use decide_batch")
        return rows

    def part(self, which: slice) -> Self:
        """Keep some rows."""
        return replace(self, X=self.X[which], contexts=self.contexts[which])
