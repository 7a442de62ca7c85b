"""All settings of a policy, those it was given and those it has by default, as plain JSON values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from typing import Any

from pfnts import arms, posterior
from pfnts.policies.options import gathered


def settings_of(maker: Callable[..., object], given: Mapping[str, object]) -> dict[str, Any]:
    """Fill in the defaults of a policy's class, down to those of an encoding or an estimator by its name.

    What is given and equals its default is written like the default, so that saying it changes nothing. The
    device is no setting unless it was chosen: it is where a policy computes, not what.

    Examples
    --------
    >>> from pfnts.policies import LinTS
    >>> settings_of(LinTS, {"nu": 0.5})["nu"], settings_of(LinTS, {})["nu"]
    (0.5, 1.0)
    """
    parameters = inspect.signature(maker).parameters.values()
    filled: dict[str, Any] = {p.name: p.default for p in parameters if p.default is not p.empty}
    filled.pop("device", None)
    for option, value in gathered(maker, given).items():
        if option == "device" and value == "cpu":
            continue
        # 2 and 2.0 are the same number and different JSON.
        if option not in filled or value != filled[option]:
            filled[option] = value
    # A policy of the user's own may mean something else by these words.
    with suppress(ValueError, KeyError, TypeError):
        filled["estimator"] = posterior.described(posterior.load(filled["estimator"]))
    with suppress(ValueError, KeyError):
        # Arms of a scenario have no features: then nothing said is the adaptive choice.
        filled["encoding"] = arms.described(arms.selector(filled["encoding"] or "adaptive"))
    return {name: _plain(value) for name, value in filled.items()}


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {"name": type(value).__name__, "settings": _plain(asdict(value))}
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    # Of anything else its kind is what can be written down.
    return getattr(value, "__qualname__", type(value).__qualname__)
