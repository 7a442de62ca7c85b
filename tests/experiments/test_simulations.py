"""Running one description."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pfnts import backbones
from pfnts.experiments import PolicySpec, RunSpec, job, plan, run
from pfnts.experiments import simulations as runner_module

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


def test_device_reaches_the_policies_that_take_one_and_decides_the_prefetching(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[str] = []
    seen: list[tuple[str, int]] = []
    load = backbones.load

    def watched(name: object, *, device: str = "cpu", **options: object) -> object:
        loaded.append(device)
        return load(name, **options)  # type: ignore[arg-type]

    def simulated(policy: object, environment: object, *, prefetch: int, **_: object) -> None:
        seen.append((next((device for device in loaded if device != "cpu"), "cpu"), prefetch))

    monkeypatch.setattr(backbones, "load", watched)
    monkeypatch.setattr(runner_module, "simulate", simulated)
    for policy, device, expected in [
        (PolicySpec("pfn-ts"), "cuda", ("cuda", 1024)),
        (PolicySpec("pfn-ts"), "cpu", ("cpu", 256)),
        (PolicySpec.of("pfn-ts", device="cuda:1"), "cuda:0", ("cuda:1", 1024)),
        (PolicySpec.of("pfn-ts", backbone="linear"), "cuda", ("cpu", 256)),
        (PolicySpec("epsilon-greedy"), "cuda", ("cuda", 1024)),
        (PolicySpec("lin-ts"), "cuda", ("cpu", 256)),
    ]:
        loaded.clear()
        run(RunSpec("friedman", policy, horizon=20, replication=0, seed=3), device=device)
        assert seen[-1] == expected, policy.label


def test_device_is_no_part_of_what_is_run() -> None:
    spec = RunSpec("friedman", PolicySpec("pfn-ts"), horizon=20, replication=0, seed=3)
    key = job(spec).key
    # To PyTorch "cpu:0" is another name of the same processor, so that the numbers must be the same, too.
    np.testing.assert_array_equal(run(spec, device="cpu:0").propensities, run(spec).propensities)
    assert job(spec, device="cpu:0").key == key
    assert spec.policy.label == "pfn-ts"
