"""The kind of a column, inferred from its values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from pfnts.contexts.column import FULL_SLOTS, SPARE_SLOTS, Column, are_texts, each
from pfnts.contexts.values import READABLE, category, is_missing, kind_of, numbers, remedy, shown

MANY_ROWS, ALL_DISTINCT = 20, 0.9
"""With so many values, a larger share of distinct categories than this is that of an id."""


def infer_column(name: str, values: Any, *, nominal: bool = False, written: bool = False) -> Column:
    """Infer a column from its values; one without any value may become a column of numbers or of dates.

    ``nominal`` columns are declared categorical by their container; where texts are ``written``, as in a CSV
    file, they may stand for numbers and booleans.

    Examples
    --------
    >>> infer_column("age", ["41", "NA"], written=True).kind, infer_column("age", ["41", "NA"]).kind
    ('numeric', 'categorical')
    """
    if isinstance(values, np.ndarray) and not nominal:
        return Column(name, "boolean" if values.dtype.kind == "b" else "numeric")
    distinct = list(dict.fromkeys(values) if are_texts(values) else values)
    if written and not nominal and are_texts(values) and numbers(distinct) is not None:
        return Column(name, "numeric")  # for the columns of whole files
    kinds = [kind_of(value, written=written) for value in distinct]
    if None in kinds:
        value = distinct[kinds.index(None)]
        raise Column(name, "numeric").refused(values, kinds.index(None), READABLE, remedy(value))
    present = [value for value, kind in zip(distinct, kinds, strict=True) if kind != "missing"]
    found = sorted({str(kind) for kind in kinds if kind != "missing"})
    if not found:
        return Column(name, "any")
    if nominal or (len(found) > 1 and all(isinstance(value, str) for value in present)):
        found = ["categorical"]
    if found == ["boolean", "numeric"]:
        return Column(name, "numeric")
    if len(found) > 1:
        raise ValueError(
            f"context column {name!r} must hold values of one kind, got {' and '.join(found)}: "
            f"{', '.join(map(shown, present[:5]))}; declare the column in schema="
        )
    if found != ["categorical"]:
        return Column(name, found[0])  # type: ignore[arg-type]
    counts = _counts(values)
    # Where not all can have a place, the most frequent have one.
    frequent = [text for text, _ in counts.most_common(FULL_SLOTS)]
    categories = tuple(counts) if len(counts) <= FULL_SLOTS else tuple(frequent)
    return Column(
        name, "categorical", categories, min(max(SPARE_SLOTS, len(counts) + SPARE_SLOTS // 2), FULL_SLOTS)
    )


def is_id(values: Any) -> bool:
    """Return whether hardly any category of a column repeats.

    Examples
    --------
    >>> is_id([f"user {i}" for i in range(30)]), is_id([f"city {i % 10}" for i in range(30)])
    (True, False)
    """
    counts = _counts(values)
    return counts.total() >= MANY_ROWS and len(counts) > ALL_DISTINCT * counts.total()


def _counts(values: Any) -> Counter[str]:
    """Count the categories of a column, in the order in which they appear."""
    texts = each(values, lambda value: None if is_missing(value) else category(value))
    return Counter(text for text in texts if text is not None)
