"""Contextual bandits that just work on tabular data."""

from typing import TYPE_CHECKING, Any

from pfnts.contexts import Schema
from pfnts.policies import PFNTS, Decision, Memory, Policy, Rewards, Traffic
from pfnts.simulation import Trajectory, simulate

if TYPE_CHECKING:
    from pfnts.regressor import PFNRegressor

    __version__: str

__all__ = [
    "PFNTS",
    "Decision",
    "Memory",
    "PFNRegressor",
    "Policy",
    "Rewards",
    "Schema",
    "Traffic",
    "Trajectory",
    "__version__",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # a tenth of the time that importing the package takes

        return version("pfnts")
    # It needs scikit-learn, which the rest does not.
    if name == "PFNRegressor":
        from pfnts.regressor import PFNRegressor

        return PFNRegressor
    raise AttributeError(f"module 'pfnts' has no attribute {name!r}")
