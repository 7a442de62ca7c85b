"""Many runs of PFN-TS by processes that share one card, in one call of a few minutes.

    python benchmarks/gpu_runs.py --device cuda --data tables --out figures --seconds 380
    python benchmarks/gpu_runs.py --device cpu --rounds 200 --replications 1 --scenarios friedman linear

In this order; every part ends when its share of the time is over, and says how far it came:

1. one run of friedman by itself, twice: the first warms the card up (aim: under 5 s);
2. tasks x replications by processes, one a core (aim: 16 x 5 runs under 60 s), and meanwhile, as `nvidia-smi`
   has it, the share of the time in which the card computes;
3. where the time of a short run goes: kernels, the share of the time in which they run, and operations begun
   in rows, queries and regressions;
4. with ``--mps``, all runs again through NVIDIA's Multi-Process Service, by which kernels of different
   processes run at the same time, if it is installed and enough time is left.

Regrets are printed as runs end. The folder ``--out`` gets figures.json, regret.csv with a line for each run,
and arms.npz with the arm of every round; ``--runs`` keeps whole runs as `pfnts run` would, and goes on from
them. An interrupt, or a SIGTERM, ends the part under way and prints what there is.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from pfnts.backbones.embedded import asking, cache, growth, regressions, sequence
from pfnts.environments.openml import SCENARIOS as OPENML
from pfnts.experiments import Job, LocalEngine, PolicySpec, RunSpec, RunStore, plan, prepare, run, run_all
from pfnts.reproduction.published import SYNTHETIC

# What is kept on the CPU. Processes that are spawned read this file anew, and find what was chosen here.
_ROWS, _REGRESSIONS = "BENCHMARK_ROWS_BELOW", "BENCHMARK_REGRESSIONS_BELOW"
sequence.SHORT = int(os.environ.get(_ROWS, sequence.SHORT))
cache.SHORT = int(os.environ.get(_REGRESSIONS, cache.SHORT))


class TimeIsUpError(Exception):
    """A part has had its share."""


class Figures:
    """What was measured, printed and written as it comes, and the time left."""

    def __init__(self, seconds: float, out: Path | None) -> None:
        self._end, self.out = time.perf_counter() + seconds, out
        self._found: dict[str, Any] = {}

    @property
    def left(self) -> float:
        return self._end - time.perf_counter()

    def say(self, what: str, **numbers: float | str) -> None:
        self._found[what] = numbers
        said = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items())
        print(f"{what}: {said} ({self.left:.0f} s left)", flush=True)
        if self.out is not None:
            (self.out / "figures.json").write_text(json.dumps(self._found, indent=1))


class Batch:
    """Runs that are under way, and what came of them.

    Parameters
    ----------
    jobs
        What to do.
    out
        Folder for regret.csv and arms.npz.
    """

    def __init__(self, jobs: Sequence[Job], out: Path | None) -> None:
        self.jobs, self._out = jobs, out
        self.rounds = dict.fromkeys(jobs, 0)
        self.found: dict[RunSpec, Any] = {}
        self.seconds = self.cpu_seconds = 0.0

    def make(self, *, workers: int | None, limit: float, store: RunStore | None = None) -> None:
        """Do it for so many seconds at most; what has ended by then is kept."""
        begun, before = time.perf_counter(), os.times()

        def listener(job: Job, rounds: int, _: float) -> None:
            self.rounds[job] = rounds
            if time.perf_counter() - begun > limit:
                raise TimeIsUpError

        engine = LocalEngine(workers=workers)
        try:
            with suppress(TimeIsUpError):
                for each in run_all(self.jobs, engine=engine, store=store, listener=listener):
                    self.found[each.spec] = each.result
                    self._note(each.spec, each.result, time.perf_counter() - begun)
        finally:
            self.seconds, after = time.perf_counter() - begun, os.times()
            self.cpu_seconds = sum(after[:4]) - sum(before[:4])  # of this process and of those that ended

    @property
    def share(self) -> float:
        """Of all rounds, those that were played."""
        played = sum(j.spec.horizon if j.spec in self.found else self.rounds[j] for j in self.jobs)
        return played / sum(job.spec.horizon for job in self.jobs)

    def _note(self, spec: RunSpec, result: Any, at: float) -> None:
        print(f"{at:6.1f} s: {spec.title}: {result.total_regret:.1f} in {result.seconds:.1f} s", flush=True)
        if self._out is not None:
            line = (
                f"{spec.scenario},{spec.replication},{result.total_regret:.6g},{result.seconds:.3f},{at:.2f}"
            )
            with (self._out / "regret.csv").open("a") as file:
                file.write(line + "\n")

    def tell(self, figures: Figures, what: str, **more: float | str) -> None:
        """Print regrets by task, and the time it took."""
        by_task: dict[str, dict[int, float]] = defaultdict(dict)
        for spec, result in self.found.items():
            by_task[spec.scenario][spec.replication] = result.total_regret
        for task, regrets in by_task.items():
            each = " ".join(f"{regrets[i]:.0f}" for i in sorted(regrets))
            print(f"  {task:26} {statistics.fmean(regrets.values()):8.1f}  ({each})", flush=True)
        if self._out is not None:
            arms = {f"{s.scenario}_{s.replication}": r.arms.astype(np.int8) for s, r in self.found.items()}
            np.savez_compressed(self._out / "arms.npz", **arms)  # type: ignore[arg-type]
        own = [float(result.seconds) for result in self.found.values()] or [math.nan]
        figures.say(
            what,
            runs=f"{len(self.found)} of {len(self.jobs)}",
            seconds=self.seconds,
            cpu_seconds=self.cpu_seconds,
            played=self.share,
            seconds_of_a_run=statistics.fmean(own),
            longest=max(own),
            **more,
        )


@contextmanager
def card_watched(device: str) -> Iterator[dict[str, float]]:
    """Sample `nvidia-smi`: per cent of the time in which a kernel ran, mean and largest memory in use."""
    found: dict[str, float] = {}
    if not device.startswith("cuda") or shutil.which("nvidia-smi") is None:
        yield found
        return
    command = "nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader,nounits -lms 250"
    with tempfile.TemporaryFile("w+") as log:
        watch = subprocess.Popen(command.split(), stdout=log, stderr=subprocess.DEVNULL)
        try:
            yield found
        finally:
            watch.terminate()
            watch.wait()
            log.seek(0)
            samples = []
            for line in log.read().splitlines():
                with suppress(ValueError):
                    samples.append([float(x) for x in line.split(",")])
            if samples:
                busy, memory = np.array(samples).T
                found |= {"card_computes": float(busy.mean()) / 100, "memory_gb": float(memory.max()) / 1024}


@contextmanager
def multi_process_service() -> Iterator[bool]:
    """Let processes that begin meanwhile share the card through the service; False if there is none."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/nvidia/bin", "/usr/local/cuda/bin"])
    control = shutil.which("nvidia-cuda-mps-control", path=places)
    if control is None:
        yield False
        return
    with tempfile.TemporaryDirectory() as folder:
        named = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        os.environ |= named
        try:
            started = subprocess.run([control, "-d"], check=False, timeout=20).returncode == 0
            try:
                yield started
            finally:
                subprocess.run([control], input="quit\n", text=True, check=False, timeout=30)
        finally:
            for name in named:
                os.environ.pop(name, None)


class Counted(TorchDispatchMode):
    """Counts operations that compute something, by the phase they are begun in."""

    _VIEWS = ("view", "slice", "select", "expand", "transpose", "squeeze", "split", "alias", "detach", "mT")

    def __init__(self) -> None:
        super().__init__()
        self.operations, self.seconds, self._phases = Counter(), Counter(), ["everything else"]

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if not any(view in str(operation) for view in self._VIEWS):
            self.operations[self._phases[-1]] += 1
        return operation(*args, **(kwargs or {}))

    def named(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Count what the method begins under this name; a phase within another is taken out of that."""

        def counted(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            self._phases.append(name)
            try:
                return method(*args, **kwargs)
            finally:
                spent = time.perf_counter() - begun
                self._phases.pop()
                self.seconds[name] += spent
                self.seconds[self._phases[-1]] -= spent

        return counted


def phases(spec: RunSpec, options: argparse.Namespace) -> dict[str, str]:
    """Operations begun, and seconds of this process, in each phase of a run."""
    places = [
        (regressions.Regressions, "extend", "regressions"),
        (regressions.Regressions, "base_predictions", "regressions"),
        (cache.View, "__init__", "columns"),
        (growth, "_pass", "rows"),
        (asking, "_pass", "queries"),
    ]
    before = [getattr(owner, name) for owner, name, _ in places]
    counted, begun = Counted(), time.perf_counter()
    try:
        for (owner, name, phase), method in zip(places, before, strict=True):
            setattr(owner, name, counted.named(method, phase))
        with counted:
            run(spec, data=options.data, device=options.device)
    finally:
        for (owner, name, _), method in zip(places, before, strict=True):
            setattr(owner, name, method)
    counted.seconds["everything else"] += time.perf_counter() - begun
    return {
        name: f"{count:,} operations {counted.seconds[name]:.2f} s"
        for name, count in counted.operations.most_common()
    }


def kernels(spec: RunSpec, options: argparse.Namespace) -> dict[str, float]:
    """How many kernels a run has, and the share of its time in which they run."""
    card = options.device.startswith("cuda")
    begun = time.perf_counter()
    with profile(activities=[ProfilerActivity.CUDA if card else ProfilerActivity.CPU]) as profiler:
        run(spec, data=options.data, device=options.device)
        if card:
            torch.cuda.synchronize()
    wall = time.perf_counter() - begun
    assert profiler.profiler is not None
    # As the profiler has them: to make its tree of events of hundreds of thousands takes minutes.
    events = profiler.profiler.kineto_results.events()
    spans = sorted((e.start_ns(), e.start_ns() + e.duration_ns()) for e in events)
    computing, reached = 0.0, 0.0
    for start, end in spans:  # overlapping ones count once
        computing += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return {"seconds": wall, "computes": computing / 1e9 / wall, "kernels": float(len(spans))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=380, help="for everything together")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--replications", type=int, default=5)
    parser.add_argument("--scenarios", nargs="*", help="the paper's sixteen tasks when left out")
    parser.add_argument("--workers", type=int, help="processes; as many as there are cores when left out")
    parser.add_argument("--data", type=Path, help="folder with the OpenML tables; without it, no such tasks")
    parser.add_argument("--out", type=Path, help="folder for the figures")
    parser.add_argument("--runs", type=Path, help="folder in which to keep whole runs")
    for what, module in (("rows", sequence), ("regressions", cache)):
        said = f"bases below which {what} stay on the CPU"
        parser.add_argument(f"--{what}-below", type=int, default=module.SHORT, help=said)
    parser.add_argument("--mps", action="store_true", help="try the Multi-Process Service as well")
    options = parser.parse_args()
    sequence.SHORT, cache.SHORT = options.rows_below, options.regressions_below
    os.environ |= {_ROWS: str(sequence.SHORT), _REGRESSIONS: str(cache.SHORT)}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "regret.csv").write_text("task,replication,regret,seconds,ended\n")
    figures = Figures(options.seconds, options.out)
    with suppress(KeyboardInterrupt):
        measure(options, figures)


def measure(options: argparse.Namespace, figures: Figures) -> None:
    """All parts."""
    # The slowest first, so that processes end together; all tasks once before any twice.
    tables = sorted(OPENML, key=lambda task: -task.n_features * task.n_arms) if options.data else []
    scenarios = options.scenarios or [*(task.name for task in tables), *SYNTHETIC]

    def jobs(names: Sequence[str], replications: int, rounds: int = options.rounds) -> list[Job]:
        specs = plan(
            scenarios=names,
            policies=[PolicySpec("pfn-ts")],
            horizon=rounds,
            replications=replications,
            seed=42,
        )
        specs.sort(key=lambda spec: spec.replication)
        return prepare(specs, inputs=options.data, device=options.device)

    first = "friedman" if "friedman" in scenarios else scenarios[0]
    for attempt in ("first", "second"):
        alone = Batch(jobs([first], 1), None)
        alone.make(workers=1, limit=figures.left / 8)
        played = max(alone.share, 1e-9)
        figures.say(f"one run of {first}, {attempt} time", seconds=alone.seconds / played, played=alone.share)

    begun = time.perf_counter()
    every = jobs(scenarios, options.replications)
    figures.say("tables read", seconds=time.perf_counter() - begun)
    batch, store = Batch(every, options.out), RunStore(options.runs) if options.runs else None
    cores = options.workers or os.cpu_count() or 1
    with card_watched(options.device) as card:
        try:
            batch.make(workers=cores, limit=figures.left - 15, store=store)
        finally:
            equal = {}
            for spec in alone.found.keys() & batch.found.keys():
                same = batch.found[spec].arms == alone.found[spec].arms
                equal = {"decisions_of_the_single_run": float(same.mean())}
            batch.tell(figures, f"{len(every)} runs by {cores} processes", **equal)
    figures.say(f"the card during the {len(every)} runs", **card)

    [short] = jobs([first], 1, rounds=min(options.rounds, 2000))
    if figures.left > 40:
        figures.say(f"profile of {short.spec.steps} rounds", **kernels(short.spec, options))
    if figures.left > 40:
        figures.say(f"operations of {short.spec.steps} rounds", **phases(short.spec, options))
    if options.mps:
        with multi_process_service() as there:
            if not there or figures.left < 20 + 1.2 * batch.seconds:
                figures.say("multi-process service", left_out="no time" if there else "not installed")
                return
            again = Batch(every, None)
            with card_watched(options.device) as card:
                try:
                    again.make(workers=cores, limit=figures.left - 10)
                finally:
                    again.tell(figures, f"{len(every)} runs by {cores} processes, multi-process service")
            figures.say("the card meanwhile", **card)


if __name__ == "__main__":
    main()
