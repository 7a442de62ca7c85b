"""Contexts of every container, made into rows of floats by one schema."""

from pfnts.contexts.column import Column, UnseenCategoryWarning
from pfnts.contexts.files import describing, read_file
from pfnts.contexts.schema import Schema
from pfnts.contexts.table import Table, compact, plain, plain_rows, read

__all__ = [
    "Column",
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
