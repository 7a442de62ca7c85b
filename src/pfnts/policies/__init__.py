"""Policies: decide, update, and a posterior where they have one."""

from pfnts.policies.base import Choice, Decision, Policy
from pfnts.policies.registry import make, names
from pfnts.policies.uniform import Uniform

__all__ = ["Choice", "Decision", "Policy", "Uniform", "make", "names"]
