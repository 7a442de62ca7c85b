"""PFN-TS on the networks of others: regret, and where the time goes.

For every backbone and scenario one run, by default 10,000 rounds on a GPU and 500 on a CPU:

- regret, beside that of picking at random;
- seconds of the run;
- refreshes, each the fit of one snapshot when an arm's history reaches the next point of its prefix grid (or
  when the adaptive encoding looks back), and seconds for one of them;
- the share of the run's time that the network itself computes;
- seconds for a slice of decisions after the run, announced and not, and how many of them differ: none on a
  CPU; on a GPU a batch is rounded differently from a single query, which may decide between equals.

TabICL has the official size and random weights here: its times count, its regret does not.

    python benchmarks/pretrained_backbones.py
    python benchmarks/pretrained_backbones.py --backbones tabpfn --scenarios friedman --device cuda
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from pfnts import PFNTS, Memory, simulate
from pfnts.backbones import load
from pfnts.backbones.tabpfn_weights import weights_path
from pfnts.environments import Environment, make

BACKBONES = ("tabpfn", "tabicl")
# The v2 regressor; what is not named has the package's default.
TABICL = {"max_classes": 0, "row_rope_interleaved": False, "zero_init": False, "bias_free_ln": True}


@dataclass(frozen=True)
class Row:
    backbone: str
    scenario: str
    rounds: int
    regret: float
    uniform: float
    seconds: float
    refreshes: int
    seconds_per_refresh: float
    share_in_forward_passes: float
    slice: int
    slice_with_prefetch: float
    slice_without_prefetch: float
    slice_differing: int
    device: str


class Clock:
    """Adds up the time of the calls that it watches, to the end of what they start on a GPU."""

    def __init__(self, device: str) -> None:
        self._wait = torch.cuda.synchronize if torch.device(device).type == "cuda" else lambda: None
        self.calls = 0
        self.seconds = 0.0

    def watching(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            self._wait()
            begun = time.perf_counter()
            result = function(*arguments, **options)
            self._wait()
            self.calls += 1
            self.seconds += time.perf_counter() - begun
            return result

        return timed


def random_tabicl(device: str) -> Any:
    """The backbone on a checkpoint of the official size and format with random weights."""
    from tabicl._model.tabicl import TabICL

    torch.manual_seed(0)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tabicl-random.ckpt"
        torch.save({"config": TABICL, "state_dict": TabICL(**TABICL).state_dict()}, path)
        return load("tabicl", weights=path, device=device)


def watched(name: str, options: argparse.Namespace, *, refreshes: Clock, passes: Clock) -> Any:
    """A backbone whose fits and forward passes are timed."""
    if name == "tabicl":
        backbone = random_tabicl(options.device)
        network = backbone._network
        # The attribute on the object hides the class's; what an earlier run put there goes first.
        vars(network).pop("predict_stats_with_cache", None)
        network.predict_stats_with_cache = passes.watching(network.predict_stats_with_cache)
    else:
        backbone = load("tabpfn", weights=options.weights, device=options.device)
        network = backbone._specs.model
        vars(network).pop("forward", None)
        network.forward = passes.watching(network.forward)
    backbone._fit = refreshes.watching(backbone._fit)
    return backbone


def decisions(policy: PFNTS, contexts: np.ndarray, *, announced: bool) -> tuple[float, list[int]]:
    """Seconds and arms of decisions at the contexts; nothing is learned in between."""
    rng = np.random.default_rng(0)
    policy.prefetch(contexts if announced else contexts[:0])
    begun = time.perf_counter()
    arms = [policy.decide(context, rng=rng).index for context in contexts]
    return time.perf_counter() - begun, arms


def reporter(label: str) -> Callable[[int, float], None]:
    """Print the state of a run every ten seconds."""
    begun = last = time.perf_counter()

    def report(rounds: int, regret: float) -> None:
        nonlocal last
        if time.perf_counter() - last > 10:
            last = time.perf_counter()
            print(f"  {label}: {rounds:,} rounds, regret {regret:,.1f}, {last - begun:.0f} s", flush=True)

    return report


def measure(name: str, scenario: str, options: argparse.Namespace) -> Row:
    refreshes, passes = Clock(options.device), Clock(options.device)
    backbone = watched(name, options, refreshes=refreshes, passes=passes)
    # The first pass on a GPU sets it up, which belongs to no run.
    backbone.sequence(np.random.default_rng(0).random((8, 5)), np.arange(8.0)).means(np.zeros((4, 5)), [8])
    refreshes.calls, refreshes.seconds, passes.seconds = 0, 0.0, 0.0
    environment = make(scenario, horizon=options.horizon, rng=np.random.default_rng(options.seed))
    policy = PFNTS(
        arms=environment.n_arms, backbone=backbone, encoding=options.encoding, memory=Memory(refresh=2.0)
    )
    trajectory = simulate(
        policy,
        environment,
        rng=np.random.default_rng(options.seed + 1),
        prefetch=options.prefetch,
        progress=reporter(f"{name} on {scenario}"),
    )
    share = passes.seconds / trajectory.seconds
    count, spent = refreshes.calls, refreshes.seconds
    fresh = make(scenario, horizon=options.slice, rng=np.random.default_rng(options.seed + 2)).contexts
    with_prefetch, arms = decisions(policy, fresh, announced=True)
    without_prefetch, arms_again = decisions(policy, fresh, announced=False)
    return Row(
        backbone=name if name == "tabpfn" else f"{name} (random)",
        scenario=scenario,
        rounds=options.horizon,
        regret=trajectory.total_regret,
        uniform=uniform_regret(environment),
        seconds=trajectory.seconds,
        refreshes=count,
        seconds_per_refresh=spent / count,
        share_in_forward_passes=share,
        slice=options.slice,
        slice_with_prefetch=with_prefetch,
        slice_without_prefetch=without_prefetch,
        slice_differing=sum(one != other for one, other in zip(arms, arms_again, strict=True)),
        device=torch.cuda.get_device_name() if options.device.startswith("cuda") else "cpu",
    )


def uniform_regret(environment: Environment) -> float:
    """Expected regret of picking at random."""
    return float((environment.means.max(axis=1) - environment.means.mean(axis=1)).sum())


def markdown(rows: Sequence[Row]) -> str:
    names = [field.name for field in fields(Row)]
    lines = [f"| {' | '.join(name.replace('_', ' ') for name in names)} |", "|---" * len(names) + "|"]
    for row in rows:
        cells = [f"{v:,.3f}" if isinstance(v, float) else str(v) for v in asdict(row).values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--backbones", nargs="+", choices=BACKBONES, default=list(BACKBONES))
    parser.add_argument("--scenarios", nargs="+", default=["friedman", "linear"])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--horizon", type=int, help="rounds; 10,000 on a GPU, 500 on a CPU when left out")
    parser.add_argument("--encoding", default="adaptive")
    parser.add_argument("--prefetch", type=int, help="contexts announced at a time; 1024 or 64")
    parser.add_argument("--slice", type=int, default=10, help="decisions after the run")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--weights", type=Path, help="of TabPFN; those in the user cache when left out")
    parser.add_argument("--out", type=Path, default=Path("build/pretrained_backbones"))
    options = parser.parse_args()
    gpu = options.device.startswith("cuda")
    if options.horizon is None:
        options.horizon = 10_000 if gpu else 500
    if options.prefetch is None:
        # Few large batches suit a GPU; on a CPU what a refresh throws away costs more than a batch saves.
        options.prefetch = 1024 if gpu else 64
    options.out.mkdir(parents=True, exist_ok=True)
    if "tabpfn" in options.backbones and not (options.weights or weights_path()).is_file():
        print("tabpfn is left out: its weights are not here, run `pfnts weights tabpfn`")
        options.backbones.remove("tabpfn")
    threads = f"{torch.get_num_threads()} CPU threads of {os.cpu_count()}"
    print(f"{options.device}, {threads}, torch {torch.__version__}", flush=True)
    rows = []
    for name in options.backbones:
        for scenario in options.scenarios:
            rows.append(measure(name, scenario, options))
            # After every run, so that an interrupted benchmark leaves what it has.
            with (options.out / "table.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, [field.name for field in fields(Row)])
                writer.writeheader()
                writer.writerows(asdict(row) for row in rows)
            (options.out / "table.md").write_text(markdown(rows), encoding="utf-8")
            print(markdown(rows[-1:]), flush=True)


if __name__ == "__main__":
    main()
