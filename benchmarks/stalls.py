"""Whether any single step of a growing history takes much longer than the others.

Arms grow in turn, row by row, as in a loop of decisions and updates: each step adds a row to one arm and asks
all arms about one new context. Printed for each stretch of rounds: median and longest step, and their ratio,
whose aim is at most ten.

    python benchmarks/stalls.py                          # up to 20,000 rows, a quarter of an hour
    python benchmarks/stalls.py --rows 3000 --arms 2
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from pfnts.backbones import Backbone, Question, load


def steps(backbone: Backbone, *, arms: int, rows: int, features: int, first: int, seed: int) -> np.ndarray:
    """Milliseconds of every step, until each arm holds ``rows`` rows."""
    rng = np.random.default_rng(seed)
    X = rng.random((arms, rows, features))
    y = (
        np.sin(6 * X[..., 0])
        + X[..., 1] * np.arange(1, arms + 1)[:, None]
        + 0.3 * rng.standard_normal((arms, rows))
    )
    sequences = [backbone.sequence(X[k, :first], y[k, :first]) for k in range(arms)]
    queries, taken = rng.random((rows * arms, 1, features)), []
    # What is there at the beginning is read here: appending much at once is no part of this.
    backbone.predict([Question(sequence, queries[0], (first,)) for sequence in sequences])
    for step in range((rows - first) * arms):
        arm, row = step % arms, first + step // arms
        begun = time.perf_counter()
        sequences[arm].append(X[arm, row : row + 1], y[arm, row : row + 1])
        backbone.predict([Question(sequence, queries[step], (sequence.size,)) for sequence in sequences])
        taken.append(time.perf_counter() - begun)
    return 1e3 * np.array(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of an arm at the end")
    parser.add_argument("--first", type=int, default=32, help="rows of an arm at the beginning")
    parser.add_argument("--arms", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--features", type=int, default=5)
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    backbone = load(options.backbone)
    for arms in options.arms:
        taken = steps(
            backbone,
            arms=arms,
            rows=options.rows,
            features=options.features,
            first=options.first,
            seed=options.seed,
        )
        print(f"{arms} arm(s): rows of an arm, median ms, longest ms, ratio")
        ends = [64 * 2**k for k in range(20) if options.first < 64 * 2**k < options.rows] + [options.rows]
        begin = options.first
        for end in ends:
            part = taken[(begin - options.first) * arms : (end - options.first) * arms]
            longest = begin + int(part.argmax()) // arms + 1
            print(
                f"  {begin:6,} to {end:6,} {np.median(part):8.1f} {part.max():8.1f} "
                f"{part.max() / np.median(part):6.1f}  (at {longest:,})",
                flush=True,
            )
            begin = end


if __name__ == "__main__":
    main()
