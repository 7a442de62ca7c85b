"""Bandit problems to simulate."""

from pfnts.environments.base import Environment
from pfnts.environments.registry import Scenario, describe, make, names

__all__ = ["Environment", "Scenario", "describe", "make", "names"]
