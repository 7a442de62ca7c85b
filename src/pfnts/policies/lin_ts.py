"""Linear Thompson sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies.arguments import check_number
from pfnts.policies.policy import Policy
from pfnts.policies.ridge import RidgeModel
from pfnts.policies.rules import Thompson
from pfnts.policies.traffic import TRAFFIC, Traffic


class LinTS(Policy):
    """Thompson sampling with one ridge regression per arm.

    The mean reward of an arm at x is N(x' b, nu^2 x' A^-1 x), A = penalty I + sum x x'.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    nu
        Width of the draws: the standard deviation of a reward, where it is known.
    penalty
        Prior precision of each coefficient.
    intercept
        Whether a constant joins the features. The paper's row has none.
    traffic, schema, seed
        See `Policy`.

    Examples
    --------
    >>> policy = LinTS(arms=["a", "b"], traffic=Traffic(warmup=0))
    >>> outcome = policy.update([1.0], arm="b", reward=9.0)
    >>> decision = policy.decide([1.0])
    >>> decision.arm, decision.posterior.mean
    ('b', array([0., 6.]))
    """

    name = "lin-ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        nu: float = 1.0,
        penalty: float = 1.0,
        intercept: bool = True,
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        nu = check_number("nu", nu)
        super().__init__(
            arms,
            model=RidgeModel(penalty=penalty, intercept=intercept, nu=nu),
            rule=Thompson(),
            traffic=traffic,
            schema=schema,
            settings={"nu": nu, "penalty": float(penalty), "intercept": bool(intercept)},
            seed=seed,
        )
