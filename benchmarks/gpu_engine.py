"""Many runs of PFN-TS on one card, in one call of a few minutes: lockstep beside processes beside one run.

    python benchmarks/gpu_engine.py --device cuda --seconds 540 [--data tables]      # what to run on a card
    python benchmarks/gpu_engine.py --device cpu:0 --rounds 200 --replications 1 --scenarios friedman linear

In this order, each part only if the time left is enough for it by what was seen so far. Figures are printed
as they come and, with ``--out``, written to a JSON file:

1. one run of friedman by itself, twice (the first warms the card up), and the share of the time in which the
   card computes, by the profiler on a third, shorter one, with the number of kernels;
2. tasks x replications in lockstep, 40 side by side (aim: 16 x 5 runs under 60 s), once more with 80, and
   what share of decisions is that of single runs, on one scenario;
3. the same by processes that share the card (the way of version 0.1), on a part of the tasks, scaled up;
4. the ablations of `pfnts reproduce all` that compute on the card, in lockstep, as many as there is time for.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from pfnts.experiments import (
    LocalEngine,
    LockstepEngine,
    PolicySpec,
    RunSpec,
    RunStore,
    plan,
    prepare,
    run,
    run_all,
)
from pfnts.experiments.engines import Engine
from pfnts.reproduction.published import OPENML, SYNTHETIC
from pfnts.reproduction.suites import SUITES


class Clock:
    """The time left, and a record of what was measured."""

    def __init__(self, seconds: float, out: Path | None) -> None:
        self._end, self._out = time.perf_counter() + seconds, out
        self._found: dict[str, Any] = {}

    @property
    def left(self) -> float:
        return self._end - time.perf_counter()

    def say(self, what: str, **numbers: float | str) -> None:
        self._found[what] = numbers
        said = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items())
        print(f"{what}: {said} ({self.left:.0f} s left)", flush=True)
        if self._out is not None:
            self._out.write_text(json.dumps(self._found, indent=1))


def timed(
    specs: Iterable[RunSpec], engine: Engine, options: argparse.Namespace, store: RunStore | None = None
) -> tuple[float, dict]:
    """Wall seconds of runs by an engine, and their trajectories."""
    jobs = prepare(specs, inputs=options.data, device=options.device)
    begun = time.perf_counter()
    found = {each.spec: each.result for each in run_all(jobs, engine=engine, store=store)}
    return time.perf_counter() - begun, found


def busy_share(spec: RunSpec, options: argparse.Namespace) -> dict[str, float]:
    """Share of the wall time in which kernels run, and how many of them there are."""
    card = options.device.startswith("cuda")
    kind = ProfilerActivity.CUDA if card else ProfilerActivity.CPU
    begun = time.perf_counter()
    with profile(activities=[kind]) as profiler:
        run(spec, data=options.data, device=options.device)
        if card:
            torch.cuda.synchronize()
    wall = time.perf_counter() - begun
    events = profiler.events() or []
    spans = sorted((e.time_range.start, e.time_range.end) for e in events)
    computing, reached = 0.0, 0.0
    for start, end in spans:  # overlapping ones count once
        computing += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return {"wall s": wall, "computes": computing / 1e6 / wall, "kernels": float(len(spans))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=540, help="for everything together")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--replications", type=int, default=5)
    parser.add_argument("--scenarios", nargs="*", help="the paper's sixteen tasks when left out")
    parser.add_argument("--data", type=Path, help="folder with the OpenML tables; without it, no such tasks")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--runs", type=Path, help="an empty folder in which to keep runs in lockstep")
    options = parser.parse_args()
    store = RunStore(options.runs) if options.runs else None
    clock = Clock(options.seconds, options.out)
    scenarios = options.scenarios or [*SYNTHETIC, *(OPENML if options.data else ())]

    def runs(names: Iterable[str], replications: int, rounds: int = options.rounds) -> list[RunSpec]:
        return plan(
            scenarios=names,
            policies=[PolicySpec("pfn-ts")],
            horizon=rounds,
            replications=replications,
            seed=42,
        )

    [first] = runs(scenarios[:1], 1)
    for attempt in ("first", "second"):
        seconds, alone = timed([first], LocalEngine(workers=1), options)
        clock.say(f"one run of {first.scenario}, {attempt} time", seconds=seconds, aim="under 5 s")
    short = runs(scenarios[:1], 1, rounds=min(options.rounds, 1000))[0]
    if clock.left > 6 * seconds:
        clock.say(f"profile of one run of {short.horizon} rounds", **busy_share(short, options))

    every = runs(scenarios, options.replications)
    one = seconds
    lockstep = one * len(every)  # no faster than one after the other, to be sure
    for together in (40, 80):
        if clock.left < lockstep:
            continue
        lockstep, found = timed(
            every, LockstepEngine(workers=together), options, store if together == 40 else None
        )
        equal = float((found[first].arms == alone[first].arms).mean())
        regrets = {
            name: [r.total_regret for s, r in found.items() if s.scenario == name] for name in scenarios
        }
        clock.say(
            f"{len(every)} runs in lockstep, {together} side by side",
            seconds=lockstep,
            aim="16 x 5 runs under 60 s",
            against_one_by_one=one * len(every) / lockstep,
            decisions_of_the_single_run=equal,
            memory_gb=torch.cuda.max_memory_allocated() / 1e9 if options.device.startswith("cuda") else 0.0,
            regret=" ".join(f"{name} {np.mean(values):.0f}" for name, values in regrets.items()),
        )
    cores = os.cpu_count() or 1
    part = every[: min(len(every), cores)]
    if clock.left > 2 * one * len(part):
        seconds, _ = timed(part, LocalEngine(), options)
        scaled = seconds * len(every) / len(part)
        clock.say(f"{len(part)} runs by {cores} processes", seconds=seconds, scaled_to_all=scaled)
    done = set(every)
    for name, suite in SUITES.items():
        specs = [s for s in suite.specs() if s.policy.name == "pfn-ts" and s not in done]
        specs = [s for s in specs if options.data or not s.scenario.startswith("openml-")]
        if not name.startswith("ablation") or not specs or options.scenarios:
            continue
        if clock.left < 1.5 * lockstep * len(specs) / len(every):
            clock.say(name, left_out=f"{len(specs)} runs, no time")
            continue
        seconds, _ = timed(specs, LockstepEngine(), options, store)
        done.update(specs)
        clock.say(name, runs=float(len(specs)), seconds=seconds)


if __name__ == "__main__":
    main()
