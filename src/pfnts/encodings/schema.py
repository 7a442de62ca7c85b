"""What the columns of a context are, and the float matrix they become."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pfnts.encodings.contexts import Table, read

Matrix = NDArray[np.float64]
Kind = Literal["numeric", "boolean", "categorical"]

# An inferred categorical column keeps this many one-hot places, so that categories which
# appear after the first contexts get a place of their own without changing the width.
SPARE_SLOTS = 8


@dataclass(frozen=True)
class Column:
    """One column of a context.

    Parameters
    ----------
    name
        Its name; for contexts without names, its position ("0", "1", ...).
    kind
        "numeric" and "boolean" become one float, "categorical" becomes `slots` one-hot floats.
    categories
        Known categories, as strings, in the order of their places.
    slots
        One-hot places; categories beyond the known ones take free places as they appear.

    Examples
    --------
    >>> Column("plan", "categorical", categories=("free", "paid"), slots=3).features
    ('plan=free', 'plan=paid', 'plan#2')
    """

    name: str
    kind: Kind
    categories: tuple[str, ...] = ()
    slots: int = 1

    def __post_init__(self) -> None:
        if self.kind not in ("numeric", "boolean", "categorical"):
            raise ValueError(
                f'kind of column {self.name!r} must be "numeric", "boolean" or "categorical", '
                f"got {self.kind!r}"
            )
        if len(set(self.categories)) != len(self.categories):
            raise ValueError(f"categories of column {self.name!r} must be distinct, got {self.categories}")
        if self.slots < max(1, len(self.categories)):
            raise ValueError(
                f"slots of column {self.name!r} must be at least the number of categories "
                f"{len(self.categories)} and at least 1, got {self.slots}"
            )

    @cached_property
    def places(self) -> dict[str, int]:
        """Category to one-hot place."""
        return {category: j for j, category in enumerate(self.categories)}

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the floats that the column becomes."""
        if self.kind != "categorical":
            return (self.name,)
        named = tuple(f"{self.name}={category}" for category in self.categories)
        return named + tuple(f"{self.name}#{j}" for j in range(len(named), self.slots))


@dataclass(frozen=True)
class Schema:
    """Turns contexts into rows of floats, NaN where a value is missing.

    Parameters
    ----------
    columns
        The columns, in the order of the floats.

    Examples
    --------
    >>> schema = Schema.of({"age": "numeric", "vip": "boolean", "plan": ["free", "paid"]})
    >>> schema.encode({"age": 41, "vip": None, "plan": "paid"})
    array([[41., nan,  0.,  1.]])
    >>> schema.encode({"age": 41, "vip": True, "plan": "unheard of"})
    array([[41.,  1.,  0.,  0.]])
    """

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"schema must have at least one column and distinct names, got {names}")

    @classmethod
    def of(cls, columns: Mapping[str, str | Sequence[str]]) -> Schema:
        """Make a schema from names to a kind, or to the list of categories."""
        made = []
        for name, kind in columns.items():
            if isinstance(kind, str):
                slots = SPARE_SLOTS if kind == "categorical" else 1
                made.append(Column(str(name), kind, slots=slots))  # type: ignore[arg-type]
            else:
                categories = tuple(str(category) for category in kind)
                made.append(Column(str(name), "categorical", categories, max(1, len(categories))))
        return cls(tuple(made))

    @classmethod
    def infer(cls, contexts: Any) -> Schema:
        """Guess the columns from the first contexts: booleans, numbers, all else categories."""
        return cls.inferred_from(read(contexts))

    @classmethod
    def inferred_from(cls, table: Table) -> Schema:
        """Guess the columns from contexts already read."""
        if not table.n_rows:
            raise ValueError(
                "context must have at least one row to infer a schema from, got none; pass schema="
            )
        return cls(
            tuple(
                _inferred(name, values, nominal=name in table.nominal)
                for name, values in zip(table.names, table.columns, strict=True)
            )
        )

    @classmethod
    def numeric(cls, width: int) -> Schema:
        """Make the schema of plain numeric rows of a given width."""
        return cls(tuple(Column(str(j), "numeric") for j in range(width)))

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
        """Whether every column is numeric, so that a float array needs no translation."""
        return all(column.kind == "numeric" for column in self.columns)

    def encode(self, contexts: Any) -> Matrix:
        """Encode one context or a batch as (n, width); a category without a place becomes all zeros."""
        if self.plain and isinstance(contexts, np.ndarray) and contexts.dtype.kind == "f":
            return self._checked(contexts)
        return self.encode_table(read(contexts))

    def encode_table(self, table: Table) -> Matrix:
        """Encode contexts already read."""
        blocks = [
            _encoded(column, values)
            for column, values in zip(self.columns, self._arranged(table), strict=True)
        ]
        encoded = np.concatenate(blocks, axis=1) if table.n_rows else np.empty((0, self.width))
        return self._finite(encoded)

    def extended(self, table: Table) -> Schema:
        """Give free one-hot places to categories not met before; the width stays as it is."""
        columns = list(self.columns)
        for j, values in enumerate(self._arranged(table)):
            column = columns[j]
            if column.kind == "categorical" and len(column.categories) < column.slots:
                fresh = [c for c in _distinct(values) if c not in column.places]
                free = column.slots - len(column.categories)
                if fresh:
                    columns[j] = replace(column, categories=column.categories + tuple(fresh[:free]))
        return self if tuple(columns) == self.columns else Schema(tuple(columns))

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
        """Read back what `to_json` wrote."""
        return cls(
            tuple(
                Column(c["name"], c["kind"], tuple(c["categories"]), int(c["slots"]))
                for c in json.loads(text)
            )
        )

    def _arranged(self, table: Table) -> list[Any]:
        """Give the table's columns in the schema's order."""
        names = [column.name for column in self.columns]
        if len(table.names) != len(names) or not (table.positional or set(table.names) == set(names)):
            raise ValueError(
                f"context must have the {len(names)} features {names}, got {len(table.names)}: "
                f"{list(table.names)}; give None or NaN for a missing value, leave out what is not a feature"
            )
        if table.positional:
            return list(table.columns)
        at = {name: j for j, name in enumerate(table.names)}
        return [table.columns[at[name]] for name in names]

    def _checked(self, array: NDArray[Any]) -> Matrix:
        """Pass a float array through: the path every simulated round takes."""
        if array.ndim == 1:
            array = array[None]
        if array.ndim != 2 or array.shape[1] != len(self.columns):
            raise ValueError(
                f"context must have {len(self.columns)} features, got an array of shape {array.shape}"
            )
        return self._finite(array.astype(np.float64, copy=True))

    def _finite(self, encoded: Matrix) -> Matrix:
        infinite = np.isinf(encoded)
        if infinite.any():
            name = self.features[int(np.flatnonzero(infinite.any(0))[0])]
            raise ValueError(
                f"context must be finite or missing (NaN), column {name!r} holds "
                f"{encoded[infinite][0]}; clip or drop the value"
            )
        return encoded


def _missing(value: Any) -> bool:
    # pandas' NA and NaT refuse to be compared, so they are known by their type's name.
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (_number(value) and value != value)
    )


def _number(value: Any) -> bool:
    return isinstance(value, Real | np.number | Decimal) and not isinstance(
        value, bool | np.bool_ | np.complexfloating
    )


def _boolean(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _distinct(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if not _missing(value)))


def _inferred(name: str, values: Any, *, nominal: bool) -> Column:
    """Guess one column; a column of missing values only is taken for numeric."""
    if isinstance(values, np.ndarray) and not nominal and values.dtype.kind in "fiu":
        return Column(name, "numeric")
    present = [value for value in values if not _missing(value)]
    if not nominal and all(_boolean(value) for value in present) and present:
        return Column(name, "boolean")
    if not nominal and all(_number(value) or _boolean(value) for value in present):
        return Column(name, "numeric")
    if any(isinstance(v, datetime.date | datetime.timedelta | np.datetime64) for v in present):
        raise ValueError(f"context column {name!r} holds dates, such as {present[0]}; turn them into numbers")
    if not nominal and any(_number(value) for value in present):
        raise ValueError(
            f"context column {name!r} must hold numbers or categories, got both: {present[:5]}; "
            "pass schema= to say which"
        )
    categories = tuple(_distinct(present))
    return Column(name, "categorical", categories, max(SPARE_SLOTS, len(categories)))


def _encoded(column: Column, values: Any) -> Matrix:
    """One column as (n, 1) or (n, slots)."""
    if column.kind == "categorical":
        block = np.zeros((len(values), column.slots))
        for i, value in enumerate(values):
            if _missing(value):
                block[i] = np.nan
            elif (place := column.places.get(str(value))) is not None:
                block[i, place] = 1.0
        return block
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        numbers = values.astype(np.float64)
    else:
        numbers = np.array([_float(column, value) for value in values])
    if column.kind == "boolean" and not np.isin(numbers[~np.isnan(numbers)], (0.0, 1.0)).all():
        raise ValueError(
            f"context column {column.name!r} must be true, false or missing, got {list(values)[:5]}"
        )
    return numbers[:, None]


def _float(column: Column, value: Any) -> float:
    if _missing(value):
        return float("nan")
    if not (_number(value) or _boolean(value)):
        raise ValueError(
            f"context column {column.name!r} must be {column.kind}, got {value!r}; "
            'pass schema= with this column as "categorical" if it is one'
        )
    return float(value)
