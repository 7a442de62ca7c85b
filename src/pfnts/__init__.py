"""Contextual bandits that just work on tabular data."""

from importlib.metadata import version

from pfnts.contexts import Schema
from pfnts.policies import PFNTS, Decision, Policy
from pfnts.simulation import Trajectory, simulate

__version__ = version("pfnts")

__all__ = ["PFNTS", "Decision", "Policy", "Schema", "Trajectory", "__version__", "simulate"]
