"""Which sequence an arm's rows go to, and the models that grow from them."""

from pfnts.arms.changes import Change
from pfnts.arms.layouts import Block, Disjoint, Features, Joint, Layout
from pfnts.arms.models import ArmModels
from pfnts.arms.registry import Encoding, described, from_description, selector
from pfnts.arms.selectors import Adaptive, Fixed, LayoutSelector, Threshold

__all__ = [
    "Adaptive",
    "ArmModels",
    "Block",
    "Change",
    "Disjoint",
    "Encoding",
    "Features",
    "Fixed",
    "Joint",
    "Layout",
    "LayoutSelector",
    "Threshold",
    "described",
    "from_description",
    "selector",
]
