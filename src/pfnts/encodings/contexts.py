"""The reader of contexts, where version 0.1 had it."""

from pfnts.contexts import Table, read

__all__ = ["Table", "read"]
