"""A Ray cluster started for these tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pfnts.experiments import Job, PolicySpec, RayEngine, RunSpec, plan, prepare, run
from pfnts.experiments.engines import UnusableDeviceError
from pfnts.experiments.engines.cluster import _result, gpu_share
from pfnts.experiments.jobs import Failure, Finished

POLICIES = [PolicySpec("uniform"), PolicySpec.of("pfn-ts", backbone="linear")]
SPECS = plan(scenarios=["linear"], policies=POLICIES, horizon=40, replications=1, seed=3)
EMBEDDED = RunSpec("linear", PolicySpec("pfn-ts"), horizon=40, replication=0, seed=3)


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    module = pytest.importorskip("ray", reason='needs Ray: pip install "pfnts[ray]"')
    module.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield module
    module.shutdown()


def test_cluster_gives_the_same_runs_and_a_failure_stops_none(ray: Any) -> None:
    broken = Job(SPECS[0], {"pfnts": "9.9"})
    heard: list[Job] = []
    jobs = prepare(SPECS)
    results = list(
        RayEngine(workers=2).execute([broken, *jobs], listener=lambda job, rounds, regret: heard.append(job))
    )
    (failure,) = [each for each in results if isinstance(each, Failure)]
    assert "must be the same on every machine" in failure.reason
    finished = {each.job.spec: each.result for each in results if isinstance(each, Finished)}
    assert set(finished) == set(SPECS)
    assert set(heard) == set(jobs), "each of them reports at least when it starts"
    for spec in SPECS:
        here = run(spec)
        for name in ("arms", "rewards", "regret", "propensities", "fixed"):
            np.testing.assert_array_equal(getattr(finished[spec], name), getattr(here, name), strict=True)
    assert ray.is_initialized(), "a cluster that was there before is left running"


def test_killed_task_is_a_failure(ray: Any) -> None:
    killed = ray.remote(max_retries=0)(lambda: os.kill(os.getpid(), signal.SIGKILL)).remote()
    failure = _result(ray, killed, Job(SPECS[0], {}))
    assert isinstance(failure, Failure)
    assert failure.reason.startswith("its process ended: ")


def test_missing_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'pip install "pfnts\[ray\]"'):
        RayEngine()


@pytest.mark.parametrize(
    ("cpus", "gpus", "workers", "share"),
    [(16, 1, None, 0.0625), (16, 2, None, 0.125), (16, 1, 4, 0.25), (2, 8, None, 1.0), (15, 1, None, 0.0666)],
)
def test_workers_share_the_gpus(cpus: int, gpus: int, workers: int | None, share: float) -> None:
    jobs = [Job(spec, {}, asked="cuda") for spec in (SPECS[0], EMBEDDED)]
    assert gpu_share({"CPU": cpus, "GPU": gpus}, jobs, workers=workers) == share
    assert gpus * (1 // share) >= (workers or cpus)


def test_only_policies_that_take_a_device_ask_for_a_gpu() -> None:
    jobs = [Job(spec, {}, asked="cuda") for spec in SPECS]
    assert gpu_share({"CPU": 2}, jobs, workers=None) == 0.0
    with pytest.raises(UnusableDeviceError, match='got "cuda" and a cluster without GPUs'):
        gpu_share({"CPU": 2}, [*jobs, Job(EMBEDDED, {}, asked="cuda")], workers=None)


def test_cluster_picks_the_card() -> None:
    with pytest.raises(UnusableDeviceError, match=r"picks the card itself; got cuda:1"):
        gpu_share({"CPU": 2, "GPU": 2}, [Job(EMBEDDED, {}, asked="cuda:1")], workers=None)
