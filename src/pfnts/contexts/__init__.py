"""Contexts in any container, encoded as rows of floats by a schema."""

from pfnts.contexts.column import Column, UnseenCategoryWarning
from pfnts.contexts.files import read_file
from pfnts.contexts.plain import compact, plain, plain_rows
from pfnts.contexts.schema import IdColumnWarning, Schema
from pfnts.contexts.screening import describing
from pfnts.contexts.table import Table, read

__all__ = [
    "Column",
    "IdColumnWarning",
    "Schema",
    "Table",
    "UnseenCategoryWarning",
    "compact",
    "describing",
    "plain",
    "plain_rows",
    "read",
    "read_file",
]
