"""Estimators by name."""

from __future__ import annotations

import re
from typing import Any

from pfnts.posterior.estimator import Estimator, NetworkPosterior, Predictive
from pfnts.posterior.subclt import ShrunkSubCLT, SubCLT

_KNOWN: dict[str, Any] = {
    "network": NetworkPosterior,
    "shrunk": ShrunkSubCLT,
    "subclt": SubCLT,
    "predictive": Predictive,
}
_DROPPED = {"coupled": False, "tails": "gaussian"}
"""Options of version 0.2 that were removed, and the values that saved files may give them."""


def load(estimator: str | Estimator) -> Estimator:
    """Look up an estimator by its name, with options in brackets if there are any; an object is returned.

    Examples
    --------
    >>> load("subclt(base=1.5)")
    SubCLT(base=1.5, weights='equal')
    """
    if not isinstance(estimator, str):
        if not isinstance(estimator, Estimator):
            raise ValueError(f"estimator must be one of {list(_KNOWN)} or an estimator, got {estimator!r}")
        return estimator
    parts = re.fullmatch(r"([\w-]+)(?:\((.*)\))?", estimator)
    if parts is not None and parts[1] == "predictive-clt":
        raise ValueError(
            f'estimator must not be "predictive-clt", which was removed, got {estimator!r}; '
            'choose "subclt" or "subclt(base=1.1)"'
        )
    if parts is None or parts[1] not in _KNOWN:
        raise ValueError(
            f'estimator must be one of {list(_KNOWN)}, options as in "subclt(base=1.5)", or an estimator, '
            f"got {estimator!r}"
        )
    options = dict(_option(text, estimator) for text in filter(None, (parts[2] or "").split(",")))
    for name, value in _DROPPED.items():
        if options.pop(name, value) != value:
            raise ValueError(
                f"estimator must not have the option {name!r}, which was removed, got {estimator!r}; "
                "leave it out: arms are drawn independently, from normal distributions"
            )
    try:
        found: Estimator = _KNOWN[parts[1]](**options)
    except TypeError as error:
        raise ValueError(
            f"estimator must be given options that it has, got {estimator!r} ({error})"
        ) from error
    return found


def described(estimator: Estimator) -> str | None:
    """Write an estimator so that `load` reads it; None for one of the user's own."""
    for name, kind in _KNOWN.items():
        if type(estimator) is kind:
            options = ",".join(f"{key}={value}" for key, value in vars(estimator).items())
            return f"{name}({options})" if options else name
    return None


def _option(text: str, whole: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.isidentifier():
        raise ValueError(f'estimator must be written like "subclt(base=1.5)", got {whole!r}')
    if value in ("true", "false"):
        return name, value == "true"
    try:
        return name, float(value)
    except ValueError:
        return name, value
