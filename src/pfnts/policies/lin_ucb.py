"""Linear upper confidence bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies.arguments import check_number
from pfnts.policies.policy import Policy
from pfnts.policies.ridge import RidgeModel
from pfnts.policies.rules import UpperBound
from pfnts.policies.traffic import TRAFFIC, Traffic


class LinUCB(Policy):
    """The arm with the largest x' b + alpha sqrt(x' A^-1 x), one ridge regression per arm.

    Deterministic, except that arms with equal bounds share the decision evenly.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    alpha
        How many standard deviations of a reward the bound lies above the mean.
    penalty
        Prior precision of each coefficient.
    intercept
        Whether a constant joins the features. The paper's row has none.
    traffic, schema, seed
        See `Policy`.

    Examples
    --------
    >>> policy = LinUCB(arms=["a", "b"], traffic=Traffic(warmup=0))
    >>> policy.decide([1.0]).propensities
    array([0.5, 0.5])
    >>> outcome = policy.update([1.0], arm="b", reward=9.0)
    >>> policy.decide([1.0]).propensities
    array([0., 1.])
    """

    name = "lin-ucb"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        alpha: float = 1.0,
        penalty: float = 1.0,
        intercept: bool = True,
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        alpha = check_number("alpha", alpha)
        super().__init__(
            arms,
            model=RidgeModel(penalty=penalty, intercept=intercept),
            rule=UpperBound(alpha),
            traffic=traffic,
            schema=schema,
            settings={"alpha": alpha, "penalty": float(penalty), "intercept": bool(intercept)},
            seed=seed,
        )
