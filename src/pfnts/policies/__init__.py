"""Policies: decide, update, and a posterior where they have one."""

from pfnts.policies.base import Choice, Decision, Policy
from pfnts.policies.pfn_ts import PFNTS
from pfnts.policies.registry import make, names
from pfnts.policies.shrunk import Shrunk
from pfnts.policies.uniform import Uniform

__all__ = ["PFNTS", "Choice", "Decision", "Policy", "Shrunk", "Uniform", "make", "names"]
