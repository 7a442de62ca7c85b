"""Reasons of a decision: posteriors, similar rows, the columns that matter."""

from pfnts.explain.explanation import Explanation
from pfnts.explain.reasons import explanation

__all__ = ["Explanation", "explanation"]
