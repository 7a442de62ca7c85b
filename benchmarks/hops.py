"""Functions and files that one decision and one reward pass, and their time, outside the prediction model.

    python benchmarks/hops.py [--rounds 2000] [--list]
    PYTHONPATH=../old/src python benchmarks/hops.py        # version 0.1, from a worktree of bee60bd

After some rounds of deciding and learning in turn, one more of each is followed by `sys.setprofile`:
functions of pfnts outside ``backbones/`` are counted once, comprehensions as part of the function they stand
in. A decision is followed right after a reward, which it learns, and once more with nothing to learn. Times
are medians over the last half of the rounds, with a backbone that answers at once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from overhead import FIRST_EDITION, backbone

import pfnts
from pfnts import PFNTS

ROOT = Path(pfnts.__file__).parent


def passed(call: Callable[[], Any]) -> dict[tuple[str, str], int]:
    """Calls of each function, by file and name."""
    found: dict[tuple[str, str], int] = {}

    def follow(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and code.co_name[0] != "<":
            file = str(Path(code.co_filename).relative_to(ROOT))
            if not file.startswith("backbones"):
                found[file, code.co_qualname] = found.get((file, code.co_qualname), 0) + 1

    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def contexts(*, named: bool, rng: np.random.Generator) -> Iterator[Any]:
    """Mappings with a number, a boolean and a category, or rows of three floats."""
    while True:
        age, weekend, clinic = rng.uniform(20, 70), bool(rng.integers(2)), str(rng.choice(["north", "south"]))
        yield {"age": age, "weekend": weekend, "clinic": clinic} if named else rng.normal(size=3)


def measure(rounds: int, *, named: bool, listed: bool) -> None:
    """Print everything about contexts of one kind."""
    rng = np.random.default_rng(0)
    policy = PFNTS(arms=["none", "standard"], backbone=backbone())
    deciding, updating = [], []

    def update(context: Any, decision: Any) -> Any:
        reward = decision.index + rng.normal()
        if FIRST_EDITION:
            return policy.update(context, arm=decision.arm, reward=reward)
        return policy.update(decision.id, reward=reward)

    upcoming = contexts(named=named, rng=rng)
    for _, context in zip(range(rounds), upcoming, strict=False):
        start = time.thread_time()
        decision = policy.decide(context, rng=rng)
        between = time.thread_time()
        update(context, decision)
        deciding.append(between - start)
        updating.append(time.thread_time() - between)
    context, decisions = next(upcoming), []
    followed = {
        "decide": passed(lambda: decisions.append(policy.decide(context, rng=rng))),
        "decide, nothing to learn": passed(lambda: policy.decide(context, rng=rng)),
        "update": passed(lambda: update(context, decisions[0])),
    }
    print("named contexts" if named else "rows of floats")
    seconds = {"decide": np.median(deciding[rounds // 2 :]), "update": np.median(updating[rounds // 2 :])}
    for what, found in followed.items():
        files = {file for file, _ in found}
        said = f"{len(found)} functions in {len(files)} files, {sum(found.values())} calls"
        print(f"  {what}: {said}" + (f", {1e3 * seconds[what]:.3f} ms" if what in seconds else ""))
        for (file, name), calls in found.items() if listed else ():
            print(f"    {file} {name} {calls}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--list", action="store_true", help="name every function")
    chosen = parser.parse_args()
    for named in (True, False):
        measure(chosen.rounds, named=named, listed=chosen.list)


if __name__ == "__main__":
    main()
