"""How a model keeps up with what it is told."""

from __future__ import annotations

from dataclasses import dataclass

from pfnts.arms.schedule import check_refresh

_FEWEST = 64


@dataclass(frozen=True)
class Memory:
    """When what was learned reaches the decisions, and when it is forgotten.

    Examples
    --------
    >>> Memory(refresh=2, window=1000)
    Memory(refresh=2.0, window=1000, half_life=None, detector=2000.0)
    """

    refresh: float = 1.5
    """How much a history grows before what rests on it is recomputed; the paper's is 2."""
    window: int | None = None
    """Rows that are remembered at least: a model that holds twice as many is started anew from the last
    ones, of all arms together. No round costs more than with a history of twice the window."""
    half_life: int | None = None
    """Each time this many rows have come, half of the older ones leave; at most about three times as many
    are held."""
    detector: float | None = 2000.0
    """A detector notices rewards that surprise the model, refreshes it, and starts it anew from the rows
    since then, with a warm-up, once these predict better by themselves. On average it takes at least this
    many rows from one false alarm to the next. None for no detector."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "refresh", check_refresh(self.refresh))
        for name in ("window", "half_life"):
            rows = getattr(self, name)
            if rows is not None and (isinstance(rows, bool) or not rows >= _FEWEST or rows % 1):
                raise ValueError(f"{name} must be a number of rows from {_FEWEST} on, or None, got {rows!r}")
            object.__setattr__(self, name, None if rows is None else int(rows))
        if self.window is not None and self.half_life is not None:
            raise ValueError(f"window must be None beside half_life={self.half_life}, got {self.window}")
        if self.detector is not None and not 1 <= self.detector < float("inf"):
            raise ValueError(f"detector must be a number of rows from 1 on, or None, got {self.detector!r}")


MEMORY = Memory()
"""What PFN-TS begins with."""
