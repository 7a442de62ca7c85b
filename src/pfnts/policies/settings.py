"""Flat options, as in the command line, the service and files, and the settings objects that they belong to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any


def gathered(maker: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Put options into the settings objects that a class takes them in, by the names of their fields.

    Parameters
    ----------
    maker
        The class; its settings objects are the defaults of its parameters.
    options
        Its keyword arguments, and fields of its settings objects.

    Examples
    --------
    >>> from pfnts.policies import PFNTS
    >>> gathered(PFNTS, {"encoding": "joint", "refresh": 2, "warmup": 3})["traffic"].warmup
    3
    """
    taken = dict(options)
    for parameter, default in settings_objects(maker).items():
        own = {field: taken.pop(field) for field in _own_fields(maker, default) if field in taken}
        if own:
            taken[parameter] = replace(taken.get(parameter, default), **own)
    return taken


def check_kind(name: str, given: object, kind: type) -> None:
    """Raise if a settings object is something else."""
    if not isinstance(given, kind):
        words = kind.__name__
        raise TypeError(f"{name} must be a {words}, got {given!r}; write {words}(...)")


def settings_objects(maker: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of a class whose defaults are dataclass objects."""
    parameters = inspect.signature(maker).parameters.values()
    return {p.name: p.default for p in parameters if is_dataclass(p.default)}


def _own_fields(maker: Callable[..., Any], settings: Any) -> list[str]:
    """Return the fields of a settings object that are no parameters of the class itself."""
    parameters = inspect.signature(maker).parameters
    return [field.name for field in fields(settings) if field.name not in parameters]
