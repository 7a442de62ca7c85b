"""Which sequence a context and an arm belong to, and how contexts become numbers."""

from pfnts.encodings.schema import Column, Schema

__all__ = ["Column", "Schema"]
