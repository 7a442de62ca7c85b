"""How a model keeps up with what it is told."""

from __future__ import annotations

from dataclasses import dataclass

from pfnts.arms.schedule import check_refresh


@dataclass(frozen=True)
class Memory:
    """When what was learned reaches the decisions.

    Examples
    --------
    >>> Memory(refresh=2)
    Memory(refresh=2.0)
    """

    refresh: float = 1.5
    """How much a history grows before what rests on it is recomputed; the paper's is 2."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "refresh", check_refresh(self.refresh))


MEMORY = Memory()
"""What PFN-TS begins with."""
