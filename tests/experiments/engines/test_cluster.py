"""A Ray cluster started for these tests."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from pfnts.experiments import Job, PolicySpec, RayEngine, RunSpec, plan, prepare, run
from pfnts.experiments.engines import UnusableDeviceError
from pfnts.experiments.engines.cluster import _result, gpu_share
from pfnts.experiments.jobs import Failure, Finished
from pfnts.simulation import Trajectory

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
    assert broken not in heard, "it never began; what is under way is heard of in the tests below"
    for spec in SPECS:
        same(finished[spec], run(spec))
    assert ray.is_initialized(), "a cluster that was there before is left running"


MORTAL = """
import os, pathlib, time
from pfnts.policies import Uniform

HERE = pathlib.Path({folder!r})

class Mortal(Uniform):
    name = "mortal"

    def play(self, *arguments, **options):
        if not (HERE / "go").exists():
            (HERE / "pid").write_text(str(os.getpid()))
            time.sleep(60)
        return super().play(*arguments, **options)
"""


@pytest.fixture
def mortal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunSpec:
    """A run that waits to be killed until there is a file "go" in its folder."""
    (tmp_path / "own").mkdir()
    name = f"mortal_{uuid4().hex}"  # a worker of the cluster keeps the modules that it has imported
    (tmp_path / "own" / f"{name}.py").write_text(MORTAL.format(folder=str(tmp_path)))
    monkeypatch.syspath_prepend(str(tmp_path / "own"))
    return RunSpec("linear", PolicySpec(f"{name}.Mortal"), horizon=40, replication=0, seed=3)


def same(one: Trajectory, other: Trajectory) -> None:
    for name in ("arms", "rewards", "regret", "propensities", "fixed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)


@pytest.mark.usefixtures("ray")
def test_run_whose_process_is_killed_is_made_again(mortal: RunSpec, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill() -> None:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.02)
        killed.append(int((tmp_path / "pid").read_text()))
        (tmp_path / "go").touch()
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    (done,) = RayEngine(workers=1).execute(prepare([mortal]), listener=lambda *_: None)
    assert len(killed) == 1
    assert isinstance(done, Finished)
    same(done.result, run(mortal))


def test_death_of_the_progress_actor_ends_nothing(ray: Any, mortal: RunSpec, tmp_path: Path) -> None:
    killed: list[str] = []

    def kill(*_: object) -> None:
        if not killed:
            for name in ray.util.list_named_actors():
                if name.startswith("pfnts-progress-"):
                    with suppress(ValueError):  # of an engine before, and gone by now
                        ray.kill(ray.get_actor(name))
                        killed.append(name)
            (tmp_path / "go").touch()

    jobs = prepare([mortal, *SPECS])
    results = list(RayEngine(workers=2).execute(jobs, listener=kill))
    assert killed
    assert {each.job.spec for each in results if isinstance(each, Finished)} == {mortal, *SPECS}


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


def test_modules_of_ones_own_travel_with_the_runs(
    mortal: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = pytest.importorskip("ray")
    module.shutdown()
    (tmp_path / "go").touch()
    jobs, here = prepare([mortal]), run(mortal)
    init = module.init

    def connect(**options: Any) -> None:
        init(**options)
        shutil.rmtree(tmp_path / "own")  # the node has no such folder

    monkeypatch.setattr(module, "init", connect)
    (done,) = RayEngine(workers=1).execute(jobs, listener=lambda *_: None)
    assert isinstance(done, Finished), done
    same(done.result, here)
    assert not module.is_initialized()
