"""What a policy answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pfnts.arrays import Counts, Matrix, Vector
from pfnts.events import Label
from pfnts.posterior import AnyPosterior

Reason: TypeAlias = Literal["warmup", "thompson", "greedy", "explore", "holdout", "max_share", "fallback"]


@dataclass(frozen=True)
class Decision:
    """The arm chosen at one context, how likely each arm was, and why.

    Examples
    --------
    >>> import numpy as np
    >>> decision = Decision("0", "b", 1, np.array([0.25, 0.75]), "thompson", arms=("a", "b"))
    >>> decision.to_dict()
    {'id': '0', 'arm': 'b', 'propensities': {'a': 0.25, 'b': 0.75}, 'reason': 'thompson'}
    """

    id: str
    """Names the decision: its reward is handed in by it."""
    arm: Label
    """Label of the chosen arm; of candidates, the position."""
    index: int
    """Its position in `Policy.arms`, or among the candidates."""
    propensities: Vector
    """(K,) probability of every arm, in the order of `Policy.arms`; exact unless its policy says not."""
    reason: Reason
    """How it came about."""
    posterior: AnyPosterior | None = None
    """Posterior of the (K,) mean rewards at the context; None during warm-up and where a policy has none."""
    arms: tuple[Label, ...] = ()
    """Labels in the order of ``propensities``; of candidates, the positions."""
    shortlist: Counts | None = None
    """Positions (S,) that ``posterior`` is of, where there were too many arms to ask about all of them."""

    def to_dict(self) -> dict[str, Any]:
        """Write the decision as plain JSON values; labels become texts where they are keys."""
        shares = {str(arm): float(share) for arm, share in zip(self.arms, self.propensities, strict=True)}
        return {"id": self.id, "arm": self.arm, "propensities": shares, "reason": self.reason}


@dataclass(frozen=True)
class Choices:
    """What a policy's rule answers at q contexts for the K arms there are."""

    index: Counts
    """(q,) position of the chosen arm."""
    propensities: Matrix
    """(q, K)"""
    posterior: AnyPosterior | None = None
    """(q, K), or (q, S) where there is a shortlist"""
    shortlist: Counts | None = None
    """(q, S) positions of the arms that the rule chose among; None for all."""
    explore: float = 0.0
    """Least share of the decisions in which an eligible arm is drawn uniformly."""
