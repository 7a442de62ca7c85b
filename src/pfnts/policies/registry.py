"""Policies by name, imported only when asked for: some need an extra."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pfnts.policies.base import Label, Policy

# name: (module within pfnts.policies, class)
_POLICIES: dict[str, tuple[str, str]] = {
    "pfn-ts": ("pfn_ts", "PFNTS"),
    "lin-ts": ("lin_ts", "LinTS"),
    "lin-ucb": ("lin_ucb", "LinUCB"),
    "neural-ts": ("neural_ts", "NeuralTS"),
    "bf-ts": ("bf_ts", "BFTS"),
    "rf-ts": ("forest_ts", "RFTS"),
    "xgboost-ts": ("forest_ts", "XGBoostTS"),
    "epsilon-greedy": ("epsilon_greedy", "EpsilonGreedy"),
    "ts": ("context_free", "ContextFreeTS"),
    "uniform": ("uniform", "Uniform"),
}


def names() -> tuple[str, ...]:
    """Names that `make` knows.

    Examples
    --------
    >>> "uniform" in names()
    True
    """
    return tuple(_POLICIES)


def make(name: str, *, arms: int | Sequence[Label], **options: Any) -> Policy:
    """Make a policy by its name.

    Parameters
    ----------
    name
        One of `names()`.
    arms
        Number of arms, or their labels.
    options
        Keyword arguments of the policy's class.

    Examples
    --------
    >>> make("uniform", arms=2).arms
    (0, 1)
    """
    if name not in _POLICIES:
        raise ValueError(f"name must be one of {sorted(_POLICIES)}, got {name!r}")
    module, cls = _POLICIES[name]
    policy: Policy = getattr(import_module(f"pfnts.policies.{module}"), cls)(arms, **options)
    return policy
