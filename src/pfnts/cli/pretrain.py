"""``pfnts pretrain``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from pfnts.backbones.devices import check_device
from pfnts.cli.console import say, terminal
from pfnts.cli.options import option
from pfnts.experiments.files import folder_at
from pfnts.experiments.report.tables import csv_text
from pfnts.files import write_file


def pretrain(
    recipe: Annotated[
        str, option("A recipe of the package (shipped, tiny) or the path of a TOML file.")
    ] = "shipped",
    out: Annotated[Path, option("Folder for state, log and weights.")] = Path("runs/pretrain"),
    resume: Annotated[bool, option("Continue the run in OUT, if it holds one.", "--resume")] = False,
    stop_after: Annotated[float | None, option("Stop after so many seconds, to resume later.", min=0)] = None,
    device: Annotated[str, option("Device to train on, such as cuda; cpu is for trying it out.")] = "cpu",
    steps: Annotated[int | None, option("Number of steps, in place of the recipe's.", min=1)] = None,
    seed: Annotated[int | None, option("Seed of all randomness, in place of the recipe's.", min=0)] = None,
    compiled: Annotated[
        bool, option("Compile on a GPU: two minutes, for long runs.", "--compile/--no-compile")
    ] = True,
    report_every: Annotated[float, option("Seconds between rows of the log.", min=0)] = 60,
) -> None:
    """Train the network of the embedded backbone on its synthetic prior, from random weights.

    A run stops at its last step, after --stop-after seconds, or by Ctrl-C; --resume continues it from the
    last state in OUT, with the same tables as a run that was not interrupted. OUT/weights.safetensors holds
    the averaged weights in float16, for `pfnts evaluate-backbone embedded --weights` or
    `EmbeddedBackbone(weights=...)`, and OUT/log.csv the rows seen, seconds, loss, learning rate and held-out
    scores.
    """
    # Imported here: PyTorch takes seconds.
    from pfnts.backbones.network.training.recipe import read_recipe
    from pfnts.backbones.network.training.state import read_progress
    from pfnts.backbones.network.training.train import pretrain as train
    from pfnts.backbones.network.weights import export_weights
    from pfnts.experiments.training_scores import SIZES, training_scores

    check_device(device)
    folder_at(out, name="--out")
    settings = read_recipe(recipe)
    settings = replace(settings, steps=steps or settings.steps, seed=settings.seed if seed is None else seed)
    sizes = tuple(n for n in SIZES if n <= max(settings.lengths))
    before = read_progress(out, settings)
    if before.step and not resume:
        raise ValueError(
            f"--out must be a folder without a run, {out} holds one of {before.step:,} steps; "
            "add --resume to continue it"
        )
    if before.step >= settings.steps:
        raise ValueError(
            f"--steps must exceed the {before.step:,} steps of the run in {out}, got {settings.steps:,}"
        )
    if before.step:
        say(f"Resuming at step {before.step:,} of {settings.steps:,}.")
    columns = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    try:
        with Bars(*columns, console=terminal, transient=True) as bars:
            bar = bars.add_task("first steps", total=settings.steps, completed=before.step)

            def report(row: dict[str, Any]) -> None:
                bars.update(bar, completed=row["step"], description=f"step {row['step']:,}")
                say(in_words(row))

            network = train(
                out,
                settings,
                device=device,
                compiled=compiled,
                stop_after=math.inf if stop_after is None else stop_after,
                score=partial(training_scores, device=device, sizes=sizes),
                report=report,
                report_every=report_every,
            )
    except KeyboardInterrupt:
        kept = read_progress(out, settings)
        say(f"Stopped. {out} holds {kept.step:,} steps; --resume continues.")
        raise typer.Exit(130) from None
    after = read_progress(out, settings)
    about = {"recipe": recipe, "steps": str(after.step), "rows": str(after.rows), "seed": str(settings.seed)}
    export_weights(network, out / "weights.safetensors", about=about)
    write_log(after.log, out / "log.csv", sizes=sizes)
    say(
        f"{after.step:,} of {settings.steps:,} steps, {after.rows:,} rows in {after.seconds:,.0f} s. "
        f"{out}/weights.safetensors and {out}/log.csv are written."
    )


def in_words(row: dict[str, Any]) -> str:
    """Return one line for a row of the log."""
    scores = ((name, " ".join(f"{x:.3f}" for x in row[name])) for name in ("mean R2", "mean CRPS"))
    return (
        f"step {row['step']:,}, {row['rows'] / 1e6:,.1f} million rows, {row['seconds']:,.0f} s: "
        f"loss {row['loss']:.4f}, held-out {', '.join(map(' '.join, scores))}"
    )


def write_log(log: Sequence[dict[str, Any]], path: Path, *, sizes: Sequence[int]) -> None:
    """Write one line for each row of the log, with a column for each held-out score and size."""
    flat: list[dict[str, Any]] = []
    for row in log:
        heldout = {name: value for name, value in row.items() if isinstance(value, list)}
        scores = {f"{name} at {n}": x for name in heldout for n, x in zip(sizes, heldout[name], strict=True)}
        flat.append({key: value for key, value in row.items() if key not in heldout} | scores)
    write_file(path, csv_text(flat, list(flat[0]), digits=9))
