"""Running one description."""

from __future__ import annotations

import numpy as np
import torch

from pfnts.experiments import PolicySpec, RunSpec, plan, run

SPECS = plan(
    scenarios=["friedman", "linear"], policies=[PolicySpec("uniform")], horizon=25, replications=2, seed=3
)


def test_same_description_gives_the_same_run() -> None:
    first, second = run(SPECS[0]), run(SPECS[0])
    np.testing.assert_array_equal(first.arms, second.arms)
    np.testing.assert_array_equal(first.rewards, second.rewards)


def test_replications_differ() -> None:
    assert not np.array_equal(run(SPECS[0]).rewards, run(SPECS[1]).rewards)


def test_prefetching_does_not_change_a_run() -> None:
    spec = RunSpec("friedman", PolicySpec.of("pfn-ts", backbone="linear"), horizon=80, replication=0, seed=3)
    np.testing.assert_array_equal(run(spec, prefetch=0).arms, run(spec, prefetch=32).arms)


def test_number_of_threads_does_not_change_a_run() -> None:
    spec = RunSpec("friedman", PolicySpec("pfn-ts"), horizon=20, replication=0, seed=3)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = run(spec)
        torch.set_num_threads(2)
        two = run(spec)
        assert torch.get_num_threads() == 2, "the caller's threads are given back"
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(one.propensities, two.propensities)
