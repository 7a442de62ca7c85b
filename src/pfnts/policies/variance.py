"""Variance estimators by name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pfnts.encodings.base import VarianceEstimator
from pfnts.policies.shrunk import Shrunk
from pfnts.posterior import SubCLT

_KNOWN: dict[str, type[SubCLT] | type[Shrunk]] = {"subclt": SubCLT, "shrunk": Shrunk}


def estimator(variance: str | VarianceEstimator, *, base: float) -> VarianceEstimator:
    """Look up "subclt" or "shrunk"; an object passes through if its grid is the policy's.

    Examples
    --------
    >>> estimator("subclt", base=1.5)
    SubCLT(base=1.5, weights='equal')
    """
    if isinstance(variance, str):
        if variance not in _KNOWN:
            raise ValueError(f"variance must be one of {list(_KNOWN)} or an estimator, got {variance!r}")
        return _KNOWN[variance](base=base)
    if not hasattr(variance, "posterior"):
        raise ValueError(
            f"variance must be one of {list(_KNOWN)} or have a method posterior, got {variance!r}"
        )
    own = getattr(variance, "base", base)
    if own != base:
        raise ValueError(f"base must be that of the variance estimator, {own}, got {base}")
    return variance


def described(variance: VarianceEstimator) -> dict[str, Any]:
    """Say in JSON which estimator it is; one of the user's own has no settings that could be saved."""
    for name, kind in _KNOWN.items():
        if type(variance) is kind:
            return {"name": name, "settings": asdict(variance)}
    return {"name": type(variance).__name__, "settings": None}


def from_description(description: dict[str, Any]) -> VarianceEstimator:
    """Make the estimator that `described` described."""
    if description["settings"] is None:
        raise ValueError(
            f"variance must be passed to load: the policy was saved with an estimator of its own kind, "
            f"{description['name']}"
        )
    return _KNOWN[description["name"]](**description["settings"])
