"""A policy by name and options, as it is written on the command line and in records of runs."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pfnts import backbones, layouts, policies, posterior
from pfnts.backbones import Backbone
from pfnts.dotted import is_dotted, sources
from pfnts.policies.arguments import Arms
from pfnts.policies.pfn_ts import PFNTS, default_estimator, default_exploration
from pfnts.policies.registry import load, policy_class
from pfnts.policies.settings import gathered

_FILE = "file:"
Option = bool | int | float | str | None


class UnknownOptionError(ValueError):
    """A policy was given an option that it does not have."""


@dataclass(frozen=True)
class PolicySpec:
    """A policy by name, with the options that differ from its defaults.

    Examples
    --------
    >>> PolicySpec.of("pfn-ts", encoding="joint").label
    'pfn-ts(encoding=joint)'
    """

    name: str
    """One of `pfnts.policies.names`; ``package.module.Class``, imported when it is built; or ``file:`` and
    the path of a policy that was saved, which goes on from what it has learned."""
    options: tuple[tuple[str, Option], ...] = ()
    """Option names and values, sorted by name."""

    def __post_init__(self) -> None:
        if self.name not in policies.names() and not is_dotted(self.name) and self.path is None:
            known = f"{', '.join(policies.names())}, package.module.Class or file:path"
            raise ValueError(f"policy must be one of {known}; got {self.name!r}")
        for option, value in self.options:
            if not isinstance(value, bool | int | float | str | None):
                rule = "a number, a string, true, false or null, so that it can be written down"
                raise ValueError(f"option {option} of policy {self.name} must be {rule}; got {value!r}")

    @classmethod
    def of(cls, name: str, **options: Option) -> PolicySpec:
        """Describe a policy by its name and keyword options."""
        return cls(name, tuple(sorted(options.items())))

    @classmethod
    def parse(cls, text: str) -> PolicySpec:
        """Read ``name`` or ``name:option=value,option=value``, as it is written on the command line.

        Examples
        --------
        >>> PolicySpec.parse("pfn-ts:warmup=3,encoding=joint").options
        (('encoding', 'joint'), ('warmup', 3))
        """
        if text.startswith(_FILE):
            return cls(text)
        name, _, rest = text.partition(":")
        options: dict[str, Option] = {}
        for item in filter(None, re.split(r",(?![^(]*\))", rest)):  # an estimator's own options stay together
            option, equals, value = item.partition("=")
            if not equals or not option.isidentifier():
                raise ValueError(f"policy must be written name:option=value,option=value; got {text!r}")
            options[option] = _parse_value(value)
        return cls.of(name, **options)

    @property
    def path(self) -> Path | None:
        """Where the policy was saved, if it was."""
        return Path(self.name.removeprefix(_FILE)) if self.name.startswith(_FILE) else None

    @property
    def label(self) -> str:
        """Name and options in one short string."""
        options = ", ".join(f"{option}={value}" for option, value in self.options)
        return f"{self.name}({options})" if options else self.name

    def having(self, option: str, value: Option) -> PolicySpec:
        """Describe the same policy with one more option."""
        return PolicySpec.of(self.name, **{**dict(self.options), option: value})

    def device(self, asked: str = "cpu") -> str:
        """Say where the policy computes: where its options say, else as asked if it can, else on the CPU.

        Examples
        --------
        >>> PolicySpec("pfn-ts").device("cuda"), PolicySpec("lin-ts").device("cuda")
        ('cuda', 'cpu')
        """
        if "device" in (own := dict(self.options)):
            return str(own["device"])
        if asked == "cpu" or (backbone := _backbone(self)) is None:
            return "cpu"
        return asked if "device" in inspect.signature(type(backbone)).parameters else "cpu"

    @property
    def takes_features(self) -> bool:
        """Whether the policy judges arms by features, where these have any."""
        return self.path is None and policy_class(self.name).takes_features

    def build(self, *, arms: Arms, device: str = "cpu") -> policies.Policy:
        """Make the policy, to compute on ``device`` if it can and its options name no other."""
        if self.path is not None:
            policy, wanted = load(self.path), list(range(arms) if isinstance(arms, int) else arms or ())
            if set(policy.arms) != set(wanted):
                raise ValueError(
                    f"policy {self.path} must have the arms {wanted}, it has {list(policy.arms)}"
                )
            return policy
        options: dict[str, Any] = {name: value for name, value in self.options if name != "device"}
        try:
            return policies.make(self.name, arms=arms, device=self.device(device), **options)
        except TypeError as error:
            raise UnknownOptionError(f"policy {self.label} does not fit: {error}") from error

    def backbone(self) -> str | None:
        """Name the backbone behind the policy, and its weights where it can tell them apart."""
        backbone = _backbone(self)
        return None if backbone is None else backbone_name(backbone)

    def settings(self) -> dict[str, Any]:
        """All settings of the policy, defaults filled in, as plain JSON values.

        Examples
        --------
        >>> PolicySpec.of("pfn-ts", refresh=1.05).settings() == PolicySpec("pfn-ts").settings()
        True
        """
        if self.path is not None:
            return {"file": hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]}
        left = _left_to_the_backbone(self)
        said = {option: value for option, value in self.options if value is None or value != left.get(option)}
        return settings_of(policy_class(self.name), {**left, **said})

    def decided_by(self) -> dict[str, Any]:
        """What decides how the policy acts: its settings, its weights and files of the user's own, if any."""
        given = _backbone_given(self)
        own = sources([self.name, *([given] if isinstance(given, str) else [])])
        decided = {"settings": self.settings(), "backbone": self.backbone(), "sources": own}
        return {name: value for name, value in decided.items() if value is not None}

    def describe(self) -> dict[str, Any]:
        """Name and options as plain JSON values."""
        return {"name": self.name, "options": dict(self.options)}


@cache
def loaded(backbone: str | Backbone, device: str = "cpu") -> Backbone:
    """Load a backbone once."""
    return backbones.load(backbone, **({} if device == "cpu" else {"device": device}))


def backbone_name(backbone: Backbone) -> str:
    """Name a backbone, and its weights where it can tell them apart."""
    return ":".join([backbone.name, *filter(None, [backbone.fingerprint])])


@cache
def _left_to_the_backbone(spec: PolicySpec) -> dict[str, Any]:
    """What PFN-TS chooses by its backbone where nothing is said."""
    backbone, said = _backbone(spec), dict(spec.options)
    if backbone is None or policy_class(spec.name) is not PFNTS:
        return {}
    estimator = posterior.load(str(said["estimator"])) if "estimator" in said else default_estimator(backbone)
    return {"estimator": estimator, "exploration": default_exploration(estimator, backbone)}


def _backbone(spec: PolicySpec) -> Backbone | None:
    given = _backbone_given(spec)
    return None if given is None else loaded(given)


def _backbone_given(spec: PolicySpec) -> str | Backbone | None:
    if spec.path is not None:
        return None
    # A default is nowhere in the options, so the policy's class is asked for it.
    parameter = inspect.signature(policy_class(spec.name)).parameters.get("backbone")
    given = None if parameter is None else dict(spec.options).get("backbone", parameter.default)
    return given if isinstance(given, str | Backbone) else None


def _parse_value(text: str) -> Option:
    with suppress(json.JSONDecodeError):
        if isinstance(value := json.loads(text), bool | int | float | None):
            return value
    return text


def settings_of(maker: Callable[..., object], given: Mapping[str, object]) -> dict[str, Any]:
    """Fill in the defaults of a policy's class, down to those of an encoding or an estimator by its name.

    What is given and equals its default is written like the default, so that saying it changes nothing. The
    device is no setting unless it was chosen: it is where a policy computes, not what.
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
        # Arms of a scenario have no features: then the default is the average.
        filled["encoding"] = layouts.described(layouts.selector(filled["encoding"] or "averaged"))
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
