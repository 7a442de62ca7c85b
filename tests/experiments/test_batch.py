"""Running a plan, and resuming it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfnts import environments
from pfnts.experiments import FailedRunsError, PolicySpec, Run, RunSpec, RunStore, plan, run_all
from pfnts.experiments import runner as runner_module
from pfnts.experiments.engines import Failure

SPECS = plan(
    scenarios=["friedman", "linear"], policies=[PolicySpec("uniform")], horizon=25, replications=2, seed=3
)


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


def test_listener_hears_the_start_and_the_end_of_every_run() -> None:
    heard: list[tuple[RunSpec, int]] = []
    list(run_all(SPECS, listener=lambda spec, rounds, regret: heard.append((spec, rounds))))
    assert heard == [(spec, rounds) for spec in SPECS for rounds in (0, 25)]


def test_failure_is_told_at_once_and_raised_when_all_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate = runner_module.simulate

    def breaking(policy: Any, environment: Any, **options: Any) -> Any:
        if environment.name == "friedman":
            raise ZeroDivisionError("as planned")
        return simulate(policy, environment, **options)

    monkeypatch.setattr(runner_module, "simulate", breaking)
    store, told, made = RunStore(tmp_path), list[Failure](), list[Run]()
    runs = run_all(SPECS, store=store, on_failure=told.append)
    with pytest.raises(FailedRunsError, match=r"2 of the runs failed: friedman, uniform, replication 0"):
        made.extend(runs)
    assert [failure.spec for failure in told] == SPECS[:2]
    assert [each.spec for each in made] == SPECS[2:]
    assert [spec in store for spec in SPECS] == [False, False, True, True]
    monkeypatch.undo()
    assert len(list(run_all(SPECS, store=store))) == 4


def test_run_planned_twice_is_made_once() -> None:
    assert [each.spec for each in run_all([*SPECS, *SPECS])] == SPECS


def test_run_that_met_other_rounds_than_those_beside_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path)
    list(run_all(SPECS, store=store))
    more = plan(scenarios=["linear"], policies=[PolicySpec("ts")], horizon=25, replications=1, seed=3)
    elsewhere = environments.make("linear", horizon=25, rng=np.random.default_rng(99))
    monkeypatch.setattr(environments, "make", lambda *a, **k: elsewhere)
    with pytest.raises(FailedRunsError, match="linear, ts, replication 0: it met other rounds than"):
        list(run_all([*SPECS, *more], store=store))
    assert more[0] not in store
