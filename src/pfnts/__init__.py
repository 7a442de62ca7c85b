"""Contextual bandits that just work on tabular data."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pfnts.contexts import Schema
from pfnts.policies import PFNTS, Decision, Memory, Policy, Traffic
from pfnts.simulation import Trajectory, simulate

if TYPE_CHECKING:
    from pfnts.regressor import PFNRegressor

__version__ = version("pfnts")

__all__ = [
    "PFNTS",
    "Decision",
    "Memory",
    "PFNRegressor",
    "Policy",
    "Schema",
    "Traffic",
    "Trajectory",
    "__version__",
    "simulate",
]


def __getattr__(name: str) -> Any:
    # It needs scikit-learn, which the rest does not.
    if name == "PFNRegressor":
        from pfnts.regressor import PFNRegressor

        return PFNRegressor
    raise AttributeError(f"module 'pfnts' has no attribute {name!r}")
