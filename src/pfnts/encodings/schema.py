"""The schema of contexts, where version 0.1 had it."""

from pfnts.contexts import Column, Schema

__all__ = ["Column", "Schema"]
