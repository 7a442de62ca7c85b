"""How good a predictive distribution or an interval was."""

from pfnts.scores.coverage import coverage
from pfnts.scores.crps import crps

__all__ = ["coverage", "crps"]
