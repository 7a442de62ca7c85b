"""Encodings by name: layouts and the rules that choose among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pfnts.contexts import Schema
from pfnts.layouts.features import Features
from pfnts.layouts.layout import Block, Disjoint, Joint, Layout
from pfnts.layouts.selectors import Adaptive, Averaged, Fixed, LayoutSelector, Threshold

Encoding: TypeAlias = str | Mapping[str, Any] | Layout | LayoutSelector

_LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (Disjoint(), Joint(), Block())}
_SELECTORS: dict[str, Any] = {
    "threshold": Threshold,
    "adaptive": Adaptive,
    "averaged": Averaged,
    "features": Features,
}


def selector(encoding: Encoding) -> LayoutSelector:
    """Look an encoding up by its name, or by what `described` wrote; a layout or a selector passes.

    Examples
    --------
    >>> selector("adaptive")
    Adaptive(switch_times=(128, 256, 512, 1024, 2048), arm_threshold=10)
    >>> selector(Threshold(limit=64)).name
    'threshold'
    """
    if isinstance(encoding, Mapping):
        return from_description(encoding)
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
    part = chosen.layout if isinstance(chosen, Fixed) else chosen
    known = type(_LAYOUTS.get(part.name)) if isinstance(chosen, Fixed) else _SELECTORS.get(part.name)
    if type(part) is not known:
        return None
    options = dict(vars(part))
    if isinstance(options.get("schema"), Schema):
        options["schema"] = options["schema"].to_json()
    return {"name": part.name, **options}


def from_description(description: Mapping[str, Any]) -> LayoutSelector:
    """Read what `described` wrote."""
    options = dict(description)
    name = options.pop("name")
    if not options:
        return selector(name)
    if options.get("schema") is not None:
        options["schema"] = Schema.from_json(options["schema"])
    return _SELECTORS[name](**options) if name in _SELECTORS else Fixed(type(_LAYOUTS[name])(**options))
