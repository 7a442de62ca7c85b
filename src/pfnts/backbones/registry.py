"""Backbones by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pfnts.backbones.base import Backbone
from pfnts.dotted import find, is_dotted

# Modules are imported when asked for, because a backbone may need an extra or read its weights.
_KNOWN = {
    "embedded": ("pfnts.backbones.network", "EmbeddedBackbone"),
    "linear": ("pfnts.backbones.linear", "LinearBackbone"),
    "tabicl": ("pfnts.backbones.tabicl", "TabICLBackbone"),
    "tabpfn": ("pfnts.backbones.tabpfn", "TabPFNBackbone"),
}


def names() -> list[str]:
    """Names that `load` knows."""
    return sorted(_KNOWN)


def load(name: str | Backbone, **options: Any) -> Backbone:
    """Return the backbone of that name; a backbone is returned as it is.

    Parameters
    ----------
    name
        "embedded", "linear", "tabicl", "tabpfn"; ``package.module.Class``, one of your own; or a backbone.
    options
        Passed to the backbone's constructor.

    Examples
    --------
    >>> load("linear", precision=0.1).name
    'linear'
    """
    if not isinstance(name, str):
        if not isinstance(name, Backbone):
            raise ValueError(
                f"backbone must be one of {sorted(_KNOWN)} or a pfnts.backbones.Backbone, got {name!r}"
            )
        if options:
            raise ValueError(f"options must be empty when a backbone is passed, got {sorted(options)}")
        return name
    if name not in _KNOWN:
        return _own(name, **options)
    module, kind = _KNOWN[name]
    backbone: Backbone = getattr(import_module(module), kind)(**options)
    return backbone


def _own(name: str, **options: Any) -> Backbone:
    if not is_dotted(name):
        raise ValueError(f"backbone must be one of {sorted(_KNOWN)} or package.module.Class, got {name!r}")
    found = find(name, kind="backbone")
    if isinstance(found, type) and issubclass(found, Backbone):
        made: Backbone = found(**options)
        return made
    raise ValueError(f"backbone {name!r} must be a subclass of pfnts.backbones.Backbone, got {found!r}")
