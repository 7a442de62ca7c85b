"""The PFN-TS paper: its figures, what has to be run to give them back, and ours beside them."""

from pfnts.reproduction.paper import PAPER
from pfnts.reproduction.results import write_results
from pfnts.reproduction.suites import SUITES, Suite
from pfnts.reproduction.targets import TARGETS, Reproduction, reproduction

__all__ = ["PAPER", "SUITES", "TARGETS", "Reproduction", "Suite", "reproduction", "write_results"]
