"""How the cost of a run grows with its number of rounds, up to 100,000.

    python benchmarks/horizon.py                                       # the linear backbone
    python benchmarks/horizon.py --backbone embedded --rounds 10000
    python benchmarks/horizon.py --backbone embedded --window 2000     # rows that a model rests on at most
    python benchmarks/horizon.py --backbone embedded --device cuda --seconds 90

One run of a synthetic scenario. Whenever it has come a third of an order of magnitude further: seconds by the
clock and of the processor, and the most memory so far, here and on the card. At the end the exponent b of
seconds ~ rounds^b, fitted by least squares on logarithms from 1,000 rounds on. A run that takes longer than
``--seconds`` ends there and says how far it came, and how long all would take at that exponent, which grows.
"""

from __future__ import annotations

import argparse
import resource
import time
from contextlib import suppress

import numpy as np

from pfnts import policies, simulate
from pfnts.environments import make
from pfnts.experiments.simulations import PREFETCH, PREFETCH_ELSEWHERE


class TimeIsUpError(Exception):
    """The run has had its share."""


class Marks:
    """What a run has cost by the time it has played some rounds."""

    def __init__(self, rounds: int, *, limit: float, device: str) -> None:
        self._limit, self._device = limit, device
        self._next = [m for m in (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000) if m < rounds] + [rounds]
        self._begun, self._cpu = time.perf_counter(), time.process_time()
        self.found: list[tuple[int, float]] = []
        """Rounds, and seconds by the clock."""

    def __call__(self, rounds: int, regret: float) -> None:
        seconds = time.perf_counter() - self._begun
        late = seconds > self._limit
        if rounds >= self._next[0] or late:
            self._next = [mark for mark in self._next if mark > rounds] or [rounds]
            self.found.append((rounds, seconds))
            cpu = time.process_time() - self._cpu
            print(
                f"{rounds:7,} rounds: {seconds:8.2f} s ({cpu:.2f} of processors), "
                f"{1e3 * seconds / rounds:.3f} ms each, {_megabytes(self._device)}; regret {regret:,.0f}",
                flush=True,
            )
        if late:
            raise TimeIsUpError


def _megabytes(device: str) -> str:
    here = f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB at most"
    if not device.startswith("cuda"):
        return here
    import torch

    return f"{here}, {torch.cuda.max_memory_allocated(device) / 2**20:,.0f} MB of tensors on the card"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--scenario", default="friedman")
    parser.add_argument("--backbone", default="linear")
    parser.add_argument("--device", default="cpu", help="where the backbone computes, if it leaves a choice")
    parser.add_argument("--window", type=int, help="rows that a model rests on at most")
    parser.add_argument("--seconds", type=float, default=np.inf, help="after which the run ends")
    chosen = parser.parse_args()
    options = {"backbone": chosen.backbone} | ({"window": chosen.window} if chosen.window else {})
    environment = make(chosen.scenario, horizon=chosen.rounds, rng=np.random.default_rng(0))
    policy = policies.make("pfn-ts", arms=environment.n_arms, device=chosen.device, **options)
    print(f"before the first round: {_megabytes(chosen.device)}", flush=True)
    prefetch = PREFETCH if chosen.device == "cpu" else PREFETCH_ELSEWHERE
    marks = Marks(chosen.rounds, limit=chosen.seconds, device=chosen.device)
    with suppress(TimeIsUpError):
        simulate(policy, environment, rng=np.random.default_rng(1), prefetch=prefetch, progress=marks)
    rounds, seconds = np.array(marks.found).T
    long = rounds >= 1000
    if long.sum() > 1:
        exponent = np.polyfit(np.log(rounds[long]), np.log(seconds[long]), 1)[0]
        print(f"seconds grow like rounds to the power of {exponent:.2f}")
        if rounds[-1] < chosen.rounds:
            whole = seconds[-1] * (chosen.rounds / rounds[-1]) ** exponent
            print(f"ended after {rounds[-1]:,.0f}; {chosen.rounds:,} rounds would take over {whole:,.0f} s")


if __name__ == "__main__":
    main()
