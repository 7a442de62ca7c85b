"""From what a prediction model says to posteriors of mean rewards."""

from pfnts.posterior.base import Posterior, stack
from pfnts.posterior.bounded import BoundedPosterior
from pfnts.posterior.estimator import Answer, AnyPosterior, Asks, Estimator
from pfnts.posterior.gaussian import GaussianPosterior
from pfnts.posterior.grid import prefix_grid
from pfnts.posterior.network_posterior import NetworkPosterior
from pfnts.posterior.predictive import Predictive
from pfnts.posterior.predictive_clt import PredictiveCLT
from pfnts.posterior.registry import described, load
from pfnts.posterior.rewards import RewardDistribution
from pfnts.posterior.shrunk_subclt import ShrunkSubCLT
from pfnts.posterior.student import StudentPosterior
from pfnts.posterior.subclt import SubCLT

__all__ = [
    "Answer",
    "AnyPosterior",
    "Asks",
    "BoundedPosterior",
    "Estimator",
    "GaussianPosterior",
    "NetworkPosterior",
    "Posterior",
    "Predictive",
    "PredictiveCLT",
    "RewardDistribution",
    "ShrunkSubCLT",
    "StudentPosterior",
    "SubCLT",
    "described",
    "load",
    "prefix_grid",
    "stack",
]
