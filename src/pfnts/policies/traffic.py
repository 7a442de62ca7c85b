"""Who gets traffic before, or beside, a policy's own rule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """How decisions are shared out before a policy's own rule has a say.

    Examples
    --------
    >>> Traffic(explore=0.1)
    Traffic(warmup=5, explore=0.1)
    """

    warmup: int = 5
    """Rows of an arm that its model must hold before the policy's own rule may choose it. Until then it is
    drawn at random among the arms in warm-up, and is never more than so many decisions ahead of its
    rewards."""
    explore: float = 0.0
    """Share of the rounds in which any eligible arm is drawn, each alike, warm-up included: no propensity of
    an eligible arm is below ``explore`` over their number, as trials and later evaluations need it."""

    def __post_init__(self) -> None:
        if isinstance(self.warmup, bool) or not self.warmup >= 0 or self.warmup % 1:
            raise ValueError(f"warmup must be a non-negative integer, got {self.warmup!r}")
        if not 0 <= self.explore <= 1:
            raise ValueError(f"explore must be between 0 and 1, a share of the rounds, got {self.explore}")
        object.__setattr__(self, "warmup", int(self.warmup))
        object.__setattr__(self, "explore", float(self.explore))

    def with_warmup(self, *, least: int, why: str) -> Traffic:
        """Return it, or complain that its warm-up is too short for a policy."""
        if self.warmup < least:
            raise ValueError(f"warmup must be at least {least}, {why}, got {self.warmup}")
        return self


TRAFFIC = Traffic()
"""What most policies begin with."""
NO_WARMUP = Traffic(warmup=0)
"""What policies begin with that need to know nothing of an arm before they choose it."""
