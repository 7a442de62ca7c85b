"""Many runs of PFN-TS by processes that share one card, in one call of a few minutes.

    python benchmarks/gpu_runs.py --parts one mps profile processes --data tables --out figures --seconds 380
    python benchmarks/gpu_runs.py --device cpu --rounds 200 --replications 1 --scenarios friedman linear

Parts, in the order in which they are named; each ends when the time is over, and says how far it came:

one
    How far predictions in TF32 are from others, and how fast both are. Then a run of friedman alone, twice,
    since the first warms the card up (aim: under 4 s), and in TF32.
profile
    Kernels of a run, and the share of its time in which they run.
processes
    Tasks x replications by processes, one a core (aim: 16 x 5 runs under 60 s), and the share of that time in
    which the card computes, as `nvidia-smi` has it.
mps
    The same through NVIDIA's Multi-Process Service, by which kernels of different processes run at the same
    time; left out if it is not installed or does not start. The card's settings are not changed.

Regrets are printed as runs end. The folder ``--out`` gets figures.json, and for each of the last two parts
regret.csv with a line for each run and arms.npz with the arm of every round; ``--runs`` keeps whole runs as
`pfnts run` would, and goes on from them. An interrupt, or a SIGTERM, ends the part under way and prints what
there is.
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
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from pfnts import environments
from pfnts.backbones.network.backbone import EmbeddedBackbone
from pfnts.backbones.network.inference.frame import NARROW
from pfnts.environments.openml import SCENARIOS as OPENML
from pfnts.experiments import Job, LocalEngine, PolicySpec, RunSpec, RunStore, plan, prepare, run, run_all
from pfnts.reproduction.published import SYNTHETIC

# Processes that are spawned read this file again, and find here what was chosen.
_TF32 = "BENCHMARK_TF32"
torch.backends.cuda.matmul.allow_tf32 = os.environ.get(_TF32) == "1"


class TimeIsUpError(Exception):
    """A part has had its share."""


def _computes() -> bool:
    """Whether a process that begins now can use the card."""
    test = [sys.executable, "-c", "import torch; torch.ones(9, device='cuda').sum().item()"]
    with suppress(subprocess.TimeoutExpired):
        return subprocess.run(test, check=False, timeout=60, capture_output=True).returncode == 0
    return False


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
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / "regret.csv").write_text("task,replication,regret,seconds,ended\n")
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
                yield started and _computes()
            finally:
                subprocess.run([control], input="quit\n", text=True, check=False, timeout=30)
        finally:
            for name in named:
                os.environ.pop(name, None)


@contextmanager
def in_tf32() -> Iterator[None]:
    """Multiply with ten bits of mantissa in this process."""
    before, torch.backends.cuda.matmul.allow_tf32 = torch.backends.cuda.matmul.allow_tf32, True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def compare_answers(options: argparse.Namespace, figures: Figures) -> None:
    """Milliseconds of a question, and the largest difference of answers, under each way to compute them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    y = X[:, 0] + rng.standard_normal(len(X))
    plain: np.ndarray | None = None
    for what, way in {"float32": nullcontext(), "TF32": in_tf32()}.items():
        with way:
            held = EmbeddedBackbone(device=options.device).sequence(X[:1500], y[:1500])
            said, took = [], []
            for size in range(1500, 3001, 60):
                if size > held.size:
                    held.append(X[held.size : size], y[held.size : size])
                begun = time.perf_counter()
                said.append(held.predict(X[: 10 + size % 50], sizes=[size]).means.ravel())
                took.append(time.perf_counter() - begun)
        means = np.concatenate(said)
        plain = means if plain is None else plain
        figures.say(
            f"questions, {what}",
            ms_each=1e3 * statistics.median(took),
            difference=float(np.abs(means - plain).max()),
        )


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
    on = torch.autograd.DeviceType.CUDA if card else torch.autograd.DeviceType.CPU
    events = [e for e in events if e.device_type() == on]  # not the calls that launch them
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
    parser.add_argument("--tf32", action="store_true", help="multiply with ten bits of mantissa on the card")
    parts = ("one", "profile", "processes", "mps")
    parser.add_argument("--parts", nargs="+", choices=parts, default=["one", "processes", "profile"])
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = options.tf32
    os.environ[_TF32] = str(int(options.tf32))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    figures = Figures(options.seconds, options.out)
    with suppress(KeyboardInterrupt):
        measure(options, figures)


def measure(options: argparse.Namespace, figures: Figures) -> None:
    """All parts."""
    scenarios = options.scenarios or [*(task.name for task in OPENML if options.data), *SYNTHETIC]

    def jobs(names: Sequence[str], replications: int, rounds: int = options.rounds) -> list[Job]:
        specs = plan(
            scenarios=names,
            policies=[PolicySpec("pfn-ts")],
            horizon=rounds,
            replications=replications,
            seed=42,
        )
        specs.sort(key=lambda spec: -_size(spec.scenario))  # the longest first: processes end together
        return prepare(specs, inputs=options.data, device=options.device)

    first = "friedman" if "friedman" in scenarios else scenarios[0]
    cores = options.workers or os.cpu_count() or 1
    alone: Batch | None = None
    for part in options.parts:
        if figures.left < 20:
            figures.say(part, left_out="no time")
        elif part == "one":
            compare_answers(options, figures)
            for attempt, how in {
                "first time": nullcontext(),
                "once more": nullcontext(),
                "in TF32": in_tf32(),
            }.items():
                alone = Batch(jobs([first], 1), None)
                with how:
                    alone.make(workers=1, limit=figures.left / 8)
                seconds = alone.seconds / max(alone.share, 1e-9)
                figures.say(f"one run of {first}, {attempt}", seconds=seconds, played=alone.share)
        elif part == "profile":
            [short] = jobs([first], 1, rounds=min(options.rounds, 4000))
            figures.say(f"profile of {short.spec.steps} rounds", **kernels(short.spec, options))
        else:
            with multi_process_service() if part == "mps" else nullcontext(True) as there:
                if not there:
                    figures.say(part, left_out="not installed, or it does not start")
                    continue
                batch = Batch(jobs(scenarios, options.replications), options.out and options.out / part)
                many(batch, cores, part, alone, options, figures)


def _size(scenario: str) -> int:
    """What the time of a run grows with: arms, and columns that regressions are told."""
    described = environments.describe(scenario)
    return described.n_arms * min(described.n_features, NARROW)


def many(
    batch: Batch, cores: int, part: str, alone: Batch | None, options: argparse.Namespace, figures: Figures
) -> None:
    """Runs by processes, and what the card does meanwhile."""
    store = RunStore(options.runs) if options.runs else None
    what = f"{len(batch.jobs)} runs by {cores} processes" + (
        ", multi-process service" if part == "mps" else ""
    )
    with card_watched(options.device) as card:
        try:
            batch.make(workers=cores, limit=figures.left - 12, store=store)
        finally:
            equal = {}
            for spec in (alone.found if alone else {}).keys() & batch.found.keys():
                assert alone is not None
                same = batch.found[spec].arms == alone.found[spec].arms
                equal = {"decisions_of_the_single_run": float(same.mean())}
            batch.tell(figures, what, **equal)
    figures.say(f"the card meanwhile ({part})", **card)


if __name__ == "__main__":
    main()
