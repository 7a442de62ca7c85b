"""Checks of arguments that all policies share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from pfnts.contexts import plain
from pfnts.contexts.values import shown
from pfnts.events import Label
from pfnts.events.event import LARGEST_REWARD, Context
from pfnts.policies.rewards import REWARDS, Rewards

Arms: TypeAlias = int | Sequence[Label] | Mapping[Label, Any] | None
"""Number of arms, their labels, or labels to features; None where decisions bring their own candidates."""


def check_arms(arms: Arms) -> tuple[Label, ...]:
    """Labels of the arms: 0, 1, ... for a number of them, otherwise distinct strings or integers.

    None, and an empty mapping, are a policy without arms of its own.
    """
    if arms is None or (isinstance(arms, Mapping) and not arms):
        return ()
    arms = list(arms) if isinstance(arms, Mapping) else arms
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        if not 1 <= arms <= 1_000_000:
            raise ValueError(f"arms must be at least 1 (and at most a million), got {arms}")
        return tuple(range(int(arms)))
    if isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray) or not len(arms):
        raise ValueError(
            f"arms must be a number of arms, a non-empty list of labels, or labels to features, got {arms!r}"
        )
    labels = tuple(check_label(arm.item() if isinstance(arm, np.generic) else arm) for arm in arms)
    if len(set(labels)) != len(labels):
        raise ValueError(f"arms must have distinct labels, got {list(labels)}")
    return labels


def check_features(arms: Arms, *, taken: bool, policy: str) -> tuple[Context, ...] | None:
    """Features of each arm as plain JSON values; None where there are none."""
    if arms is not None and not isinstance(arms, Mapping):
        return None
    if not taken:
        raise ValueError(
            f"arms must be a number of arms or a list of labels for {policy}, which does not judge arms by "
            f"features, got {shown(arms)}"
        )
    try:
        return tuple(map(plain, (arms or {}).values()))
    except ValueError as error:
        raise ValueError(f"arms must be a mapping of labels to features: {error}") from None


def check_label(label: Any) -> Label:
    """Return a label that survives a log, or raise an error."""
    if not isinstance(label, str | int) or isinstance(label, bool):
        raise ValueError(f"arms must be labelled by strings or integers, got {label!r}")
    return label


def check_number(name: str, value: float, *, positive: bool = False) -> float:
    """Return a finite number from 0 on, or above it, or raise an error."""
    if not (value > 0 if positive else value >= 0) or not np.isfinite(value):
        raise ValueError(
            f"{name} must be a {'positive number' if positive else 'number from 0 on'}, got {value}"
        )
    return float(value)


def check_count(name: str, value: int) -> int:
    """Return a positive integer, or raise an error."""
    if value != int(value) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return int(value)


def unboxed(label: Any) -> Any:
    """Return a label as Python has it, also where numpy has boxed it."""
    return label.item() if isinstance(label, np.generic) else label


def check_reward(value: Any, rewards: Rewards = REWARDS) -> float:
    """Return a reward as a float: numbers and booleans only, finite, at most 1e100 in size, in the range."""
    number = value.item() if np.ndim(value) == 0 and hasattr(value, "item") else value
    reward = float("nan")
    if isinstance(number, Real | Decimal) and not isinstance(value, np.timedelta64 | np.datetime64):
        try:
            reward = float(number)
        except (OverflowError, ValueError):
            reward = float("inf")
    if not abs(reward) <= LARGEST_REWARD:
        most = f"{LARGEST_REWARD:g}"
        raise ValueError(f"reward must be a finite number of at most {most} in size, got {shown(value)}")
    if rewards.range is not None and not rewards.range[0] <= reward <= rewards.range[1]:
        low, high = rewards.range
        raise ValueError(
            f"reward must be from {low:g} to {high:g}, the range that was given, got {reward:g}; "
            "make the policy with a wider range"
        )
    return reward


def listed(name: str, values: Any) -> list[Any]:
    """Take the values of a batch."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a list for a batch of contexts, got {values!r}")
    return list(values)
