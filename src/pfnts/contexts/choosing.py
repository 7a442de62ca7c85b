"""Which columns of a file describe a round, where nobody has said it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pfnts.contexts.column import Column
from pfnts.contexts.inference import IdColumnError, infer_column
from pfnts.contexts.schema import Schema
from pfnts.contexts.table import Table

_ID_NAME = re.compile(r"(?:^|[\W_])(?i:id|uuid|guid)$|[a-z](?:Id|ID)$|^(?i:index)?$|^Unnamed: 0$")


def describing(
    table: Table, names: Iterable[str] | None = None, *, dates: bool = True
) -> tuple[Schema, dict[str, str]]:
    """Infer a closed schema of the columns that describe a row, and say why others are left out.

    Ids are left out: texts that hardly repeat, and numbers in a column that is called so.

    Parameters
    ----------
    table
        The whole table.
    names
        Candidates; all columns when left out.
    dates
        Whether dates describe a row.

    Examples
    --------
    >>> table = Table.of({"user_id": [7, 7, 9], "age": [41, 41, 23], "seen": ["2026-03-01"] * 3})
    >>> schema, left_out = describing(table, dates=False)
    >>> schema.features, left_out
    (('age',), {'user_id': 'an id', 'seen': 'a date'})
    """
    columns: list[Column] = []
    left_out: dict[str, str] = {}
    for name in table.names if names is None else names:
        values = table[name]
        try:
            column = infer_column(name, values, nominal=name in table.nominal, written=table.written)
        except IdColumnError:
            left_out[name] = "an id"
            continue
        if column.kind == "date" and not dates:
            left_out[name] = "a date"
        elif column.kind == "numeric" and is_id_name(name):
            left_out[name] = "an id"
        else:
            columns.append(column)
    if not columns:
        raise ValueError(f"table must have a column that describes its rows, left out are {left_out}")
    return Schema(tuple(columns)).closed(), left_out


def is_id_name(name: str) -> bool:
    """Whether a column is called an id.

    Examples
    --------
    >>> [is_id_name(name) for name in ("id", "user_id", "userId", "paid", "acid")]
    [True, True, True, False, False]
    """
    return _ID_NAME.search(name) is not None
