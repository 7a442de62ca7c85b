"""What is known of rewards before the first: their range, what arms cost, how much may be spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pfnts.arrays import Vector
from pfnts.events import Label
from pfnts.events.event import LARGEST_REWARD


@dataclass(frozen=True)
class Rewards:
    """What is known about rewards in advance.

    Examples
    --------
    >>> Rewards(cost={"none": 0, "call": 4}, budget=(200, 1000)).costs(["none", "call"])
    array([0., 4.])
    """

    range: tuple[float, float] | None = None
    """Least and largest reward: others are refused, mean rewards stay inside, and an arm may pay the largest
    where it was not tried."""
    cost: Mapping[Label, float] | None = None
    """What a pull of each arm costs, in units of the reward: what counts is reward less cost."""
    budget: tuple[float, int] | None = None
    """What a number of decisions may cost together: (total, rounds)."""

    def __post_init__(self) -> None:
        if self.range is not None:
            low, high = pair = _pair("range", self.range)
            if not (-LARGEST_REWARD <= low < high <= LARGEST_REWARD):
                raise ValueError(
                    f"range must be the least and the largest reward, finite numbers, got {self.range}"
                )
            object.__setattr__(self, "range", pair)
        if self.cost is not None:
            cost = dict(self.cost)  # from a file, it is a list of pairs
            for arm, value in cost.items():
                if (
                    isinstance(value, bool)
                    or not isinstance(value, int | float | np.number)
                    or not value >= 0
                ):
                    raise ValueError(f"cost of {arm!r} must be a number from 0 on, got {value!r}")
            object.__setattr__(self, "cost", {arm: float(value) for arm, value in cost.items()})
        if self.budget is not None:
            total, rounds = _pair("budget", self.budget)
            if self.cost is None:
                raise ValueError(f"budget must come with cost=, the cost of each arm, got {self.budget}")
            if rounds < 1 or rounds % 1 or not 0 <= total < np.inf:
                raise ValueError(
                    "budget must be (total, rounds), a total from 0 on for a number of rounds, "
                    f"got {self.budget}"
                )
            object.__setattr__(self, "budget", (total, int(rounds)))

    def costs(self, arms: Iterable[Label]) -> Vector:
        """Cost (K,) of each arm; one that has none is an error."""
        if self.cost is None:
            return np.zeros(len(list(arms)))
        for arm in (arms := list(arms)):
            if arm not in self.cost:
                raise ValueError(f"cost must be given for every arm, 0 where it is free; {arm!r} has none")
        return np.array([self.cost[arm] for arm in arms])

    def to_dict(self) -> dict[str, Any]:
        """Write it as plain JSON values; labels are no keys there."""
        return {
            "range": None if self.range is None else list(self.range),
            "cost": None if self.cost is None else [[arm, value] for arm, value in self.cost.items()],
            "budget": None if self.budget is None else list(self.budget),
        }


REWARDS = Rewards()
"""Nothing is known."""


def _pair(name: str, value: Any) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be two numbers, got {value!r}") from None
    return first, second
