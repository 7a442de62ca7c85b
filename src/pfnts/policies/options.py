"""Flat options, as the command line, the service and files have them, and their settings objects."""

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


def check_settings(maker: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Complain about a field of a settings object that is given by itself, and about other objects."""
    for parameter, default in settings_objects(maker).items():
        if not isinstance(options.get(parameter, default), type(default)):
            kind = type(default).__name__
            raise TypeError(f"{parameter} must be a {kind}, got {options[parameter]!r}; write {kind}(...)")
        for field in _own_fields(maker, default):
            if field in options:
                given = f"{type(default).__name__}({field}={options[field]!r})"
                raise TypeError(f"{field} must be given as {parameter}={given} to {maker.__name__}")


def settings_objects(maker: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a class whose defaults are dataclass objects."""
    parameters = inspect.signature(maker).parameters.values()
    return {p.name: p.default for p in parameters if is_dataclass(p.default)}


def _own_fields(maker: Callable[..., Any], settings: Any) -> list[str]:
    """Fields of a settings object that are no parameters of the class itself."""
    parameters = inspect.signature(maker).parameters
    return [field.name for field in fields(settings) if field.name not in parameters]
