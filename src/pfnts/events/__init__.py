"""What happened, in one order: the log from which everything a policy knows is folded."""

from pfnts.events.actions import CANDIDATE, ActionSet
from pfnts.events.event import (
    ArmAdded,
    ArmRemoved,
    Corrected,
    Decided,
    Event,
    Label,
    Observed,
    Rewarded,
    from_dict,
    to_dict,
)
from pfnts.events.history import History
from pfnts.events.log import Log

__all__ = [
    "CANDIDATE",
    "ActionSet",
    "ArmAdded",
    "ArmRemoved",
    "Corrected",
    "Decided",
    "Event",
    "History",
    "Label",
    "Log",
    "Observed",
    "Rewarded",
    "from_dict",
    "to_dict",
]
