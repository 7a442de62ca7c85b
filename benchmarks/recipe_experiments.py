"""Train variants of the network from nothing on the same minibatches, and score them on held-out functions.

Every minibatch trains one step of each variant, so they differ by nothing but their settings. A variant with
another prior has minibatches of its own. Milliseconds of a step are those of the variant alone.

    python benchmarks/recipe_experiments.py --device cuda --seconds 180 --out runs/width \\
        "base" "narrow: architecture.cell_layers=1" "slow: learning_rate=2e-3"
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from dataclasses import asdict, replace
from functools import reduce
from itertools import chain
from operator import getitem
from pathlib import Path
from typing import Any

import torch

from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.training.minibatches import rounds
from pfnts.backbones.network.training.recipe import Recipe, read_recipe, recipe_from_dict
from pfnts.backbones.network.training.train import make_learner
from pfnts.experiments.training_scores import SIZES, training_scores

SCORED = (
    *("friedman1-5", "friedman1-10", "friedman2-5", "friedman3-5", "linear-10", "bart-4", "steps-10"),
    *("binary-5", "binary-rare-5", "linear-10-chosen", "friedman1-5-chosen", "bart-4-chosen"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("variants", nargs="+", help="name, or name: setting=value, ...")
    parser.add_argument("--recipe", default="benchmarks/small.toml")
    parser.add_argument(
        "--seconds", type=float, default=180, help="time to train, after which the rate is zero"
    )
    parser.add_argument("--scores", type=int, default=2, help="how often to score")
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    begun, device = time.monotonic(), options.device
    base = read_recipe(options.recipe)
    recipes = dict(variant(each, base) for each in options.variants)
    lock = threading.Lock()
    learners = {
        name: make_learner(recipe, device=device, compiled=False, lock=lock)
        for name, recipe in recipes.items()
    }
    spent, rows, step, log = dict.fromkeys(learners, 0.0), 0, 0, []
    loss_of = {name: torch.zeros((), device=device) for name in learners}
    at = [options.seconds * (i + 1) / options.scores for i in range(options.scores)]
    rng = DeviceRng(base.seed, device=device)
    # Variants with one prior share minibatches.
    streams = {
        prior: chain.from_iterable(rounds(replace(base, prior=prior), 0, device=device, lock=lock))
        for prior in {recipe.prior for recipe in recipes.values()}
    }
    while at:
        elapsed = time.monotonic() - begun
        drawn = {prior: next(stream) for prior, stream in streams.items()}
        for name, learner in learners.items():
            minibatch = drawn[recipes[name].prior]
            batch, n, features = minibatch.X.shape
            identity = rng.normal(batch, features, base.architecture.identity)
            learner.schedule(
                step if step < base.warmup else round(base.steps * min(1.0, elapsed / options.seconds))
            )
            loss = learner.step(minibatch, identity)
            loss_of[name] = loss if step == 0 else torch.lerp(loss_of[name], loss, 0.01)
        step, rows = step + 1, rows + batch * n
        if elapsed >= at[0]:
            at.pop(0)
            for name, learner in learners.items():
                scores = training_scores(
                    learner.average, device=device, draws=options.draws, functions=SCORED
                )
                spent[name] = milliseconds(learner, minibatch, identity)
                parameters = sum(p.numel() for p in learner.network.parameters())
                log.append(
                    {
                        "variant": name,
                        "parameters": parameters,
                        "step": step,
                        "rows": rows,
                        "seconds": round(time.monotonic() - begun),
                        "loss": round(float(loss_of[name]), 4),
                        **scores,
                    }
                )
            (options.out / "log.json").write_text(json.dumps(log))
            print_table(log[-len(learners) :])
    print(
        f"rate of a step at {tuple(minibatch.X.shape)}, ms: { ({k: round(v, 1) for k, v in spent.items()}) }"
    )
    for name, learner in learners.items():
        torch.save(
            {k: v.half().cpu() for k, v in learner.average.state_dict().items()}, options.out / f"{name}.pt"
        )


def variant(text: str, base: Recipe) -> tuple[str, Recipe]:
    """Return the name and recipe of a variant such as ``wide: architecture.cell=96, learning_rate=2e-3``."""
    name, _, rest = text.partition(":")
    values = asdict(base)
    for each in filter(None, (part.strip() for part in rest.split(","))):
        key, _, value = each.partition("=")
        *parents, last = key.split(".")
        reduce(getitem, parents, values)[last] = json.loads(value)
    return name.strip(), recipe_from_dict(values)


def milliseconds(learner: Any, minibatch: Any, identity: Any, *, reps: int = 5) -> float:
    """Return the time of one step; its learning rate is zero."""
    for rate in learner.rates:
        rate.zero_()
    if minibatch.X.is_cuda:
        torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(reps):
        learner.step(minibatch, identity)
    if minibatch.X.is_cuda:
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begun) / reps


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print one line for each variant: CRPS and R2 of the mean, averaged over functions, at each size."""
    sizes = " ".join(f"{n:>7}" for n in SIZES)
    print(f"step {rows[0]['step']:,}, {rows[0]['rows'] / 1e6:.1f} million rows, {rows[0]['seconds']} s")
    print(f"{'variant':16} {'params':>9} {'loss':>7}  CRPS at {sizes}   R2 at {sizes}")
    for row in rows:
        crps, r2 = (" ".join(f"{x:7.4f}" for x in row[f"mean {name}"]) for name in ("CRPS", "R2"))
        print(
            f"{row['variant']:16} {row['parameters']:9,} {row['loss']:7.4f}          {crps}         {r2}",
            flush=True,
        )


if __name__ == "__main__":
    main()
