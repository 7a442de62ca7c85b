"""Rows a second of training in its steady state: preparation and the minibatches drawn ahead do not count.

    python benchmarks/training_rate.py new --device cuda architecture.cell_layers=1
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace

import torch



@contextlib.contextmanager
def alone() -> Iterator[None]:
    begun = time.monotonic()
    while "AFTER" in os.environ and not os.path.exists(os.environ["AFTER"]) and time.monotonic() - begun < 200:
        time.sleep(0.2)
    with open("/tmp/pfnts-lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def new(name: str, settings: list[str], device: str, seconds: float) -> None:
    sys.path.insert(0, "benchmarks")
    from recipe_experiments import variant

    from pfnts.backbones.network.prior.device_rng import DeviceRng
    from pfnts.backbones.network.training.minibatches import draw_minibatches, rounds
    from pfnts.backbones.network.training.recipe import read_recipe
    from pfnts.backbones.network.training.train import make_learner

    small = device == "cpu"
    base = replace(
        read_recipe("shipped"), lengths=(64,) if small else (64, 256, 1024), length_weights=(1.0,) if small else (0.4, 0.3, 0.3), late=1.0,
        widths=(4,) if small else (4, 10, 20), width_weights=(1.0,) if small else (0.3, 0.4, 0.3), steps_per_draw=4 if small else 32, draws_per_round=2,
        rows_per_step=512 if small else 65_536, cells_per_step=5_000 if small else 800_000,
    )
    _, recipe = variant(f"{name}: {', '.join(settings)}", base)
    lock = threading.Lock()
    learner = make_learner(recipe, device=device, compiled=True, lock=lock)
    rng, rows, step, shapes = DeviceRng(0, device=device), 0, 0, {}
    begun = time.monotonic()

    def take(minibatch) -> None:  # noqa: ANN001
        nonlocal rows, step
        batch, n, features = minibatch.X.shape
        learner.schedule(step)
        learner.step(minibatch, rng.normal(batch, features, recipe.architecture.identity))
        rows, step = rows + batch * n, step + 1
        shapes[minibatch.shape] = shapes.get(minibatch.shape, 0) + 1

    for n, p in [(n, p) for n in recipe.lengths for p in recipe.widths]:
        one = replace(recipe, lengths=(n,), length_weights=(1.0,), late=2.0, widths=(p,), width_weights=(1.0,), steps_per_draw=2)
        first = draw_minibatches(one, 0, device=device)[0]
        for _ in range(3):
            take(first)
    if device != "cpu":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    print(f"[{name}] ready after {time.monotonic() - begun:.0f} s, {len(shapes)} shapes", flush=True)
    with alone():
        steps = (m for part in rounds(recipe, 0, device=device, lock=lock) for m in part)
        for _ in range(2 if small else recipe.steps_per_round):
            take(next(steps))
        measured(name, steps, take, lambda: (rows, step), device, seconds)


def measured(name, steps, take, count, device, seconds) -> None:  # noqa: ANN001
    if device != "cpu":
        torch.cuda.synchronize()
    begun, (rows, step) = time.monotonic(), count()
    while time.monotonic() - begun < seconds:
        take(next(steps))
    if device != "cpu":
        torch.cuda.synchronize()
    took, (more_rows, more_steps) = time.monotonic() - begun, count()
    memory = torch.cuda.max_memory_allocated() / 2**30 if device != "cpu" else 0
    print(
        f"RATE {name}: {(more_rows - rows) / took / 1e6:.3f} million rows a second, {(more_steps - step) / took:.1f} "
        f"steps a second over {took:.0f} s, {memory:.0f} GiB", flush=True,
    )


def old(device: str, seconds: float) -> None:
    """The training of version 0.2, from a copy of its package."""
    sys.path.insert(0, "old")
    from pfnts.backbones.network.network import CausalPFN
    from pfnts.backbones.network.prior.device_rng import DeviceRng
    from pfnts.backbones.network.training.checkpoints import Progress
    from pfnts.backbones.network.training.minibatches import minibatches
    from pfnts.backbones.network.training.recipe import Recipe
    from pfnts.backbones.network.training.steps import GraphSteps, Steps
    from pfnts.backbones.network.training.train import make_optimisers, set_rates

    small = device == "cpu"
    recipe = replace(
        Recipe(), lengths=(64,) if small else (64, 256, 1024), length_weights=(1.0,) if small else (0.4, 0.3, 0.3), late_length_weights=(1.0,) if small else (0.4, 0.3, 0.3),
        widths=(4,) if small else (4, 10, 20), width_weights=(1.0,) if small else (0.3, 0.4, 0.3), steps_per_draw=4 if small else 16, shapes_at_once=3,
        rows_per_step=512 if small else 65_536, cells_per_step=5_000 if small else 800_000, seconds=1e9,
    )
    network = CausalPFN().to(device)
    optimisers = make_optimisers(network, recipe)
    begun = time.monotonic()
    if small:
        step = Steps(network, optimisers)
    else:
        set_rates(optimisers, recipe, 0.0)
        step = GraphSteps(network, optimisers, compiled=True)
        step.record(recipe.shapes(), rng=DeviceRng(0, device=device), report=lambda _: None)
    set_rates(optimisers, recipe, 0.1)
    if device != "cpu":
        torch.cuda.empty_cache()
    print(f"[old] ready after {time.monotonic() - begun:.0f} s", flush=True)
    rng, for_columns, rows, taken = DeviceRng(0, device=device), DeviceRng(1, device=device), 0, 0

    def take(minibatch) -> None:  # noqa: ANN001
        nonlocal rows, taken
        step(minibatch, for_columns)
        rows, taken = rows + minibatch.X.shape[0] * minibatch.X.shape[1], taken + 1

    with alone():
        steps = minibatches(recipe, rng, Progress())
        for _ in range(2 if small else 2 * recipe.steps_per_draw * recipe.uses):
            take(next(steps))
        measured("old", steps, take, lambda: (rows, taken), device, seconds)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("name")
parser.add_argument("settings", nargs="*")
parser.add_argument("--device", default="cpu")
parser.add_argument("--seconds", type=float, default=10)
options = parser.parse_args()
if options.name == "old":
    old(options.device, options.seconds)
else:
    new(options.name, options.settings, options.device, options.seconds)
