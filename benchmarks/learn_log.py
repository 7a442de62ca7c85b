"""How long a new user waits: a marketing log is learned, then the first decision; and again after loading.

The log has rounds of four offers to customers from 30 countries, with fourteen numbers and one yes or no: 45
columns as policies read them.

    python benchmarks/learn_log.py                  # 1,000, 5,000 and 20,000 rounds
    python benchmarks/learn_log.py --rounds 1000    # a few seconds
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from pfnts import PFNTS
from pfnts.backbones import load

OFFERS = ["none", "mail", "coupon", "call"]
COUNTRIES = [f"country {i}" for i in range(30)]


def marketing_log(rounds: int, *, seed: int) -> list[dict[str, Any]]:
    """Return the rounds of a log: context, offer, and revenue."""
    rng = np.random.default_rng(seed)
    numbers, country = rng.standard_normal((rounds, 14)), rng.integers(30, size=rounds)
    offer, member = rng.integers(4, size=rounds), rng.integers(2, size=rounds)
    worth = rng.standard_normal((30, 4))[country, offer] + numbers[np.arange(rounds), offer] * (1 + member)
    revenue = worth + rng.standard_normal(rounds)
    return [
        {
            **{f"x{j}": float(x) for j, x in enumerate(numbers[i])},
            "member": bool(member[i]),
            "country": COUNTRIES[country[i]],
            "offer": OFFERS[offer[i]],
            "revenue": float(revenue[i]),
        }
        for i in range(rounds)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, nargs="+", default=[1_000, 5_000, 20_000])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    load("embedded")  # so that reading the weights is in no measurement
    table = Table(title=f"Seconds on {torch.get_num_threads()} CPU threads")
    columns = (
        "rounds",
        "learn",
        "first decision",
        "second decision",
        "load",
        "first decision",
        "second decision",
    )
    for name in columns:
        table.add_column(name, justify="right")
    for rounds in options.rounds:
        rng = np.random.default_rng(options.seed)
        log = marketing_log(rounds, seed=options.seed)
        context = {name: x for name, x in log[0].items() if name not in ("offer", "revenue")}
        laps = [time.perf_counter()]
        policy = PFNTS(arms=OFFERS)
        policy.learn(log, action="offer", reward="revenue")
        laps.append(time.perf_counter())
        for _ in range(2):
            policy.decide(context, rng=rng)
            laps.append(time.perf_counter())
        with TemporaryDirectory() as folder:
            policy.save(Path(folder) / "policy.npz")
            laps.append(time.perf_counter())
            loaded = PFNTS.load(Path(folder) / "policy.npz")
            laps.append(time.perf_counter())
            for _ in range(2):
                loaded.decide(context, rng=rng)
                laps.append(time.perf_counter())
        seconds = np.diff(laps)[[0, 1, 2, 4, 5, 6]]
        table.add_row(f"{rounds:,}", *(f"{s:.2f}" for s in seconds))
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
