"""Models that can be asked what they would have predicted after each prefix of a history."""

from pfnts.backbones.base import Append, Backbone, Prediction, PredictiveSequence, Question
from pfnts.backbones.linear import InverseGamma, LinearBackbone, LinearSequence
from pfnts.backbones.registry import load, names

__all__ = [
    "Append",
    "Backbone",
    "InverseGamma",
    "LinearBackbone",
    "LinearSequence",
    "Prediction",
    "PredictiveSequence",
    "Question",
    "load",
    "names",
]
