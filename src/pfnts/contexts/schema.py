"""The columns of a context, and its encoding as a row of floats."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts.column import Column, Matrix
from pfnts.contexts.inference import infer_column, is_id
from pfnts.contexts.plain import plain_rows
from pfnts.contexts.table import Table, read
from pfnts.contexts.values import shown

MOST_FLOATS = 100_000
"""Largest number of floats in an encoded row."""
LARGEST = 1e100
"""Largest size of a number in a context: its square, and sums of squares, must stay finite."""


class IdColumnWarning(UserWarning):
    """A column has hardly any category that repeats, so that nothing can be learned from it."""


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
        """Return the schema of columns by name, each a kind or the list of its categories.

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
    def infer(cls, contexts: Any, *, warn: bool = True) -> Schema:
        """Infer the columns from contexts: booleans, numbers, dates; all else is categorical.

        ``warn`` is whether to warn of columns that look like ids.
        """
        table = read(contexts)
        if not table.n_rows or not table.names:
            raise ValueError(
                "context must have at least one row and one column to infer a schema from, got "
                f"{table.n_rows} and {len(table.names)}; pass schema="
            )
        columns = tuple(
            infer_column(name, values, nominal=name in table.nominal, written=table.written)
            for name, values in zip(table.names, table.columns, strict=True)
        )
        ids = [c.name for c in columns if warn and c.kind == "categorical" and is_id(table[c.name])]
        if ids:
            warnings.warn(
                f"context columns {ids} look like ids: hardly any of their categories repeats in "
                f'{table.n_rows:,} rows. Leave them out, or declare them as "categorical" in schema=',
                IdColumnWarning,
                stacklevel=2,
            )
        return cls(columns)

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
        """Only numeric columns."""
        return all(column.kind == "numeric" for column in self.columns)

    @cached_property
    def positional(self) -> bool:
        """Columns are positions ("0", "1", ...), so that rows without names fit."""
        return self.names == tuple(map(str, range(len(self.columns))))

    def encode(self, contexts: Any) -> Matrix:
        """Encode one context or a batch as (n, width).

        A new category becomes all zeros where `extended` has a place for it, and its code where none is free.

        Examples
        --------
        >>> Schema.of({"age": "numeric"}).encode([{"age": "41"}, {"age": "NA"}])
        array([[41.],
               [nan]])
        """
        if self.takes_floats(contexts):
            return self.checked_floats(contexts)
        columns = self._arranged(read(contexts))
        return self._checked(np.concatenate(list(map(Column.encode, self.columns, columns)), axis=1))

    def extended(self, contexts: Any) -> Schema:
        """Return the schema with free places given to new categories; the width stays the same.

        Examples
        --------
        >>> Schema.infer({"plan": "free"}).extended({"plan": "paid"}).features[:3]
        ('plan=free', 'plan=paid', 'plan#2')
        """
        columns = tuple(map(Column.extended, self.columns, self._arranged(read(contexts))))
        return self if columns == self.columns else Schema(columns)

    def learn(self, table: Table) -> tuple[Matrix, Schema]:
        """Return a table as (n, width), encoded by the schema `extended` by it, and that schema."""
        given = self._arranged(table)
        columns = tuple(map(Column.extended, self.columns, given))
        X = np.concatenate(list(map(Column.encode, columns, given)), axis=1)
        return X, self if columns == self.columns else Schema(columns)

    def fitted(self, contexts: Any) -> Schema:
        """Return the schema of a complete table: categories sorted, no spare places."""
        columns = zip(self.columns, self._arranged(read(contexts)), strict=True)
        return Schema(
            tuple(
                infer_column(c.name, values, nominal=True)
                if c.kind == "categorical" and not c.categories
                else c.extended(values)
                for c, values in columns
            )
        ).closed()

    def unplaced(self, contexts: Any) -> dict[str, list[str]]:
        """Return the categories of contexts that have no place of their own and will get none, by column.

        Examples
        --------
        >>> Schema.of({"plan": ["free", "paid"]}).unplaced([{"plan": "free"}, {"plan": "gold"}])
        {'plan': ['gold']}
        """
        columns = zip(self.columns, self._arranged(read(contexts)), strict=True)
        found = {
            c.name: c.extended(values).unplaced(values) for c, values in columns if c.kind == "categorical"
        }
        return {name: categories for name, categories in found.items() if categories}

    def closed(self) -> Schema:
        """Return the schema with categories sorted, without spare places."""
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
        """Read what `to_json` wrote; raise a ValueError for anything else."""
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

    def takes_floats(self, contexts: Any) -> bool:
        """Return whether contexts are an array that is its own encoding."""
        return type(contexts) is np.ndarray and contexts.dtype.kind == "f" and self.plain and self.positional

    def checked_floats(self, array: NDArray[Any]) -> Matrix:
        """Copy a float array as (n, width): what every simulated round does."""
        matrix = array[None] if array.ndim == 1 else array
        if matrix.ndim != 2 or matrix.shape[1] != len(self.columns):
            raise ValueError(
                f"context must have {len(self.columns)} features, got an array of shape {array.shape}"
            )
        return self._checked(matrix.astype(np.float64))

    def _checked(self, X: Matrix) -> Matrix:
        """Return encoded rows (n, width); raise if a number is too large."""
        large = np.abs(X) > LARGEST
        if large.any():
            for i, j in np.argwhere(large).tolist():
                where = f"row {i + 1}: " if len(X) > 1 else ""
                rule = f"at most {LARGEST:g} in size" if np.isfinite(X[i, j]) else "finite"
                raise ValueError(
                    f"{where}context column {self.features[j]!r} must be {rule} or missing (NaN), "
                    f"got {X[i, j]:g}; clip or drop the value"
                )
        return X

    def _arranged(self, table: Table) -> list[Any]:
        """Return the table's columns in the schema's order."""
        if table.names == self.names:
            return list(table.columns)
        names = list(self.names)
        if not table.names and not table.n_rows:
            return [[]] * len(names)
        given = dict(zip(table.names, table.columns, strict=True))
        if table.positional and not self.positional:
            raise ValueError(
                f"context must name its columns, which are {shown(names)}, got {len(table.names)} values "
                "without names; give a mapping, such as dict(zip(names, values)), or a frame"
            )
        if given.keys() != set(names):
            raise ValueError(
                f"context must have the {len(names)} columns {shown(names)}, "
                + "; ".join(_differences(names, list(given)))
            )
        return [given[name] for name in names]


def _differences(names: list[str], given: list[str]) -> list[str]:
    """Return the columns that are missing, and those that are unknown, each with its remedy."""
    missing, unknown = ([n for n in a if n not in set(b)] for a, b in ((names, given), (given, names)))
    found = []
    if missing:
        found.append(f"it lacks {shown(missing)}: give None for a missing value")
    if unknown:
        likely = [(name, near) for name in unknown for near in get_close_matches(name, missing, n=1)]
        meant = "".join(f"; {name!r} may be meant for {near!r}" for name, near in likely)
        found.append(f"unknown are {shown(unknown)}: leave them out, or declare them in schema={meant}")
    return found


@dataclass(frozen=True)
class Rows:
    """One context or a batch of them, encoded."""

    X: Matrix
    """(n, P) floats."""
    schema: Schema
    """The schema that encoded them; it knows all their categories."""
    single: bool
    """One context, not a batch."""
    contexts: Sequence[Any]
    """For the log: plain JSON values, or the floats where these were given."""

    @classmethod
    def of(cls, contexts: Any, schema: Schema | None, *, single: bool | None = None) -> Self:
        """Encode contexts by a schema, or by one inferred from them.

        ``single`` is whether one context is required, or a batch; None if either will do. A batch of one row
        is accepted as one context.

        Examples
        --------
        >>> rows = Rows.of([{"age": 41}, {"age": None}], None)
        >>> rows.schema.features, rows.X.ravel(), rows.contexts
        (('age',), array([41., nan]), [{'age': 41}, {'age': None}])
        """
        if schema is not None and schema.takes_floats(contexts):
            X = schema.checked_floats(contexts)
            rows = cls(X, schema, contexts.ndim == 1, X)  # type: ignore[arg-type]
        else:
            table = read(contexts)
            X, schema = (schema or Schema.infer(table)).learn(table)
            rows = cls(schema._checked(X), schema, table.single, plain_rows(table))
        if rows.single and single is False:
            raise ValueError("contexts must be a batch, got a single context; use decide")
        if not rows.single and single:
            if len(rows.X) != 1:
                raise ValueError(
                    f"context must be a single one, got a batch of {len(rows.X)}; use decide_batch"
                )
            return replace(rows, single=True)
        return rows

    def part(self, which: slice) -> Self:
        """Return some of the rows."""
        return replace(self, X=self.X[which], contexts=self.contexts[which])
