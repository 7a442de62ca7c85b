"""What is to be run, said so exactly that saying it again finds the same run."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from pfnts import backbones, environments, policies
from pfnts.backbones import Backbone
from pfnts.dotted import is_dotted, sources
from pfnts.experiments.settings import settings_of
from pfnts.policies.registry import policy_class

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
    """One of `pfnts.policies.names`, or ``package.module.Class``, imported when it is built."""
    options: tuple[tuple[str, Option], ...] = ()
    """Option names and values, sorted by name."""

    def __post_init__(self) -> None:
        if self.name not in policies.names() and not is_dotted(self.name):
            raise ValueError(
                f"policy must be one of {', '.join(policies.names())} or package.module.Class; "
                f"got {self.name!r}"
            )
        for option, value in self.options:
            if not isinstance(value, bool | int | float | str | None):
                raise ValueError(
                    f"option {option} of policy {self.name} must be a number, a string, true, false or null, "
                    f"so that it can be written down; got {value!r}"
                )

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
        name, _, rest = text.partition(":")
        options: dict[str, Option] = {}
        for item in filter(None, re.split(r",(?![^(]*\))", rest)):  # an estimator's own options stay together
            option, equals, value = item.partition("=")
            if not equals or not option.isidentifier():
                raise ValueError(f"policy must be written name:option=value,option=value; got {text!r}")
            options[option] = _parse_value(value)
        return cls.of(name, **options)

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
        own = dict(self.options)
        if "device" in own:
            return str(own["device"])
        return asked if asked == "cpu" or _has_devices(self) else "cpu"

    def build(self, *, arms: int, device: str = "cpu") -> policies.Policy:
        """Make the policy, to compute on ``device`` if it can and its options name no other."""
        options: dict[str, Any] = {name: value for name, value in self.options if name != "device"}
        try:
            return policies.make(self.name, arms=arms, device=self.device(device), **options)
        except TypeError as error:
            raise UnknownOptionError(f"policy {self.label} does not fit: {error}") from error

    def backbone(self) -> str | None:
        """Name the backbone behind the policy, and its weights where it can tell them apart."""
        return _backbone(self)

    def settings(self) -> dict[str, Any]:
        """All settings of the policy, defaults filled in, as plain JSON values.

        Examples
        --------
        >>> PolicySpec.of("pfn-ts", refresh=1.5).settings() == PolicySpec("pfn-ts").settings()
        True
        """
        return settings_of(policy_class(self.name), dict(self.options))

    def sources(self, *others: str) -> str | None:
        """Hash the files of the user's own behind the policy, its backbone and other names, if any."""
        backbone = _backbone_given(self)
        return sources([self.name, *others, *([backbone] if isinstance(backbone, str) else [])])


@dataclass(frozen=True)
class RunSpec:
    """One run: a policy in one replication of a scenario.

    Examples
    --------
    >>> spec = RunSpec("friedman", PolicySpec("uniform"), horizon=100, replication=0, seed=42)
    >>> spec.describe()["policy"]
    {'name': 'uniform', 'options': {}}
    """

    scenario: str
    """One of `pfnts.environments.names`, or ``package.module.OBJECT``, imported when it is run."""
    policy: PolicySpec
    """Who decides."""
    horizon: int
    """Number of rounds."""
    replication: int
    """Which of the independent repetitions, from 0."""
    seed: int
    """The experiment's seed, shared by all replications and policies."""

    def __post_init__(self) -> None:
        if not is_dotted(self.scenario):
            environments.describe(self.scenario)
        if self.horizon < 1:
            raise ValueError(f"horizon must be a positive integer, got {self.horizon}")
        if self.replication < 0 or self.seed < 0:
            raise ValueError(
                f"replication and seed must not be negative, got {self.replication} and {self.seed}"
            )

    @property
    def title(self) -> str:
        """Scenario, policy and replication in a few words."""
        return f"{self.scenario}, {self.policy.label}, replication {self.replication}"

    def generators(self) -> tuple[Generator, Generator]:
        """Make the generators of the environment and of the policy.

        The first does not depend on the policy, so that every policy meets the same environment.
        """
        # The same as SeedSequence(seed).spawn(n)[replication] for every n, without making the others.
        child = SeedSequence(self.seed, spawn_key=(self.replication,))
        environment, policy = child.spawn(2)
        return np.random.default_rng(environment), np.random.default_rng(policy)

    def describe(self) -> dict[str, Any]:
        """Everything above as plain JSON values."""
        return {
            "scenario": self.scenario,
            "policy": {"name": self.policy.name, "options": dict(self.policy.options)},
            "horizon": self.horizon,
            "replication": self.replication,
            "seed": self.seed,
        }

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> RunSpec:
        """Read back what `describe` wrote."""
        policy = description["policy"]
        return cls(
            scenario=description["scenario"],
            policy=PolicySpec.of(policy["name"], **policy["options"]),
            horizon=description["horizon"],
            replication=description["replication"],
            seed=description["seed"],
        )


def plan(
    *,
    scenarios: Iterable[str],
    policies: Sequence[PolicySpec],
    horizon: int,
    replications: int,
    seed: int,
) -> list[RunSpec]:
    """List every policy in every replication of every scenario.

    Examples
    --------
    >>> specs = plan(scenarios=["linear", "synbart"], policies=[PolicySpec("uniform")],
    ...              horizon=100, replications=3, seed=42)
    >>> len(specs)
    6
    """
    if replications < 1:
        raise ValueError(f"replications must be a positive integer, got {replications}")
    scenarios = list(scenarios)
    for scenario in scenarios:
        environments.describe(scenario)
    return [
        RunSpec(scenario, policy, horizon=horizon, replication=replication, seed=seed)
        for scenario in scenarios
        for policy in policies
        for replication in range(replications)
    ]


@cache
def _backbone(spec: PolicySpec) -> str | None:
    backbone = _loaded_backbone(spec)
    if backbone is None:
        return None
    return ":".join([backbone.name, *filter(None, [backbone.fingerprint])])


@cache
def _has_devices(spec: PolicySpec) -> bool:
    backbone = _loaded_backbone(spec)
    return backbone is not None and "device" in inspect.signature(type(backbone)).parameters


def _loaded_backbone(spec: PolicySpec) -> Backbone | None:
    given = _backbone_given(spec)
    return None if given is None else backbones.load(given)


@cache
def _backbone_given(spec: PolicySpec) -> str | Backbone | None:
    # A default is nowhere in the options, so the policy's class is asked for it.
    parameter = inspect.signature(policy_class(spec.name)).parameters.get("backbone")
    if parameter is None:
        return None
    given = dict(spec.options).get("backbone", parameter.default)
    return given if isinstance(given, str | Backbone) else None


def _parse_value(text: str) -> Option:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    if isinstance(value, bool | int | float | None):
        return value
    return text
