"""Encodings by name: layouts and the rules that choose among them."""

from __future__ import annotations

from typing import Any, TypeAlias

from pfnts.arms.layouts import Block, Disjoint, Joint, Layout
from pfnts.arms.selectors import Adaptive, Fixed, LayoutSelector, Threshold

Encoding: TypeAlias = str | Layout | LayoutSelector

_LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (Disjoint(), Joint(), Block())}
_SELECTORS: dict[str, Any] = {"threshold": Threshold, "adaptive": Adaptive}


def selector(encoding: Encoding) -> LayoutSelector:
    """Look an encoding up by its name; a layout or a selector passes.

    Examples
    --------
    >>> selector("adaptive")
    Adaptive(switch_times=(128, 256, 512, 1024, 2048), arm_threshold=10)
    >>> selector(Threshold(limit=64)).name
    'threshold'
    """
    if isinstance(encoding, LayoutSelector):
        return encoding
    if isinstance(encoding, Layout):
        return Fixed(encoding)
    if isinstance(encoding, str) and encoding in _LAYOUTS:
        return Fixed(_LAYOUTS[encoding])
    if isinstance(encoding, str) and encoding in _SELECTORS:
        chosen: LayoutSelector = _SELECTORS[encoding]()
        return chosen
    raise ValueError(
        f"encoding must be one of {[*_LAYOUTS, *_SELECTORS]}, a layout or a layout selector, got {encoding!r}"
    )


def described(chosen: LayoutSelector) -> dict[str, Any] | None:
    """Write a selector as plain JSON values; None for one of the user's own."""
    if isinstance(chosen, Fixed):
        return {"name": chosen.name} if _LAYOUTS.get(chosen.name) == chosen.layout else None
    known = _SELECTORS.get(chosen.name)
    return {"name": chosen.name, **vars(chosen)} if type(chosen) is known else None


def from_description(description: dict[str, Any]) -> LayoutSelector:
    """Read what `described` wrote."""
    options = dict(description)
    name = options.pop("name")
    return selector(name) if not options else _SELECTORS[name](**options)
