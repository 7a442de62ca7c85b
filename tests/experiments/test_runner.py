"""Running a plan, and resuming it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pfnts.experiments import PolicySpec, RunSpec, RunStore, plan, run, run_all
from pfnts.experiments import runner as runner_module

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


def test_finished_runs_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(tmp_path)
    first = list(run_all(SPECS, store=store))
    monkeypatch.setattr(runner_module, "simulate", lambda *a, **k: pytest.fail("ran a finished run again"))
    second = list(run_all(SPECS, store=store))
    assert [each.spec for each in second] == [each.spec for each in first] == SPECS
    assert [each.trajectory.seconds for each in second] == [each.trajectory.seconds for each in first]


def test_interruption_keeps_what_was_finished(tmp_path: Path) -> None:
    store = RunStore(tmp_path)

    def interrupt_the_third(spec: RunSpec, rounds: int, regret: float) -> None:
        if spec == SPECS[2]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_all(SPECS, store=store, listener=interrupt_the_third))
    assert [spec in store for spec in SPECS] == [True, True, False, False]
    assert len(list(run_all(SPECS, store=store))) == 4


def test_listener_hears_the_end_of_every_run() -> None:
    heard: list[tuple[RunSpec, int]] = []
    list(run_all(SPECS, listener=lambda spec, rounds, regret: heard.append((spec, rounds))))
    assert heard == [(spec, 25) for spec in SPECS]
