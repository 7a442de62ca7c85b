"""Flat options, as in the command line, the service and files, and the settings objects they belong to."""

from __future__ import annotations

import inspect
import warnings
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


def restored_settings(
    maker: Callable[..., Any], saved: Mapping[str, Any], replaced: Mapping[str, Any]
) -> tuple[dict[str, Any], str | None]:
    """Return the arguments that a file and the caller ask for, and the fingerprint of the weights saved."""
    settings = gathered(maker, {**gathered(maker, saved), **replaced})
    weights = settings.pop("fingerprint", None)
    for name in {"encoding", "backbone", "estimator"} & set(inspect.signature(maker).parameters):
        if settings[name] is None:
            raise ValueError(f"{name} must be passed to load: the policy was saved with one of your own")
    return settings, weights


def warn_of_other_weights(own: str | None, saved: str | None) -> None:
    """Warn if a backbone has other weights than the saved one had."""
    if own != saved:
        warnings.warn(
            f"the backbone has other weights ({own}) than when the policy was saved ({saved}): the same "
            "history will lead to other posteriors",
            stacklevel=3,
        )


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
