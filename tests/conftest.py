"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from numpy.random import Generator

from pfnts.experiments import Job, PolicySpec, Run, RunSpec, RunStore
from pfnts.experiments.jobs import code_fingerprint
from pfnts.simulation import Trajectory

# How long an example takes says more about what else runs than about the code.
settings.register_profile("pfnts", deadline=None)
settings.load_profile("pfnts")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Generator:
    """A generator of the test's own, so that adding a test changes no other.

    PFNTS_TEST_SEED moves all of them together: a statistical test must pass for any value from 0 to 99.
    """
    return np.random.default_rng(
        [int(os.environ.get("PFNTS_TEST_SEED", "0")), zlib.crc32(request.node.nodeid.encode())]
    )


def made_up(
    scenario: str,
    policy: PolicySpec | str,
    replication: int,
    regret: float,
    *,
    horizon: int = 40,
    rounds: int | None = None,
    fixed: tuple[float, ...] = (30.0, 50.0),
    seconds: float = 1.0,
    seed: int = 42,
) -> Run:
    """A run that loses ``regret`` in all, the same in every round."""
    spec = RunSpec(
        scenario,
        policy if isinstance(policy, PolicySpec) else PolicySpec(policy),
        horizon=horizon,
        replication=replication,
        seed=seed,
    )
    n = rounds or horizon
    return Run(
        spec,
        Trajectory(
            arms=np.zeros(n, dtype=np.int64),
            rewards=np.zeros(n),
            regret=np.full(n, regret / n),
            propensities=np.full((n, len(fixed)), 1 / len(fixed)),
            fixed=np.array(fixed),
            seconds=seconds,
        ),
    )


def all_small_runs(*, seconds: float = 1.0) -> list[Run]:
    """Three policies on three scenarios; `ts` is short of a replication, `uniform` of a scenario."""
    runs = []
    for scenario, scale, fixed in (
        ("linear", 10.0, (30.0, 50.0)),
        ("friedman", 100.0, (0.0, 80.0)),
        ("steps", 1.0, (20.0, 25.0, 90.0)),
    ):
        for policy, level in (("lin-ts", 1.0), ("ts", 2.0), ("uniform", 30.0)):
            for replication in range(2):
                if (scenario, policy, replication) == ("linear", "ts", 1):
                    continue
                if (scenario, policy) == ("steps", "uniform"):
                    continue
                regret = scale * level * (1 + 0.5 * replication)
                runs.append(made_up(scenario, policy, replication, regret, fixed=fixed, seconds=seconds))
    nu = PolicySpec.of("lin-ts", nu=0.1)
    return [*runs, *(made_up("linear", nu, replication, 5.0, fixed=(30.0, 50.0)) for replication in range(2))]


def save_all(runs: list[Run], root: Path, **made: Any) -> Path:
    """Keep runs as if this version of the package had made them; no table is needed for it."""
    for run in runs:
        policy = run.spec.policy.decided_by()
        producer = {"pfnts": "0.2.0", "code": code_fingerprint(), "format": "3", **policy}
        RunStore(root).save(Job(run.spec, producer), run.result, made=made or None)
    return root


@pytest.fixture
def make_run() -> Callable[..., Run]:
    return made_up


@pytest.fixture
def small_runs() -> Callable[..., list[Run]]:
    return all_small_runs


@pytest.fixture
def save_runs() -> Callable[..., Path]:
    return save_all


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return save_all(all_small_runs(), tmp_path / "runs")
