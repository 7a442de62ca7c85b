"""Many runs of PFN-TS on one card, in one call of a few minutes: one run, processes, lockstep.

    python benchmarks/gpu_engine.py --device cuda --seconds 540 [--data tables]      # what to run on a card
    python benchmarks/gpu_engine.py --device cpu:0 --rounds 200 --replications 1 --scenarios friedman linear

In this order; every part ends by itself when its share of the time is over, and then says how far it came.
Figures are printed as they come and, with ``--out``, written to a JSON file:

1. one run of friedman by itself, the first time to warm the card up, and where its time goes: operations
   begun and seconds in regressions, in rows that enter caches, in queries, and in everything else; the same
   with all regressions on the card (`embedded.cache.SHORT`), and the share of the time in which it computes;
2. tasks x replications by processes that share the card, one a core;
3. the same in lockstep, 40 side by side (aim: 16 x 5 runs under 60 s), and what share of the decisions is
   that of the single run;
4. the ablations of `pfnts reproduce all` that compute on the card, by whichever of the two was faster.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from pfnts.backbones.embedded import asking, cache, growth, regressions
from pfnts.experiments import (
    Job,
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


class TimeIsUpError(Exception):
    """A part has had its share."""


@dataclass
class Timed:
    """What became of some runs."""

    seconds: float
    share: float
    """Of all rounds, those that were played."""
    found: dict[RunSpec, Any]

    @property
    def whole(self) -> float:
        """Seconds that all rounds would take at this pace."""
        return self.seconds / self.share if self.share else math.inf


def timed(
    specs: Sequence[RunSpec],
    engine: Engine,
    options: argparse.Namespace,
    *,
    limit: float,
    store: RunStore | None = None,
) -> Timed:
    """Make runs for so many seconds at most; those that ended by then are kept."""
    jobs = prepare(specs, inputs=options.data, device=options.device)
    begun, found, done = time.perf_counter(), {}, dict.fromkeys(jobs, 0)

    def listener(job: Job, rounds: int, _: float) -> None:
        done[job] = rounds
        if time.perf_counter() - begun > limit:
            raise TimeIsUpError

    with suppress(TimeIsUpError):
        for each in run_all(jobs, engine=engine, store=store, listener=listener):
            found[each.spec] = each.result
    played = sum(each.spec.horizon if each.spec in found else done[each] for each in jobs)
    return Timed(time.perf_counter() - begun, played / sum(spec.horizon for spec in specs), found)


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

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count what is begun meanwhile under this name; a phase within another is taken out of that."""
        begun = time.perf_counter()
        self._phases.append(name)
        try:
            yield
        finally:
            spent = time.perf_counter() - begun
            self._phases.pop()
            self.seconds[name] += spent
            self.seconds[self._phases[-1]] -= spent

    def named(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            with self.phase(name):
                return method(*args, **kwargs)

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
    assert profiler.profiler is not None
    # As the profiler has them: to make its tree of events of hundreds of thousands takes minutes.
    events = profiler.profiler.kineto_results.events()
    spans = sorted((e.start_ns(), e.start_ns() + e.duration_ns()) for e in events)
    computing, reached = 0.0, 0.0
    for start, end in spans:  # overlapping ones count once
        computing += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return {"wall s": wall, "computes": computing / 1e9 / wall, "kernels": float(len(spans))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=540, help="for everything together")
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--replications", type=int, default=5)
    parser.add_argument("--scenarios", nargs="*", help="the paper's sixteen tasks when left out")
    parser.add_argument("--data", type=Path, help="folder with the OpenML tables; without it, no such tasks")
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--runs", type=Path, help="an empty folder in which to keep the runs of all tasks")
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
        alone = timed([first], LocalEngine(workers=1), options, limit=clock.left / 8)
        clock.say(
            f"one run of {first.scenario}, {attempt} time",
            seconds=alone.whole,
            played=alone.share,
            aim="under 5 s",
        )
    [short] = runs(scenarios[:1], 1, rounds=min(options.rounds, 500))
    usual = cache.SHORT
    for limit in (usual, 0):
        cache.SHORT = limit
        begun = time.perf_counter()
        run(short, data=options.data, device=options.device)
        seconds = time.perf_counter() - begun
        clock.say(
            f"{short.horizon} rounds, regressions on the CPU below a basis of {limit}",
            seconds=seconds,
            **phases(short, options),
        )
    cache.SHORT = usual
    clock.say(f"profile of {short.horizon} rounds", **busy_share(short, options))

    every, faster = runs(scenarios, options.replications), {}
    cores = os.cpu_count() or 1
    for name, engine in (
        (f"{cores} processes", LocalEngine()),
        ("40 in lockstep", LockstepEngine(workers=40)),
    ):
        found = timed(every, engine, options, limit=clock.left / 3, store=store if not faster else None)
        faster[found.whole] = engine
        ended = {
            name: [r.total_regret for s, r in found.found.items() if s.scenario == name] for name in scenarios
        }
        equal = {}
        if first in found.found and first in alone.found:
            same = found.found[first].arms == alone.found[first].arms
            equal = {"decisions_of_the_single_run": float(same.mean())}
        clock.say(
            f"{len(every)} runs by {name}",
            seconds=found.whole,
            played=found.share,
            aim="16 x 5 runs under 60 s",
            memory_gb=torch.cuda.max_memory_allocated() / 1e9 if options.device.startswith("cuda") else 0.0,
            regret=" ".join(
                f"{task} {np.mean(values):.0f} ({len(values)})" for task, values in ended.items() if values
            ),
            **equal,
        )
    pace, done = min(faster) / len(every), set(every)
    for name, suite in SUITES.items():
        specs = [s for s in suite.specs() if s.policy.name == "pfn-ts" and s not in done]
        specs = [s for s in specs if options.data or not s.scenario.startswith("openml-")]
        if not name.startswith("ablation") or not specs or options.scenarios:
            continue
        if clock.left < 1.5 * pace * len(specs):
            clock.say(name, left_out=f"{len(specs)} runs, no time")
            continue
        found = timed(specs, faster[min(faster)], options, limit=clock.left, store=store)
        done.update(specs)
        clock.say(name, runs=float(len(found.found)), seconds=found.seconds)


if __name__ == "__main__":
    main()
