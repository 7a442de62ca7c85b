"""Which sequence an arm's rows go to, and the sequences that grow from them."""

from pfnts.layouts.change import Change
from pfnts.layouts.features import Features
from pfnts.layouts.layout import Block, Disjoint, Joint, Layout
from pfnts.layouts.learner import Learner, Sizes
from pfnts.layouts.registry import Encoding, described, from_description, selector
from pfnts.layouts.selectors import Adaptive, Averaged, Fixed, LayoutSelector, Threshold

__all__ = [
    "Adaptive",
    "Averaged",
    "Block",
    "Change",
    "Disjoint",
    "Encoding",
    "Features",
    "Fixed",
    "Joint",
    "Layout",
    "LayoutSelector",
    "Learner",
    "Sizes",
    "Threshold",
    "described",
    "from_description",
    "selector",
]
