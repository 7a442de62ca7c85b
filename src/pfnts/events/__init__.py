"""What happened, in one order: the log from which everything a policy knows is folded."""

from pfnts.events.actions import CANDIDATE, ActionSet
from pfnts.events.event import (
    ArmAdded,
    ArmRemoved,
    Decided,
    Event,
    Label,
    Observed,
    Rewarded,
    from_dict,
    to_dict,
)
from pfnts.events.history import History

__all__ = [
    "CANDIDATE",
    "ActionSet",
    "ArmAdded",
    "ArmRemoved",
    "Decided",
    "Event",
    "History",
    "Label",
    "Observed",
    "Rewarded",
    "from_dict",
    "to_dict",
]
