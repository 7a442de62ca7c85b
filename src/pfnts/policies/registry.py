"""Policies by name, imported only when asked for: some need an extra."""

from __future__ import annotations

import inspect
import os
from importlib import import_module
from typing import Any

from pfnts import backbones
from pfnts.dotted import find, is_dotted
from pfnts.policies.arguments import Arms
from pfnts.policies.file import policy_of
from pfnts.policies.policy import Policy
from pfnts.policies.settings import gathered

# name: (module within pfnts.policies, class)
_POLICIES: dict[str, tuple[str, str]] = {
    "pfn-ts": ("pfn_ts", "PFNTS"),
    "pfn-ts-paper": ("pfn_ts", "PaperPFNTS"),
    "lin-ts": ("lin_ts", "LinTS"),
    "lin-ucb": ("lin_ucb", "LinUCB"),
    "lin-ucb-features": ("lin_ucb_features", "LinUCBFeatures"),
    "neural-ts": ("baselines.neural_ts", "NeuralTS"),
    "bf-ts": ("baselines.bf_ts", "BFTS"),
    "rf-ts": ("baselines.forest_ts", "RFTS"),
    "xgboost-ts": ("baselines.forest_ts", "XGBoostTS"),
    "epsilon-greedy": ("epsilon_greedy", "EpsilonGreedy"),
    "ts": ("context_free", "ContextFreeTS"),
    "uniform": ("uniform", "Uniform"),
    "vw": ("peers.vowpal_wabbit", "VowpalWabbit"),
    "mabwiser-linucb": ("peers.mabwiser", "MABWiserLinUCB"),
    "contextualbandits-linucb": ("peers.contextualbandits", "ContextualBanditsLinUCB"),
    "bayesianbandits-ts": ("peers.bayesianbandits", "BayesianBanditsTS"),
}


def names() -> tuple[str, ...]:
    """Names that `make` knows.

    Examples
    --------
    >>> "uniform" in names()
    True
    """
    return tuple(_POLICIES)


def make(name: str, *, arms: Arms, device: str = "cpu", **options: Any) -> Policy:
    """Make a policy by its name.

    Parameters
    ----------
    name
        One of `names()`; or ``package.module.Class``, a policy of your own.
    arms
        Number of arms, or their labels; where the policy judges arms by features, labels to features.
    device
        Where its backbone computes, as PyTorch names it.
    options
        Keyword arguments of the policy's class, or fields of its settings objects, as in ``warmup=3``.

    Examples
    --------
    >>> make("uniform", arms=2).arms
    (0, 1)
    """
    kind = policy_class(name)
    if device != "cpu":
        backbone = inspect.signature(kind).parameters.get("backbone")
        if backbone is None:
            raise ValueError(
                f'device must be "cpu" for the policy {name!r}, which has no backbone, got {device!r}'
            )
        options["backbone"] = backbones.load(options.get("backbone", backbone.default), device=device)
    return kind(arms, **gathered(kind, options))


def load(path: str | os.PathLike[str]) -> Policy:
    """Read back any of these policies from a file that it was saved to."""
    name = policy_of(path)
    if name not in _POLICIES:
        raise ValueError(f"path must hold one of {sorted(_POLICIES)}, {str(path)!r} holds {name!r}")
    module, cls = _POLICIES[name]
    loaded: Policy = getattr(import_module(f"pfnts.policies.{module}"), cls).load(path)
    return loaded


def policy_class(name: str) -> type[Policy]:
    """The class that `make` calls."""
    if name in _POLICIES:
        module, cls = _POLICIES[name]
        known: type[Policy] = getattr(import_module(f"pfnts.policies.{module}"), cls)
        return known
    if not is_dotted(name):
        raise ValueError(f"name must be one of {sorted(_POLICIES)} or package.module.Class, got {name!r}")
    found = find(name, kind="policy")
    if not isinstance(found, type) or not issubclass(found, Policy):
        raise ValueError(f"policy {name!r} must be a subclass of pfnts.Policy, got {found!r}")
    return found
