"""From what a prediction model says to posteriors of mean rewards."""

from pfnts.posterior.base import GaussianPosterior, Posterior, StudentPosterior, stack
from pfnts.posterior.bounded import BoundedPosterior
from pfnts.posterior.estimator import Answer, AnyPosterior, Asks, Estimator, NetworkPosterior, Predictive
from pfnts.posterior.mixture import MixturePosterior
from pfnts.posterior.registry import described, load
from pfnts.posterior.rewards import RewardDistribution
from pfnts.posterior.subclt import PredictiveCLT, ShrunkSubCLT, SubCLT, prefix_grid

__all__ = [
    "Answer",
    "AnyPosterior",
    "Asks",
    "BoundedPosterior",
    "Estimator",
    "GaussianPosterior",
    "MixturePosterior",
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
