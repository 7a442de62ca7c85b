"""One column of a context: what it holds, and the floats that it becomes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts.values import (
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
Kind = Literal["numeric", "boolean", "date", "categorical"]

SPARE_SLOTS = 8
"""One-hot places of an inferred categorical column, at least: categories that appear later need some."""
MOST_SLOTS = 10_000
"""One-hot places that a column may have."""
_LOOKED_AT = 1000
"""Texts by which to tell whether most repeat."""
_UNSEEN = -1.0


class UnseenCategoryWarning(UserWarning):
    """A category has no one-hot place, and none is free."""


@dataclass(frozen=True)
class Column:
    """One column of a context.

    Parameters
    ----------
    name
        Its name; for contexts without names, its position ("0", "1", ...).
    kind
        "numeric", "boolean" and "date" (days since 1970) become one float, "categorical" becomes `slots`
        one-hot floats.
    categories
        Known categories, as texts, in the order of their places.
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
        """Make a column from its kind, or from the list of its categories."""
        if isinstance(kind, Column):
            return replace(kind, name=name)
        if isinstance(kind, str):
            return cls(name, kind, slots=SPARE_SLOTS if kind == "categorical" else 1)  # type: ignore[arg-type]
        listed = kind.tolist() if isinstance(kind, np.ndarray) else kind
        if not isinstance(listed, list | tuple) or not listed:
            raise ValueError(
                f"schema must give column {name!r} a kind ({', '.join(map(repr, get_args(Kind)))}) or the "
                f"list of its categories, got {shown(kind)}"
            )
        texts = [category(value) for value in listed]
        for text, value in zip(texts, listed, strict=True):
            if text is None:
                raise ValueError(
                    f"categories of column {name!r} must be texts, numbers, booleans or dates, "
                    f"got {shown(value)}; leave a missing value out, it is no category"
                )
        return cls(name, "categorical", tuple(map(str, texts)), len(texts))

    @cached_property
    def places(self) -> dict[str, int]:
        """Category, as `values.category` writes it, to one-hot place."""
        places: dict[str, int] = {}
        for j, text in enumerate(self.categories):
            # Version 0.1 told '1' from '1.0': of such a pair the first keeps the category.
            places.setdefault(str(category(text)), j)
        return places

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the floats that the column becomes."""
        if self.kind != "categorical":
            return (self.name,)
        named = tuple(f"{self.name}={text}" for text in self.categories)
        return named + tuple(f"{self.name}#{j}" for j in range(len(named), self.slots))

    def encode(self, values: Any) -> Matrix:
        """Encode values (n,) as (n, 1), or (n, slots) where categorical; NaN where missing."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub" and self.kind == "numeric":
            floats = values.astype(np.float64)
        elif self.kind == "numeric" and len(values) > 1 and are_texts(values) and (bulk := _bulk(values)):
            floats = np.array(bulk)  # the way of a whole file
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
        known = np.flatnonzero(floats >= 0)
        block[known, floats[known].astype(np.int64)] = 1.0
        block[np.isnan(floats)] = np.nan
        if len(self.categories) == self.slots and (floats == _UNSEEN).any():
            # No category in the text: Python remembers each text that it has warned of.
            warnings.warn(
                f"context column {self.name!r} has met a category beyond its {self.slots} places; all such "
                "categories count as one, encoded as zeros. Declare the categories in schema=, or leave the "
                "column out if it is an id",
                UnseenCategoryWarning,
                stacklevel=3,
            )
        return block

    def extended(self, values: Any) -> Column:
        """Give free places to categories not met before, in the order in which they appear."""
        free = self.slots - len(self.categories)
        if self.kind != "categorical" or not free:
            return self
        fresh = [text for text in categories_of(values) if text not in self.places]
        return replace(self, categories=self.categories + tuple(fresh[:free])) if fresh else self

    def refused(self, values: Any, i: int, rule: str, words: str) -> ValueError:
        """Make the error about a value; it names the row where there are several."""
        where = f"row {i + 1}: " if len(values) > 1 else ""
        got = shown(values[i].item() if isinstance(values, np.ndarray) else values[i])
        return ValueError(f"{where}context column {self.name!r} must be {rule}, got {got}; {words}")

    def _place(self, value: Any) -> float | None:
        """One-hot place of a value; None where it is missing, or cannot be a category."""
        if isinstance(value, str) and value in self.places:
            return self.places[value]
        text = category(value)
        if text is None or text in self.places:
            return None if text is None else self.places[text]
        return None if is_missing(value) else _UNSEEN

    def _check_missing(self, values: Any, floats: NDArray[np.float64]) -> None:
        """Complain about the first value that was read as NaN and is not missing."""
        rule = {"boolean": "true, false or missing", "categorical": "a category"}.get(self.kind, self.kind)
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


def _bulk(texts: list[str]) -> list[float] | None:
    """Read texts that are all numbers, each distinct one once where most repeat; None where one is not."""
    first = texts[:_LOOKED_AT]
    if 2 * len(set(first)) > len(first):
        return numbers(texts)
    distinct = list(dict.fromkeys(texts))
    read = numbers(distinct)
    return None if read is None else list(map(dict(zip(distinct, read, strict=True)).__getitem__, texts))


def categories_of(values: Iterable[Any]) -> list[str]:
    """Distinct categories in the order in which they appear."""
    distinct = dict.fromkeys(values) if are_texts(values) else values
    found = dict.fromkeys(category(value) for value in distinct if not is_missing(value))
    return [text for text in found if text is not None]


def are_texts(values: Any) -> bool:
    """Whether a column holds texts only, so that it is enough to read each distinct one once."""
    return isinstance(values, list) and len(values) > 1 and set(map(type, values)) == {str}


def each(values: Any, reader: Callable[[Any], T]) -> list[T]:
    """Read every value of a column, each distinct text once."""
    if are_texts(values):
        known = {text: reader(text) for text in dict.fromkeys(values)}
        return list(map(known.__getitem__, values))
    return [reader(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]


_READERS: dict[str, Callable[[Any], float | None]] = {"numeric": number, "boolean": truth, "date": days}
