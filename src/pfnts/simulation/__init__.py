"""Policies simulated in environments."""

from pfnts.simulation.loop import simulate
from pfnts.simulation.trajectory import Trajectory

__all__ = ["Trajectory", "simulate"]
