"""Posteriors of mean rewards, and the estimators that make them from predictions."""

from pfnts.posterior.base import GaussianPosterior, stack
from pfnts.posterior.bounded import BoundedPosterior
from pfnts.posterior.estimator import Answer, AnyPosterior, Asks, Estimator, NetworkPosterior, Predictive
from pfnts.posterior.mixture import MixturePosterior
from pfnts.posterior.registry import described, load
from pfnts.posterior.rewards import RewardDistribution
from pfnts.posterior.subclt import ShrunkSubCLT, SubCLT, prefix_grid

__all__ = [
    "Answer",
    "AnyPosterior",
    "Asks",
    "BoundedPosterior",
    "Estimator",
    "GaussianPosterior",
    "MixturePosterior",
    "NetworkPosterior",
    "Predictive",
    "RewardDistribution",
    "ShrunkSubCLT",
    "SubCLT",
    "described",
    "load",
    "prefix_grid",
    "stack",
]
