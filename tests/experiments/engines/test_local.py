"""Processes of this machine: the same numbers, and no run lost with another."""

from __future__ import annotations

import multiprocessing
import os
import signal

import numpy as np
import pytest

from pfnts.experiments import (
    Job,
    LocalEngine,
    PolicySpec,
    RayEngine,
    RunSpec,
    job,
    plan,
    prepare,
    run,
)
from pfnts.experiments.jobs import Failure, Finished, work
from pfnts.experiments.provenance import cores

POLICIES = [PolicySpec("uniform"), PolicySpec("lin-ts"), PolicySpec.of("pfn-ts", backbone="linear")]
SPECS = plan(scenarios=["linear"], policies=POLICIES, horizon=40, replications=1, seed=3)


def ignore(job: Job, rounds: int, regret: float) -> None:
    pass


def test_processes_give_the_same_runs_and_report_on_the_way() -> None:
    heard: list[tuple[object, int]] = []
    results = list(
        LocalEngine(workers=2).execute(
            prepare(SPECS), listener=lambda job, rounds, regret: heard.append((job.spec, rounds))
        )
    )
    finished = {each.job.spec: each for each in results if isinstance(each, Finished)}
    assert set(finished) == set(SPECS)
    for spec in SPECS:
        here = run(spec)
        for name in ("arms", "rewards", "regret", "propensities", "fixed"):
            np.testing.assert_array_equal(
                getattr(finished[spec].result, name), getattr(here, name), strict=True
            )
        reports = [rounds for told, rounds in heard if told == spec]
        assert (reports[0], reports[-1]) == (0, 40)
    assert finished[SPECS[0]].made["machine"]["cores"] >= 1
    assert multiprocessing.active_children() == []


def test_run_says_on_which_device_it_was_made() -> None:
    taking, without = (
        RunSpec("linear", PolicySpec(name), horizon=20, replication=0, seed=3)
        for name in ("pfn-ts", "lin-ts")
    )
    jobs = prepare([taking, without], device="cpu:0")
    made = {each.job.spec: each.made for each in LocalEngine(workers=1).execute(jobs, listener=ignore)}  # type: ignore[union-attr]
    assert made[taking]["machine"]["device"] == "cpu:0"
    assert made[without]["machine"]["device"] == "cpu"


def test_killed_process_costs_only_the_run_it_was_making() -> None:
    # Two that are still under way when they are killed, and one that comes after.
    long = plan(
        scenarios=["linear"], policies=[PolicySpec("lin-ts")], horizon=100_000, replications=2, seed=3
    )
    specs = [*long, SPECS[0]]
    killed: list[int] = []

    def kill_once(job: Job, rounds: int, regret: float) -> None:
        if not killed:
            killed.extend(child.pid or 0 for child in multiprocessing.active_children())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    results = list(LocalEngine(workers=2).execute(prepare(specs), listener=kill_once))
    failures = [each for each in results if isinstance(each, Failure)]
    assert len(killed) == 2
    assert {each.job.spec for each in failures} == set(long)
    assert [each.job.spec for each in results if isinstance(each, Finished)] == [SPECS[0]]
    for failure in failures:
        assert failure.reason == "its process ended by SIGKILL, perhaps for want of memory"


def test_closing_ends_every_process() -> None:
    specs = plan(
        scenarios=["linear"], policies=[PolicySpec("lin-ts")], horizon=100_000, replications=2, seed=3
    )

    def interrupt(job: Job, rounds: int, regret: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(LocalEngine(workers=2).execute(prepare(specs), listener=interrupt))
    assert multiprocessing.active_children() == []


def test_error_becomes_a_failure_with_its_traceback() -> None:
    broken = Job(SPECS[0], {"pfnts": "9.9"})
    results = list(LocalEngine(workers=2).execute([broken, job(SPECS[1])], listener=ignore))
    (failure,) = [each for each in results if isinstance(each, Failure)]
    assert failure.job is broken
    assert "must be the same on every machine" in failure.reason
    assert "Traceback" in failure.traceback


def test_interrupt_is_no_failure() -> None:
    def interrupt(rounds: int, regret: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(prepare(SPECS)[0], interrupt)


def test_all_cores_work_when_nothing_is_said() -> None:
    assert LocalEngine().workers == cores() >= 1


@pytest.mark.parametrize("engine", [LocalEngine, RayEngine])
def test_workers_must_be_positive(engine: type[LocalEngine | RayEngine]) -> None:
    with pytest.raises(ValueError, match="workers must be a positive integer, got 0"):
        engine(workers=0)
