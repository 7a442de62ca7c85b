"""One column of a context, and its encoding as floats."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts.codes import code
from pfnts.contexts.values import (
    READABLE,
    category,
    days,
    is_missing,
    kind_of,
    number,
    numbers,
    remedy,
    shown,
    truth,
)

T = TypeVar("T")
Matrix = NDArray[np.float64]
Kind = Literal["numeric", "boolean", "date", "categorical", "any"]

SPARE_SLOTS = 8
"""Least number of places of an inferred categorical column; with fewer, categories cannot share places."""
DECLARED_SLOTS = 16
"""Places of a column declared categorical without its categories."""
FULL_SLOTS = 32
"""Places of a column of more categories; measured in docs/contexts.md."""
MOST_SLOTS = 10_000
"""Largest number of places of a column."""
_UNPLACED = -1.0


class UnseenCategoryWarning(UserWarning):
    """A category has no place of its own."""


@dataclass(frozen=True)
class Column:
    """One column of a context.

    Parameters
    ----------
    name
        Its name; for contexts without names, its position ("0", "1", ...).
    kind
        "numeric", "boolean", "date" (days since 1970) and "any" (a number, a date, or the code of a text)
        become one float, "categorical" becomes `slots` floats.
    categories
        Categories with a place of their own, as texts, in the order of the places.
    slots
        Number of places. New categories take free ones; where none is free, further categories share
        all of them by their codes (`codes.code`).

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
        if not isinstance(self.name, str):
            raise ValueError(f"name of a column must be a text, got {shown(self.name)}")
        if self.kind not in get_args(Kind):
            kinds = ", ".join(map(repr, get_args(Kind)))
            raise ValueError(f"kind of column {self.name!r} must be one of {kinds}, got {shown(self.kind)}")
        whole = isinstance(self.slots, int) and not isinstance(self.slots, bool)
        if not whole or not max(1, len(self.categories)) <= self.slots <= MOST_SLOTS:
            raise ValueError(
                f"slots of column {self.name!r} must be an integer between its number of categories "
                f"({len(self.categories)}, at least 1) and {MOST_SLOTS}, got {shown(self.slots)}"
            )
        if self.kind != "categorical" and (self.categories or self.slots != 1):
            raise ValueError(f"column {self.name!r} must be categorical to have categories or slots")
        if not all(isinstance(text, str) for text in self.categories):
            raise ValueError(f"categories of {self.name!r} must be texts, got {shown(self.categories)}")
        if len(set(self.categories)) != len(self.categories):
            raise ValueError(f"categories of column {self.name!r} must be distinct, got {self.categories}")

    @classmethod
    def of(cls, name: str, kind: Any) -> Column:
        """Return the column of a kind, or of a list of categories."""
        if isinstance(kind, Column):
            return replace(kind, name=name)
        if isinstance(kind, str):
            return cls(name, kind, slots=DECLARED_SLOTS if kind == "categorical" else 1)  # type: ignore[arg-type]
        listed = kind.tolist() if isinstance(kind, np.ndarray) else kind
        if not isinstance(listed, list | tuple) or not listed:
            raise ValueError(
                f"schema must give column {name!r} a kind ({', '.join(map(repr, get_args(Kind)))}) or the "
                f"list of its categories, got {shown(kind)}"
            )
        texts = [category(value) for value in listed]
        if None in texts:
            raise ValueError(
                f"categories of column {name!r} must be texts, numbers, booleans or dates, "
                f"got {shown(listed[texts.index(None)])}; leave a missing value out, it is no category"
            )
        cls(name, "categorical", tuple(map(str, texts)), len(texts))  # distinct, and not too many
        return cls(name, "categorical", tuple(map(str, texts[:FULL_SLOTS])), min(len(texts), FULL_SLOTS))

    @cached_property
    def places(self) -> dict[str, int]:
        """Category, as `values.category` writes it, to place."""
        return {str(category(text)): j for j, text in enumerate(self.categories)}

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the floats that the column becomes."""
        if self.kind != "categorical":
            return (self.name,)
        named = tuple(f"{self.name}={text}" for text in self.categories)
        return named + tuple(f"{self.name}#{j}" for j in range(len(named), self.slots))

    def encode(self, values: Any) -> Matrix:
        """Encode values (n,) as (n, 1), or (n, slots) where categorical; NaN where missing."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" and self.kind in ("numeric", "any"):
            floats = values.astype(np.float64)
        elif self.kind == "numeric" and len(values) > 1 and are_texts(values) and (bulk := numbers(values)):
            floats = np.array(bulk)  # for the columns of whole files
        else:
            reader = _READERS.get(self.kind, self._place)
            read = [reader(values[0])] if len(values) == 1 else each(values, reader)
            floats = np.array(read, dtype=np.float64)  # None is NaN
            if np.isnan(floats).any():
                self._check_missing(values, floats)
        if self.kind != "categorical":
            for i in np.flatnonzero(np.isinf(floats)).tolist():
                raise self.refused(values, i, "finite or missing (NaN)", "clip or drop the value")
            return floats[:, None]
        block = np.zeros((len(floats), self.slots))
        placed = np.flatnonzero(floats >= 0)
        block[placed, floats[placed].astype(np.int64)] = 1.0
        block[np.isnan(floats)] = np.nan
        if self.is_full and (floats == _UNPLACED).any():
            self._share(block, values, np.flatnonzero(floats == _UNPLACED).tolist())
        return block

    @property
    def is_full(self) -> bool:
        """No place is free."""
        return len(self.categories) == self.slots

    def extended(self, values: Any) -> Column:
        """Return the column with free places given to new categories, in the order in which they appear."""
        if self.kind != "categorical" or self.is_full:
            return self
        new = self.unplaced(values)[: self.slots - len(self.categories)]
        return replace(self, categories=(*self.categories, *new)) if new else self

    def unplaced(self, values: Any) -> list[str]:
        """Return the categories without a place of their own, in the order in which they appear."""
        if all(type(value) is str and value in self.places for value in values):
            return []
        return [text for text in categories_of(values) if text not in self.places]

    def refused(self, values: Any, i: int, rule: str, words: str) -> ValueError:
        """Return the error about a value; it names the row where there are several."""
        where = f"row {i + 1}: " if len(values) > 1 else ""
        got = shown(values[i].item() if isinstance(values, np.ndarray) else values[i])
        return ValueError(f"{where}context column {self.name!r} must be {rule}, got {got}; {words}")

    def _place(self, value: Any) -> float | None:
        """Return the place of a value; None where it is missing, or cannot be a category."""
        if isinstance(value, str) and value in self.places:
            return self.places[value]
        text = category(value)
        if text is None or text in self.places:
            return None if text is None else self.places[text]
        return None if is_missing(value) else _UNPLACED

    def _share(self, block: Matrix, values: Any, rows: list[int]) -> None:
        """Write the codes of categories without a place of their own; zeros where places are few."""
        if self.slots >= SPARE_SLOTS:
            for i in rows:
                block[i] = code(str(category(values[i])), self.slots)
        if self.slots < FULL_SLOTS:
            # No category in the text: Python remembers each text that it has warned of.
            what = "share them by codes" if self.slots >= SPARE_SLOTS else "count as one, encoded as zeros"
            warnings.warn(
                f"context column {self.name!r} has met a category beyond its {self.slots} places; all such "
                f"categories {what}. Declare the categories in schema=, or leave the column out if it is an "
                "id",
                UnseenCategoryWarning,
                stacklevel=4,
            )

    def _check_missing(self, values: Any, floats: NDArray[np.float64]) -> None:
        """Raise if a value was read as NaN and is not missing."""
        rules = {"boolean": "true, false or missing", "categorical": "a category", "any": READABLE}
        rule = rules.get(self.kind, self.kind)
        for i in np.flatnonzero(np.isnan(floats)).tolist():
            value = values[i]
            if is_missing(value):
                continue
            if kind_of(value) is None:
                raise self.refused(values, i, rule, remedy(value))
            if self.kind == "categorical":
                raise self.refused(values, i, rule, "give a text or a finite number")
            kind = "categorical" if days(value) is None else "date"
            raise self.refused(values, i, rule, f'declare the column as "{kind}" in schema= if it is one')


def categories_of(values: Iterable[Any]) -> list[str]:
    """Return the distinct categories in the order in which they appear."""
    distinct = dict.fromkeys(values) if are_texts(values) else values
    found = dict.fromkeys(category(value) for value in distinct if not is_missing(value))
    return [text for text in found if text is not None]


def are_texts(values: Any) -> bool:
    """Return whether a column holds texts only, so that each distinct one need be read only once."""
    return isinstance(values, list) and len(values) > 1 and set(map(type, values)) == {str}


def each(values: Any, reader: Callable[[Any], T]) -> list[T]:
    """Read every value of a column, each distinct text once."""
    if are_texts(values):
        known = {text: reader(text) for text in dict.fromkeys(values)}
        return list(map(known.__getitem__, values))
    return [reader(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]


def _any(value: Any) -> float | None:
    """Read a number, a date, or a text as its code."""
    if is_missing(value):
        return None
    read = number(value)
    read = days(value) if read is None else read
    return float(code(str(category(value)), 1)[0]) if read is None and isinstance(value, str) else read


_READERS: dict[str, Callable[[Any], float | None]] = {
    "numeric": number,
    "boolean": truth,
    "date": days,
    "any": _any,
}
