"""Means and standard errors of final regret."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pfnts.experiments import PolicySpec, Run, RunSpec, summarize
from pfnts.simulation import Trajectory


def finished(*, scenario: str = "friedman", replication: int, regret: float, horizon: int = 4) -> Run:
    spec = RunSpec(scenario, PolicySpec("uniform"), horizon=horizon, replication=replication, seed=0)
    trajectory = Trajectory(
        arms=np.zeros(4, dtype=np.int64),
        rewards=np.zeros(4),
        regret=np.full(4, regret / 4),
        propensities=np.full((4, 2), 0.5),
        fixed=np.zeros(2),
        seconds=float(replication),
    )
    return Run(spec, trajectory)


def test_mean_and_standard_error_by_hand() -> None:
    (row,) = summarize([finished(replication=r, regret=regret) for r, regret in enumerate((10, 20, 60))])
    assert row.mean == pytest.approx(30)
    assert row.standard_error == pytest.approx(math.sqrt((400 + 100 + 900) / 2) / math.sqrt(3))
    assert (row.replications, row.seconds, row.horizon) == (3, 1.0, 4)


def test_single_replication_has_no_standard_error() -> None:
    (row,) = summarize([finished(replication=0, regret=10)])
    assert math.isnan(row.standard_error)


def test_scenarios_and_horizons_are_kept_apart() -> None:
    runs = [
        finished(replication=0, regret=1),
        finished(replication=0, regret=2, scenario="linear"),
        finished(replication=0, regret=3, horizon=5),
    ]
    assert [(row.scenario, row.horizon, row.mean) for row in summarize(runs)] == [
        ("friedman", 4, 1.0),
        ("linear", 4, 2.0),
        ("friedman", 5, 3.0),
    ]
