"""Running a plan, and resuming it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfnts import environments
from pfnts.experiments import FailedRunsError, Job, PolicySpec, Run, RunStore, job, plan, prepare, run_all
from pfnts.experiments import simulations as runner_module
from pfnts.experiments import spec as spec_module
from pfnts.experiments.jobs import Failure
from pfnts.experiments.store import OtherDataError

SPECS = plan(
    scenarios=["friedman", "linear"], policies=[PolicySpec("uniform")], horizon=25, replications=2, seed=3
)


def test_finished_runs_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(tmp_path)
    first = list(run_all(SPECS, store=store))
    monkeypatch.setattr(runner_module, "simulate", lambda *a, **k: pytest.fail("ran a finished run again"))
    second = list(run_all(SPECS, store=store))
    assert [each.spec for each in second] == [each.spec for each in first] == SPECS
    assert [each.result.seconds for each in second] == [each.result.seconds for each in first]


def test_interruption_keeps_what_was_finished(tmp_path: Path) -> None:
    store = RunStore(tmp_path)

    def interrupt_the_third(under_way: Job, rounds: int, regret: float) -> None:
        if under_way.spec == SPECS[2]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_all(SPECS, store=store, listener=interrupt_the_third))
    assert [job(spec) in store for spec in SPECS] == [True, True, False, False]
    assert len(list(run_all(SPECS, store=store))) == 4


def test_listener_hears_the_start_and_the_end_of_every_run() -> None:
    heard: list[tuple[object, int]] = []
    list(run_all(SPECS, listener=lambda job, rounds, regret: heard.append((job.spec, rounds))))
    assert heard == [(spec, rounds) for spec in SPECS for rounds in (0, 25)]


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_failure_is_told_at_once_and_raised_when_all_others_are_kept(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate = runner_module.simulate

    def breaking(policy: Any, environment: Any, **options: Any) -> Any:
        if environment.name == "friedman":
            raise error("as planned")
        return simulate(policy, environment, **options)

    monkeypatch.setattr(runner_module, "simulate", breaking)
    store, told, made = RunStore(tmp_path), list[Failure](), list[Run]()
    runs = run_all(SPECS, store=store, on_failure=told.append)
    with pytest.raises(FailedRunsError, match=r"2 of the runs failed: friedman, uniform, replication 0"):
        made.extend(runs)
    assert [failure.job.spec for failure in told] == SPECS[:2]
    assert [each.spec for each in made] == SPECS[2:]
    assert [job(spec) in store for spec in SPECS] == [False, False, True, True]
    monkeypatch.undo()
    assert len(list(run_all(SPECS, store=store))) == 4


def test_run_planned_twice_is_made_once() -> None:
    assert [each.spec for each in run_all([*SPECS, *SPECS])] == SPECS


def test_key_of_a_run_is_worked_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(tmp_path)
    asked: list[str] = []
    settings_of = spec_module.settings_of

    def counted(*arguments: Any) -> Any:
        asked.append("settings")
        return settings_of(*arguments)

    monkeypatch.setattr(spec_module, "settings_of", counted)
    assert len(list(run_all(SPECS, store=store))) == len(asked) == 4
    assert len(list(run_all(SPECS, store=store))) == 4
    assert len(asked) == 8


TABLE = "weight,coat,adult\n" + "".join(f"{i % 7},{'ab'[i % 2]},{'cd'[i % 3 == 0]}\n" for i in range(40))


def test_other_table_of_the_same_name_is_refused_beside_the_first(tmp_path: Path) -> None:
    data, store = tmp_path / "data", RunStore(tmp_path / "runs")
    data.mkdir()
    (data / "adult.csv").write_text(TABLE)
    specs = plan(
        scenarios=["openml-adult"], policies=[PolicySpec("uniform")], horizon=25, replications=1, seed=3
    )
    assert len(list(run_all(prepare(specs, inputs=data), store=store))) == 1
    assert len(list(run_all(prepare(specs, inputs=data), store=store))) == 1
    (data / "adult.csv").write_text(TABLE + "3,b,c\n")
    more = plan(scenarios=["openml-adult"], policies=[PolicySpec("ts")], horizon=25, replications=1, seed=3)
    with pytest.raises(OtherDataError, match=r"openml-adult must be the same data in all runs of .*folder"):
        list(run_all(prepare(more, inputs=data), store=store))
    assert len(list(store)) == 1


def test_table_of_ones_own_is_played_and_its_content_is_part_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "pets.csv"
    path.write_text(TABLE)
    policies = [PolicySpec("lin-ts"), PolicySpec("uniform")]
    specs = plan(scenarios=[f"{path}:adult"], policies=policies, horizon=500, replications=2, seed=3)
    runs = list(run_all(specs, store=RunStore(tmp_path / "runs")))
    assert [each.result.horizon for each in runs] == [40] * 4
    by_hand = environments.from_csv(path, "adult", horizon=500, rng=specs[0].generators()[0])
    np.testing.assert_array_equal(runs[0].result.rewards, by_hand.rewards[np.arange(40), runs[0].result.arms])
    before = job(specs[0]).key
    path.write_text(TABLE.replace("6,a", "5,a"))
    assert job(specs[0]).key != before
