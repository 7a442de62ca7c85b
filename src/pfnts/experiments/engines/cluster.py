"""Runs on a Ray cluster, or on one started for the purpose on this machine."""

from __future__ import annotations

import math
import os
import sys
import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from pfnts.dotted import own_modules
from pfnts.experiments.jobs import Failure, Finished, Job, Listener, Results, work

_HEARD_EVERY = 0.5
_TOLD_EVERY = 1.0
_RETRIES = 2
"""Of a run whose node or process was lost; what Python raises in it is a failure at once."""


class UnusableDeviceError(ValueError):
    """A cluster has not the device that jobs ask for."""


class RayEngine:
    """Makes runs as Ray tasks, a CPU each; pfnts must be installed in the same version on every node.

    Modules of your own travel with the runs. Where Ray was connected to before, they must be on every node,
    in the same folder, or in the ``runtime_env`` that you gave Ray.

    A run whose node or process is lost is made again, up to twice. Runs that compute on a GPU share the
    cluster's evenly, as many on each as it takes for all workers.

    Parameters
    ----------
    address
        Of a running cluster, such as "auto" or "10.0.0.1:6379"; one is started here, and stopped at the
        end, when left out.
    workers
        Runs at a time; as many as the cluster has CPUs when left out.
    """

    def __init__(self, *, address: str | None = None, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be a positive integer, got {workers}")
        self.address, self.workers = address, workers
        _import_ray()

    def execute(self, jobs: Sequence[Job], *, listener: Listener) -> Results:
        """Yield what becomes of every job; one that fails stops no other."""
        ray = _import_ray()
        connected_before = ray.is_initialized()
        if not connected_before:
            own = {"num_cpus": self.workers, "include_dashboard": False}
            options: dict[str, Any] = own if self.address is None else {"address": self.address}
            if modules := own_modules(job.spec.describe() for job in jobs):
                options["runtime_env"] = {"py_modules": list(map(str, modules))}
            ray.init(**options, log_to_driver=False, logging_level="warning")
        try:
            yield from _execute(ray, jobs, workers=self.workers, listener=listener)
        finally:
            if not connected_before:
                ray.shutdown()


class _Board:
    """Where tasks write how far they are; an actor, so that it can be reached from every node."""

    def __init__(self) -> None:
        self._reports: dict[int, tuple[int, float]] = {}

    def write(self, number: int, steps: int, value: float) -> None:
        self._reports[number] = steps, value

    def read(self) -> dict[int, tuple[int, float]]:
        """Give out what is new since the last reading."""
        reports, self._reports = self._reports, {}
        return reports


def _execute(ray: Any, jobs: Sequence[Job], *, workers: int | None, listener: Listener) -> Results:
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(_work)
    share = gpu_share(ray.cluster_resources(), jobs, workers=workers)
    on_gpu = ray.remote(num_cpus=1, num_gpus=share, max_retries=_RETRIES)(_work)
    # By name, so that it can be told apart among the actors of a cluster.
    board = ray.remote(num_cpus=0, max_restarts=-1)(_Board).options(name=f"pfnts-progress-{uuid4()}").remote()
    path = [os.path.abspath(entry) for entry in sys.path]
    waiting = deque(enumerate(jobs))
    running: dict[Any, int] = {}
    reading = board.read.remote()
    try:
        while waiting or running:
            while waiting and len(running) < (workers or len(jobs)):
                number, job = waiting.popleft()
                chosen = on_gpu if _gpu(job) else task
                running[chosen.remote(job, number, board, path)] = number
            done, _ = ray.wait(list(running), num_returns=1, timeout=_HEARD_EVERY)
            if ray.wait([reading], timeout=0)[0]:
                for number, report in _reports(ray, reading).items():
                    if number in running.values():
                        listener(jobs[number], *report)
                reading = board.read.remote()
            for reference in done:
                yield _result(ray, reference, jobs[running.pop(reference)])
    finally:
        for reference in running:
            ray.cancel(reference, force=True)
        ray.kill(board)


def _reports(ray: Any, reading: Any) -> dict[int, tuple[int, float]]:
    """What the board said; nothing where it died, with which nothing but reports is lost."""
    with suppress(ray.exceptions.RayError):
        reports: dict[int, tuple[int, float]] = ray.get(reading)
        return reports
    return {}


def gpu_share(resources: Mapping[str, float], jobs: Sequence[Job], *, workers: int | None) -> float:
    """Part of a GPU that each job that needs one asks for, so that all workers find room at once."""
    asked = {device for job in jobs if (device := _gpu(job))}
    if not asked:
        return 0.0
    if asked != {"cuda"}:
        rule = 'device must be "cuda" on a Ray cluster, which picks the card itself'
        raise UnusableDeviceError(f"{rule}; got {', '.join(sorted(asked))}")
    # Ray would wait without end for a GPU that no node has.
    cards = int(resources.get("GPU", 0))
    if cards < 1:
        rule = "device must be one that the Ray cluster has"
        raise UnusableDeviceError(f'{rule}, got "cuda" and a cluster without GPUs')
    at_a_time = workers or int(resources.get("CPU", 1))
    # Rounded down, in Ray's smallest unit: all shares together must not exceed the card.
    return math.floor(1e4 / math.ceil(at_a_time / cards)) / 1e4


def _gpu(job: Job) -> str | None:
    """Which GPU the job computes on, if any."""
    device = job.spec.device(job.asked)
    return device if device.startswith("cuda") else None


def _work(job: Job, number: int, board: Any, path: Sequence[str]) -> Finished | Failure:
    """Make one run on a node, telling the board now and then."""
    # Modules of the user's own are found where they were found here, if the node has that folder.
    sys.path.extend(entry for entry in path if entry not in sys.path)
    told = -_TOLD_EVERY

    def progress(steps: int, value: float) -> None:
        nonlocal told
        if time.monotonic() - told >= _TOLD_EVERY or steps == 0:
            told = time.monotonic()
            board.write.remote(number, steps, value)

    return replace(work(job, progress, elsewhere=True), job=None)


def _result(ray: Any, reference: Any, job: Job) -> Finished | Failure:
    try:
        found: Finished | Failure = ray.get(reference)
    except ray.exceptions.RayError as error:
        reason = f"its process ended: {str(error).strip().splitlines()[0]}"
        return Failure(job, reason, traceback.format_exc())
    return replace(found, job=job)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ImportError('the engine "ray" needs Ray; install it with: pip install "pfnts[ray]"') from error
    return ray
