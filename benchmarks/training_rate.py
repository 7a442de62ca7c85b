"""Rows a second of training on a GPU, in its steady state: of version 0.2, and of this one.

    python benchmarks/training_rate.py new
    python benchmarks/training_rate.py same architecture.cell=64 architecture.cell_heads=4 uses=3
    git archive b60a567 src | tar -x -C build/old
    PYTHONPATH=build/old/src python benchmarks/training_rate.py old

Both train on tables of 64, 256 and 1,024 rows with 4, 10 and 20 columns, 65,536 rows a step. Preparation and
the minibatches that were drawn ahead do not count. Processes that run at once are timed in turn.
"""

from __future__ import annotations

import argparse
import fcntl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import torch

TABLES: dict[str, Any] = {
    "lengths": (64, 256, 1024),
    "length_weights": (0.4, 0.3, 0.3),
    "late_length_weights": (0.4, 0.3, 0.3),
    "widths": (4, 10, 20),
    "width_weights": (0.3, 0.4, 0.3),
}
TINY = {**TABLES, "lengths": (64,), "length_weights": (1.0,), "late_length_weights": (1.0,)}
TINY |= {"widths": (4,), "width_weights": (1.0,), "rows_per_step": 512, "steps_per_draw": 4}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", help="old for the training of version 0.2, anything else for this version's")
    parser.add_argument(
        "settings", nargs="*", help="settings of the recipe, such as architecture.cell_layers=1"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    begun = time.monotonic()
    if options.name == "old":
        steps = old_steps(options.device)
    else:
        steps = new_steps(options.name, options.settings, options.device)
    next(steps)
    synchronise(options.device)
    print(f"[{options.name}] prepared in {time.monotonic() - begun:.0f} s", flush=True)
    with alone():
        ahead = next(steps)  # minibatches that the background may have drawn
        for _ in range(ahead):
            next(steps)
        synchronise(options.device)
        begun, rows, count = time.monotonic(), 0, 0
        while time.monotonic() - begun < options.seconds:
            rows, count = rows + next(steps), count + 1
        synchronise(options.device)
        took = time.monotonic() - begun
    print(f"{options.name}: {rows / took / 1e6:.3f} million rows a second, {count / took:.1f} steps a second")


def new_steps(name: str, settings: list[str], device: str) -> Iterator[int]:
    """Prepare; yield 0, then how many minibatches may be drawn ahead, then the rows of each step."""
    sys.path.insert(0, str(Path(__file__).parent))
    from recipe_experiments import variant

    from pfnts.backbones.network.prior.device_rng import DeviceRng
    from pfnts.backbones.network.training.minibatches import draw_minibatches, rounds
    from pfnts.backbones.network.training.recipe import read_recipe
    from pfnts.backbones.network.training.train import make_learner

    tables = TINY if device == "cpu" else TABLES
    base = replace(read_recipe("shipped"), late=1.0, draws_per_round=2, **tables)
    _, recipe = variant(f"{name}: {', '.join(settings)}", base)
    lock = threading.Lock()
    learner, rng = make_learner(recipe, device=device, compiled=True, lock=lock), DeviceRng(0, device=device)

    def step(minibatch: Any) -> int:
        batch, n, features = minibatch.X.shape
        learner.schedule(0)
        learner.step(minibatch, rng.normal(batch, features, recipe.architecture.identity))
        return int(batch * n)

    for n in recipe.lengths:
        for p in recipe.widths:
            one = {"lengths": (n,), "length_weights": (1.0,), "widths": (p,), "width_weights": (1.0,)}
            drawn = draw_minibatches(replace(recipe, steps_per_draw=2, **one), 0, device=device)
            for _ in range(3):
                step(drawn[0])
    yield 0
    yield recipe.steps_per_round
    for part in rounds(recipe, 0, device=device, lock=lock):
        for minibatch in part:
            yield step(minibatch)


def old_steps(device: str) -> Iterator[int]:
    """Do the same with the training of version 0.2."""
    from pfnts.backbones.network.training.checkpoints import Progress
    from pfnts.backbones.network.training.steps import GraphSteps, Steps

    from pfnts.backbones.network.network import CausalPFN
    from pfnts.backbones.network.prior.device_rng import DeviceRng
    from pfnts.backbones.network.training.minibatches import minibatches
    from pfnts.backbones.network.training.recipe import Recipe
    from pfnts.backbones.network.training.train import make_optimisers, set_rates

    tables = TINY if device == "cpu" else TABLES
    recipe = replace(Recipe(), seconds=1e9, shapes_at_once=3, **tables)
    network = CausalPFN().to(device)
    optimisers = make_optimisers(network, recipe)
    step: Callable[[Any, Any], Any] = Steps(network, optimisers)
    if device != "cpu":
        set_rates(optimisers, recipe, 0.0)
        step = graphs = GraphSteps(network, optimisers, compiled=True)
        graphs.record(recipe.shapes(), rng=DeviceRng(0, device=device), report=lambda _: None)
    set_rates(optimisers, recipe, 0.1)
    yield 0
    yield 2 * recipe.steps_per_draw * recipe.uses
    rng, of_columns = DeviceRng(0, device=device), DeviceRng(1, device=device)
    for minibatch in minibatches(recipe, rng, Progress()):
        step(minibatch, of_columns)
        yield minibatch.X.shape[0] * minibatch.X.shape[1]


def synchronise(device: str) -> None:
    """Wait for the device."""
    if device != "cpu":
        torch.cuda.synchronize()


@contextmanager
def alone() -> Iterator[None]:
    """Wait until no other process is timed."""
    with (Path(gettempdir()) / "pfnts-training-rate").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    main()
