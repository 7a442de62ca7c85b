"""Which sequence a context and an arm belong to, and how contexts become numbers."""

from pfnts.encodings.adaptive import Adaptive
from pfnts.encodings.base import Encoding, VarianceEstimator
from pfnts.encodings.history import History
from pfnts.encodings.layouts import Block, Disjoint, Joint
from pfnts.encodings.registry import EncodingSettings, settings, start
from pfnts.encodings.schema import Column, Schema
from pfnts.encodings.threshold import Threshold
from pfnts.encodings.track import Snapshot

__all__ = [
    "Adaptive",
    "Block",
    "Column",
    "Disjoint",
    "Encoding",
    "EncodingSettings",
    "History",
    "Joint",
    "Schema",
    "Snapshot",
    "Threshold",
    "VarianceEstimator",
    "settings",
    "start",
]
