"""Time and memory of decisions among many arms or candidates, after many rewards.

    python benchmarks/many_arms.py [--rows 5000] [--arms 32 --arms 1000] [--backbone embedded] [--threads 2]

Each line is one policy that has learned ``--rows`` rewards, of five columns of the context and four of the
arm. Medians of decisions: wall clock, and processor time of all threads (on a busy machine only this means
anything), the parts of it that encode the arms and that make the shortlist, and the memory that the log
takes for a decision.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from typing import Any

import numpy as np

from pfnts import PFNTS
from pfnts.layouts import Features
from pfnts.layouts.shortlist import RidgeScores


def features(rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    kinds = ["book", "toy", "game"]
    return [
        {"price": float(p), "weight": float(w), "age": float(a), "kind": kinds[k]}
        for p, w, a, k in zip(*rng.random((3, count)), rng.integers(3, size=count), strict=True)
    ]


def worth(context: Any, offer: dict[str, Any]) -> float:
    return context[0] * offer["price"] - context[1] * offer["age"] + 0.3 * (offer["kind"] == "toy")


def line(name: str, arms: int, *, rows: int, backbone: str, candidates: bool, repeats: int) -> str:
    rng = np.random.default_rng(0)
    offers = features(rng, arms)
    policy = PFNTS(None if candidates else dict(enumerate(offers)), backbone=backbone)
    contexts, chosen = rng.random((rows, 5)), rng.integers(arms, size=rows)
    rewards = [worth(x, offers[k]) + 0.1 * rng.normal() for x, k in zip(contexts, chosen, strict=True)]
    if candidates:
        policy.update(contexts, features=[offers[k] for k in chosen], reward=rewards)
    else:
        policy.update(contexts, arm=chosen.tolist(), reward=rewards)
    start = time.process_time()
    policy.catch_up()
    asked = {"candidates": offers} if candidates else {}
    policy.decide(rng.random(5), rng=rng, **asked)
    learned = time.process_time() - start
    walls, processor, encoding, scoring = [], [], [], []
    history = policy.history
    scores = RidgeScores.fit(
        history.rows, history.arms, history.rewards, width=history.contexts.shape[1], effects=0
    )
    for _ in range(repeats):
        context = rng.random(5)
        wall, start = time.perf_counter(), time.process_time()
        decision = policy.decide(context, rng=rng, **asked)
        walls.append(time.perf_counter() - wall)
        processor.append(time.process_time() - start)
        assert decision.reason != "warmup"
        start = time.process_time()
        _ = history.candidates(offers) if candidates else history.actions
        encoding.append(time.process_time() - start)
        if arms > Features().shortlist:
            start = time.process_time()
            actions = history.candidates(offers) if candidates else history.actions
            scores.shortlist(context[None], actions, np.ones((1, arms), dtype=bool), size=32, costs=None)
            scoring.append(time.process_time() - start - encoding[-1])
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(3):
        policy.decide(rng.random(5), rng=rng, **asked)
    kept = (tracemalloc.get_traced_memory()[0] - before) / 3 / 1024
    tracemalloc.stop()
    medians = [
        1000 * float(np.median(times)) if times else 0.0 for times in (walls, processor, encoding, scoring)
    ]
    return f"{name:24} {learned:9.1f} " + " ".join(f"{value:11.1f}" for value in medians) + f" {kept:11.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--arms", type=int, action="append")
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    import torch

    torch.set_num_threads(asked.threads)
    print(f"after {asked.rows:,} rewards, backbone {asked.backbone}, {asked.threads} threads")
    titles = ["wall, ms", "cpu, ms", "encode, ms", "ridge, ms", "log, KiB"]
    print(f"{'':24} {'learn, s':>9} " + " ".join(f"{title:>11}" for title in titles))
    for count in asked.arms or [10, 32, 1000]:
        for candidates in (False, True):
            name = f"{count:,} {'candidates' if candidates else 'arms'}"
            options = {"rows": asked.rows, "backbone": asked.backbone, "repeats": asked.repeats}
            print(line(name, count, candidates=candidates, **options), flush=True)


if __name__ == "__main__":
    main()
