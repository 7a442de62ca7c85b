"""Bandit problems to simulate."""

from pfnts.environments.base import Environment
from pfnts.environments.openml import MissingDatasetError
from pfnts.environments.registry import Scenario, describe, make, names
from pfnts.environments.tables import from_csv

__all__ = ["Environment", "MissingDatasetError", "Scenario", "describe", "from_csv", "make", "names"]
