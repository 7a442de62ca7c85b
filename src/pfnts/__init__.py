"""Contextual bandits that just work on tabular data."""

from pfnts.encodings import Schema
from pfnts.policies import PFNTS, Decision, Policy
from pfnts.simulation import Trajectory, simulate

__all__ = ["PFNTS", "Decision", "Policy", "Schema", "Trajectory", "simulate"]
