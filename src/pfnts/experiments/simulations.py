"""Simulations of policies on scenarios: one run, and the list of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator, SeedSequence

from pfnts.experiments.jobs import Progress, Spec
from pfnts.experiments.scenarios import check_scenario, data_fingerprint, make_environment
from pfnts.experiments.spec import PolicySpec
from pfnts.experiments.threads import one_thread
from pfnts.simulation import Trajectory, simulate

PREFETCH, PREFETCH_ELSEWHERE = 256, 1024
"""Contexts shown ahead on the CPU, and on other devices, which answer many questions as fast as a few."""


@dataclass(frozen=True)
class RunSpec(Spec):
    """One run: a policy in one replication of a scenario."""

    kind = "simulation"
    noun = "run"
    measure = "regret"
    result = Trajectory

    scenario: str
    """One of `pfnts.environments.names`, ``package.module.OBJECT``, or a table and its column."""
    policy: PolicySpec
    """Who decides."""
    horizon: int
    """Number of rounds."""
    replication: int
    """Which of the independent repetitions, from 0."""
    seed: int
    """The experiment's seed, shared by all replications and policies."""

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise ValueError(f"horizon must be a positive integer, got {self.horizon}")
        if self.replication < 0 or self.seed < 0:
            got = f"{self.replication} and {self.seed}"
            raise ValueError(f"replication and seed must not be negative, got {got}")

    @property
    def title(self) -> str:
        """Scenario, policy and replication in a few words."""
        return f"{self.scenario}, {self.policy.label}, replication {self.replication}"

    @property
    def steps(self) -> int:
        """Rounds."""
        return self.horizon

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
        return {**super().describe(), "policy": self.policy.describe()}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> RunSpec:
        """Read back what `describe` wrote; nothing is imported, and the scenario need not be known here."""
        own = {field.name: description[field.name] for field in fields(cls)}
        for name, kind in {"scenario": str, "horizon": int, "replication": int, "seed": int}.items():
            if type(own[name]) is not kind:
                raise ValueError(f"{name} must be of type {kind.__name__}, got {own[name]!r}")
        policy = PolicySpec.of(own["policy"]["name"], **own["policy"]["options"])
        return cls(**{**own, "policy": policy})

    def decided_by(self, inputs: Path | None) -> dict[str, Any]:
        """Settings, weights and data behind the run."""
        data = data_fingerprint(self.scenario, data=inputs)
        return self.policy.decided_by() | ({} if data is None else {"data": data})

    def device(self, asked: str) -> str:
        """Where the policy computes, when ``asked`` is where it may."""
        return self.policy.device(asked)

    def perform(self, inputs: Path | None, *, device: str, progress: Progress) -> Trajectory:
        """Run it; ``inputs`` is the folder with the tables of OpenML scenarios."""
        return run(self, data=inputs, device=device, progress=progress)


def run(
    spec: RunSpec,
    *,
    data: Path | None = None,
    device: str = "cpu",
    prefetch: int | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Run one description from its seed, in one thread: on a CPU the numbers are the same wherever it runs.

    Parameters
    ----------
    spec
        What to run.
    data
        Folder with the tables of OpenML scenarios, as `pfnts.environments.make` takes it.
    device
        Where the policy computes, if it leaves a choice, as PyTorch names it. The last digits may depend on
        it, and a close decision on them; what is run does not.
    prefetch
        Contexts the policy is shown ahead; changes the time, not the outcome. When left out, as many as suit
        the device.
    progress
        Called with the rounds done and the regret so far.

    Examples
    --------
    >>> spec = RunSpec("friedman", PolicySpec("uniform"), horizon=100, replication=0, seed=42)
    >>> run(spec).total_regret == run(spec).total_regret
    True
    """
    for_environment, for_policy = spec.generators()
    environment = make_environment(spec.scenario, horizon=spec.horizon, rng=for_environment, data=data)
    # Made outside, because a library is held to one thread only if it is loaded by then.
    arms = environment.first_arms(features=spec.policy.takes_features)
    policy = spec.policy.build(arms=arms, device=device)
    if prefetch is None:
        prefetch = PREFETCH if spec.policy.device(device).startswith("cpu") else PREFETCH_ELSEWHERE
    with one_thread():
        return simulate(policy, environment, rng=for_policy, prefetch=prefetch, progress=progress)


def plan(
    *, scenarios: Iterable[str], policies: Sequence[PolicySpec], horizon: int, replications: int, seed: int
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
        check_scenario(scenario)
    each = product(scenarios, policies, range(replications))
    return [RunSpec(scenario, policy, horizon, number, seed) for scenario, policy, number in each]
