"""How traffic is allocated before, or alongside, a policy's own rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.events import Label


@dataclass(frozen=True)
class Traffic:
    """How decisions are shared out before, or beside, a policy's own rule; propensities stay exact.

    Examples
    --------
    >>> Traffic(explore=0.1)
    Traffic(warmup=5, explore=0.1, holdout=0.0, baseline=None, max_share=1.0)
    """

    warmup: int = 5
    """Rows of an arm that its model must hold before the policy's own rule may choose it. Until then it is
    drawn at random among the arms in warm-up, and is never more than this many decisions ahead of its
    rewards."""
    explore: float = 0.0
    """Share of the rounds in which an eligible arm is drawn uniformly, warm-up included: no propensity of
    an eligible arm is below ``explore`` over their number, as trials and later evaluations need it. The
    holdout is taken off first."""
    holdout: float = 0.0
    """Share of the rounds that stay with the baseline arm, warm-up included; where that arm is not eligible,
    there is no holdout."""
    baseline: Label | None = None
    """Label of the arm that the holdout gets; the first one when not given."""
    max_share: float | Mapping[Label, float] | Sequence[tuple[Label, float]] = 1.0
    """Largest propensity of any arm, or of each by its label, holdout included. What is above it goes to the
    other eligible arms in proportion to their propensities (evenly where these are zero). Where the limits of
    the eligible arms sum to less than 1, all are raised by the same factor."""

    def __post_init__(self) -> None:
        if isinstance(self.warmup, bool) or not self.warmup >= 0 or self.warmup % 1:
            raise ValueError(f"warmup must be a non-negative integer, got {self.warmup!r}")
        object.__setattr__(self, "warmup", int(self.warmup))
        for name in ("explore", "holdout"):
            object.__setattr__(self, name, _share(name, getattr(self, name), "a share of the rounds"))
        if isinstance(self.max_share, int | float):
            limits: Any = _share("max_share", self.max_share, "a propensity")
        else:
            # As pairs, which can be hashed, and keep their labels in a file.
            pairs = self.max_share.items() if isinstance(self.max_share, Mapping) else self.max_share
            limits = tuple((label, _share("max_share", share, "a propensity")) for label, share in pairs)
        object.__setattr__(self, "max_share", limits)

    @property
    def divided(self) -> bool:
        """Whether some decisions are not the policy's own rule's, warm-up apart."""
        return bool(self.explore or self.holdout or self.max_share != 1)

    def with_warmup(self, *, least: int, why: str) -> Traffic:
        """Return it, or raise an error if its warm-up is too short for a policy."""
        if self.warmup < least:
            raise ValueError(f"warmup must be at least {least}, {why}, got {self.warmup}")
        return self

    def for_arms(self, arms: Sequence[Label]) -> Traffic:
        """Name the baseline; unknown arms, and limits that leave no room for it, are errors."""
        named_here = [("baseline", self.baseline), *(("max_share", label) for label, _ in self._pairs)]
        for name, label in named_here:
            if label is not None and label not in arms:
                raise ValueError(f"{name} must be one of the arms {list(arms)}, got {label!r}")
        if not self.holdout:
            return self
        if not arms:
            raise ValueError(
                f"holdout must be 0 for a policy without arms of its own, got {self.holdout}; give it arms"
            )
        named = self if self.baseline is not None else replace(self, baseline=arms[0])
        if (self.limits(arms) < named.holdouts(arms)).any():
            raise ValueError(
                f"max_share must leave room for the holdout of {self.holdout} at {named.baseline!r}, "
                f"got {self.max_share}"
            )
        return named

    def limits(self, arms: Sequence[Label | None]) -> NDArray[np.float64]:
        """Largest propensity (K,) of each arm."""
        if isinstance(self.max_share, float):
            return np.full(len(arms), self.max_share)
        given: dict[Label | None, float] = dict(self._pairs)
        return np.array([given.get(arm, 1.0) for arm in arms])

    @property
    def _pairs(self) -> tuple[tuple[Label, float], ...]:
        return () if isinstance(self.max_share, float) else tuple(self.max_share)  # type: ignore[arg-type]

    def holdouts(self, arms: Sequence[Label | None]) -> NDArray[np.float64]:
        """Share (K,) of the rounds that stays with each arm: none where the baseline is no longer there."""
        return np.array([self.holdout if arm == self.baseline else 0.0 for arm in arms])


def _share(name: str, value: float, what: str) -> float:
    if isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be between 0 and 1, {what}, got {value}")
    return float(value)


TRAFFIC = Traffic()
"""What most policies begin with."""
NO_WARMUP = Traffic(warmup=0)
"""What policies begin with that need to know nothing of an arm before they choose it."""
