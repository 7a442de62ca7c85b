"""How fast the embedded backbone is on a CPU, and how much memory it takes.

Measurements, each beside its aim:

- a run of PFN-TS on friedman with prefetching, in seconds;
- the same run if every round fitted a new snapshot for every prefix of every arm's history: the time of one
  snapshot is measured at each prefix size (a new sequence, one query), and multiplied by how often the run
  would have needed it;
- the median time of a decision without prefetching after many rounds;
- the median time of one call of the backbone about two arms that share the rounds, after all their rows: for
  one query, and for a block of them;
- the time to append all rows one by one with a question after every fiftieth;
- the peak memory of a process that holds a long history with twenty features and answers queries.

    python benchmarks/embedded_speed.py                    # as in the table of the documentation
    python benchmarks/embedded_speed.py --horizon 1000     # a minute
    python benchmarks/embedded_speed.py --calls-only       # of the backbone alone
    python benchmarks/embedded_speed.py --against ../old/src --threads 2   # beside version 0.1, as ratios

The last takes the run, single decisions and the memory of both versions in turn, each in its own process;
the source of 0.1 comes from ``git worktree add ../old bee60bd``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from pfnts import PFNTS, simulate
from pfnts.backbones import load
from pfnts.environments import Environment, make
from pfnts.posterior import prefix_grid

FEATURES = 20
QUERIES = 256
MEMORY_AIM = 1000


def prefetched(
    environment: Environment, options: argparse.Namespace
) -> tuple[float, NDArray[np.int64], float]:
    """Seconds of a run, the arms it pulled, and its regret."""
    policy = PFNTS(arms=environment.n_arms, encoding="disjoint")
    trajectory = simulate(policy, environment, rng=np.random.default_rng(options.seed + 1))
    return trajectory.seconds, trajectory.arms, trajectory.total_regret


def snapshots(arms: NDArray[np.int64], n_arms: int) -> Counter[int]:
    """How many snapshots of each size the run would fit: one per round, arm and prefix of its history."""
    needed: Counter[int] = Counter()
    for arm in range(n_arms):
        held = np.cumsum(arms == arm)  # rewards of the arm after each round
        for size, rounds in Counter(held.tolist()).items():
            for prefix in prefix_grid(size) if size >= 3 else []:
                needed[prefix] += rounds
    return needed


def snapshot_seconds(environment: Environment, size: int, *, repeats: int, rng: Generator) -> float:
    """Median time to fit a snapshot of that many rows and predict one query."""
    backbone = load("embedded")
    rows = rng.permutation(environment.horizon)[:size]
    X, y, query = environment.contexts[rows], environment.rewards[rows, 0], environment.contexts[:1]
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        backbone.sequence(X, y).means(query, [len(y)])
        times.append(time.perf_counter() - begun)
    return float(np.median(times))


def decision_seconds(
    environment: Environment,
    *,
    decisions: int,
    rng: Generator,
    clock: Callable[[], float] = time.perf_counter,
) -> NDArray[np.float64]:
    """Times of single decisions after all rounds of an environment, arms taken at random until then."""
    policy = PFNTS(arms=environment.n_arms, encoding="disjoint")
    before = environment.horizon - decisions
    arms = rng.integers(environment.n_arms, size=before)
    for t in range(before):
        policy.update(
            environment.contexts[t], arm=int(arms[t]), reward=float(environment.rewards[t, arms[t]])
        )
    times = []
    for t in range(before, environment.horizon):
        begun = clock()
        decision = policy.decide(environment.contexts[t], rng=rng)
        times.append(clock() - begun)
        policy.update(
            environment.contexts[t], arm=decision.arm, reward=float(environment.rewards[t, decision.index])
        )
    return np.array(times[1:])  # the first reads the rows


def call_seconds(environment: Environment, *, queries: int, repeats: int) -> float:
    """Median time of one call about two arms, each with half of the rounds, after all their rows."""
    from pfnts.backbones import Question  # version 0.1 has none

    backbone, half = load("embedded"), environment.horizon // 2
    X, y = environment.contexts, environment.rewards
    sequences = [backbone.sequence(X[k::2][:half], y[k::2, k][:half]) for k in (0, 1)]
    times = []
    for i in range(repeats + 1):
        asked = X[i * queries : (i + 1) * queries]
        begun = time.perf_counter()
        backbone.predict([Question(sequence, asked, (half,)) for sequence in sequences])
        times.append(time.perf_counter() - begun)
    return float(np.median(times[1:]))  # the first call reads the rows


def append_seconds(environment: Environment, *, every: int = 50) -> float:
    """Time to append all rows of an arm one by one, with a question now and then."""
    X, y = environment.contexts, environment.rewards[:, 0]
    begun = time.perf_counter()
    sequence = load("embedded").sequence(X[:1], y[:1])
    for i in range(1, len(y)):
        sequence.append(X[i : i + 1], y[i : i + 1])
        if i % every == 0:
            sequence.means(X[:1], [sequence.size])
    return time.perf_counter() - begun


def memory_of_a_history(size: int) -> None:
    """Print the peak memory of this process in MB before and after it holds a history."""
    backbone = load("embedded")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rng = np.random.default_rng(0)
    X = rng.random((size, FEATURES))
    sequence = backbone.sequence(X, X[:, 0] + rng.standard_normal(size))
    sequence.means(X[:1], [*prefix_grid(size), size])
    sequence.means(X[:QUERIES], [*prefix_grid(size), size])
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    print(before * unit / 1e6, after * unit / 1e6)


def compared(options: argparse.Namespace) -> dict[str, float]:
    """What both versions can be asked, of the one that is imported."""
    torch.set_num_threads(options.threads)
    environment = make("friedman", horizon=options.horizon, rng=np.random.default_rng(options.seed))
    load("embedded")
    begun = time.process_time()
    seconds, _, regret = prefetched(environment, options)
    processor = time.process_time() - begun
    rng = np.random.default_rng(options.seed)
    # On a single thread of a busy machine the processor's time says more than the wall clock's.
    clock = time.process_time if options.threads == 1 else time.perf_counter
    decisions = decision_seconds(environment, decisions=options.decisions, rng=rng, clock=clock)
    return {
        "run, s": seconds,
        "run, s of the processor": processor,
        "regret": regret,
        "decision, ms": 1e3 * float(np.median(decisions)),
        "decision, 99th percentile, ms": 1e3 * float(np.quantile(decisions, 0.99)),
    }


def compare(options: argparse.Namespace) -> None:
    """Measure both versions in turn, the old one first and last, and print ratios."""
    settings = [f"--{name}={getattr(options, name)}" for name in ("horizon", "decisions", "seed", "threads")]
    here = os.path.dirname(os.path.abspath(__file__))
    paths = {"0.1": options.against, "this": os.path.join(os.path.dirname(here), "src")}

    def ask(which: str, *what: str) -> str:
        command = [sys.executable, __file__, *settings, *what]
        path = {**os.environ, "PYTHONPATH": os.path.abspath(paths[which])}
        return subprocess.run(command, env=path, capture_output=True, text=True, check=True).stdout

    found = {which: [json.loads(ask(which, "--json"))] for which in ("0.1", "this")}
    found["0.1"].append(json.loads(ask("0.1", "--json")))
    for what in found["this"][0]:
        old, new = (float(np.mean([part[what] for part in found[which]])) for which in ("0.1", "this"))
        print(f"{what:32s} {old:10.1f} in 0.1, {new:10.1f} now, ratio {old / new:.2f}")
    for which in ("0.1", "this"):
        before, after = map(float, ask(which, "--memory-only").split())
        print(f"memory of a history, {which}: {after:,.0f} MB at most, {before:,.0f} before its first row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--horizon", type=int, default=10_000, help="rounds, and rows of the history in memory"
    )
    parser.add_argument("--decisions", type=int, default=200, help="decisions timed one by one")
    parser.add_argument("--repeats", type=int, default=3, help="snapshots timed at each size")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--memory-only", action="store_true", help="print MB before and after, and stop")
    parser.add_argument("--calls-only", action="store_true", help="measure the backbone, and no policy")
    parser.add_argument("--against", help="folder of version 0.1's source, measured in the same run")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.json:
        print(json.dumps(compared(options)))
        return
    if options.against:
        compare(options)
        return
    if options.memory_only:
        memory_of_a_history(options.horizon)
        return
    if options.horizon <= options.decisions:
        parser.error(f"--horizon must exceed --decisions, got {options.horizon} and {options.decisions}")

    console = Console(width=110)
    with console.status("memory"):  # first: a process's peak begins at that of the one that started it
        probe = [sys.executable, __file__, "--memory-only", "--horizon", str(options.horizon)]
        before, after = map(
            float, subprocess.run(probe, capture_output=True, text=True, check=True).stdout.split()
        )
    rng = np.random.default_rng(options.seed)
    environment = make("friedman", horizon=options.horizon, rng=rng)
    load("embedded")  # so that reading the weights is in no measurement
    with console.status("calls of the backbone"):
        single, block = (call_seconds(environment, queries=q, repeats=r) for q, r in ((1, 50), (QUERIES, 5)))
        appended = append_seconds(environment)
    table = Table(
        title=f"The embedded backbone on {torch.get_num_threads()} CPU threads, n = {options.horizon:,}"
    )
    table.add_column("what")
    table.add_column("measured", justify="right")
    table.add_column("aim for n = 10,000", justify="right")
    table.add_row("one call, two arms, one query", f"{1e3 * single:.1f} ms", "")
    table.add_row(f"one call, two arms, {QUERIES} queries", f"{1e3 * block:.0f} ms", "")
    table.add_row("rows appended one by one, a question every 50", f"{appended:.1f} s", "")
    table.add_row(
        f"memory of a process with one history of {FEATURES} features, peak "
        f"({before:,.0f} MB before its first row)",
        f"{after:,.0f} MB",
        f"{MEMORY_AIM:,} MB",
    )
    if not options.calls_only:
        policy_rows(environment, options, console, table, rng)
    console.print(table)


def policy_rows(
    environment: Environment, options: argparse.Namespace, console: Console, table: Table, rng: Generator
) -> None:
    """Add what a policy takes with this backbone."""
    with console.status("a run with prefetching"):
        seconds, arms, regret = prefetched(environment, options)
    needed = snapshots(arms, environment.n_arms)
    refitted = 0.0
    for size, count in needed.items():
        with console.status(f"a snapshot of {size:,} rows"):
            refitted += count * snapshot_seconds(environment, size, repeats=options.repeats, rng=rng)
    with console.status("single decisions"):
        decisions = decision_seconds(environment, decisions=options.decisions, rng=rng)

    table.add_row(f"run on friedman with prefetching (regret {regret:.0f})", f"{seconds:,.1f} s", "60 s")
    table.add_row(
        f"the same, a new snapshot per prefix and round ({needed.total():,} of them, extrapolated)",
        f"{refitted:,.0f} s",
        "",
    )
    table.add_row("ratio of the two", f"{refitted / seconds:,.0f}", "at least 100")
    table.add_row(
        "decision without prefetching, two arms, median", f"{1e3 * np.median(decisions):.1f} ms", "30 ms"
    )
    table.add_row(
        "decision without prefetching, 99th percentile", f"{1e3 * np.quantile(decisions, 0.99):.1f} ms", ""
    )


if __name__ == "__main__":
    main()
