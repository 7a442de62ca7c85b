"""What a column is, judged by its values."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from pfnts.contexts.column import SPARE_SLOTS, Column, are_texts, categories_of
from pfnts.contexts.values import READABLE, kind_of, numbers, remedy, shown

MOST_CATEGORIES = 64
"""Categories beyond which a column is taken for an id or free text."""
MANY_ROWS, ALL_DISTINCT = 20, 0.9
"""From so many values on, a share of distinct texts above this one is taken for an id."""


class IdColumnError(ValueError):
    """A column has more categories, or fewer that repeat, than a property of things would have."""


def infer_column(name: str, values: Any, *, nominal: bool = False, written: bool = False) -> Column:
    """Guess a column from its values; one without any value is taken for numeric.

    ``nominal`` columns are declared categorical by their container; where texts are ``written``, as in a CSV
    file, they may stand for numbers and booleans.

    Examples
    --------
    >>> infer_column("age", ["41", "NA"], written=True).kind, infer_column("age", ["41", "NA"]).kind
    ('numeric', 'categorical')
    """
    if isinstance(values, np.ndarray) and not nominal:
        return Column(name, "boolean" if values.dtype.kind == "b" else "numeric")
    texts = are_texts(values)
    distinct = list(dict.fromkeys(values) if texts else values)
    if texts and written and not nominal and numbers(distinct) is not None:
        return Column(name, "numeric")  # the way of a whole file
    kinds = [kind_of(value, written=written) for value in distinct]
    if None in kinds:
        value = distinct[kinds.index(None)]
        raise Column(name, "numeric").refused(values, kinds.index(None), READABLE, remedy(value))
    present = [value for value, kind in zip(distinct, kinds, strict=True) if kind != "missing"]
    found = sorted({str(kind) for kind in kinds if kind != "missing"})
    if nominal or (len(found) > 1 and all(isinstance(value, str) for value in present)):
        found = ["categorical"]
    if found == ["boolean", "numeric"] or not found:
        return Column(name, "numeric")
    if len(found) > 1:
        raise ValueError(
            f"context column {name!r} must hold values of one kind, got {' and '.join(found)}: "
            f"{', '.join(map(shown, present[:5]))}; declare the column in schema="
        )
    if found != ["categorical"]:
        return Column(name, found[0])  # type: ignore[arg-type]
    categories = categories_of(present)
    rows = sum(map(Counter(values).__getitem__, present)) if texts else len(present)
    if len(categories) > MOST_CATEGORIES or (rows >= MANY_ROWS and len(categories) > ALL_DISTINCT * rows):
        raise IdColumnError(
            f"context column {name!r} must hold at most {MOST_CATEGORIES} categories that repeat, got "
            f"{len(categories):,} in {len(values):,} rows, such as {', '.join(map(shown, categories[:3]))}; "
            "leave it out if it is an id, group rare ones, or list all in schema="
        )
    slots = max(SPARE_SLOTS, len(categories) + SPARE_SLOTS // 2)
    return Column(name, "categorical", tuple(categories), slots)
