"""Logs of other systems, as events."""

from pfnts.imports.rows import Columns, imported_rows

__all__ = ["Columns", "imported_rows"]
