"""Run one piece of ``pfnts pretrain`` where only PyTorch, SciPy and safetensors are installed.

    python benchmarks/training_piece.py --state runs/shipped --out $OUT --stop-after 480

The state in --state, if there is one, is copied to --out and continued there. Every file in --out is below
16 MB.
"""

from __future__ import annotations

import argparse
import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

from pfnts.backbones.network.training.recipe import read_recipe
from pfnts.backbones.network.training.state import read_progress
from pfnts.backbones.network.training.train import pretrain
from pfnts.backbones.network.weights import export_weights
from pfnts.experiments.training_scores import training_scores


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", default="shipped")
    parser.add_argument("--state", type=Path, required=True, help="folder with the state of the last piece")
    parser.add_argument("--out", type=Path, required=True, help="folder for the state of this one")
    parser.add_argument("--steps", type=int, help="number of steps, in place of the recipe's")
    parser.add_argument("--stop-after", type=float, default=480)
    parser.add_argument("--report-every", type=float, default=120)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    recipe = read_recipe(options.recipe)
    recipe = replace(recipe, steps=options.steps or recipe.steps)
    options.out.mkdir(parents=True, exist_ok=True)
    for path in [*options.state.glob("state-*.safetensors"), *options.state.glob("progress.json")]:
        shutil.copy(path, options.out)
    network = pretrain(
        options.out,
        recipe,
        device=options.device,
        compiled=not options.no_compile,
        stop_after=options.stop_after,
        score=partial(training_scores, device=options.device),
        report=lambda row: print(json.dumps(row), flush=True),
        report_every=options.report_every,
    )
    progress = read_progress(options.out, recipe)
    about = {"recipe": options.recipe, "steps": str(progress.step), "rows": str(progress.rows)}
    export_weights(network, options.out / "weights.safetensors", about=about)
    print(f"{progress.step:,} of {recipe.steps:,} steps, {progress.rows:,} rows in {progress.seconds:,.0f} s")


if __name__ == "__main__":
    main()
