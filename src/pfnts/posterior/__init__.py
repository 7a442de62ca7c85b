"""From predictive means along prefixes to posteriors of mean rewards."""

from pfnts.posterior.base import Posterior, stack
from pfnts.posterior.gaussian import GaussianPosterior
from pfnts.posterior.grid import prefix_grid
from pfnts.posterior.predictive_clt import PredictiveCLT
from pfnts.posterior.student import StudentPosterior
from pfnts.posterior.subclt import MeansAlongPrefixes, SubCLT

__all__ = [
    "GaussianPosterior",
    "MeansAlongPrefixes",
    "Posterior",
    "PredictiveCLT",
    "StudentPosterior",
    "SubCLT",
    "prefix_grid",
    "stack",
]
