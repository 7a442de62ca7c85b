"""``pfnts pretrain``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from pfnts.backbones.devices import check_device
from pfnts.cli.console import say, terminal
from pfnts.cli.options import option
from pfnts.experiments.files import folder_at
from pfnts.experiments.report.tables import csv_text
from pfnts.files import write_file

if TYPE_CHECKING:
    # At run time the network is imported by the command itself: it brings PyTorch, which takes seconds.
    from pfnts.backbones.network.network import Architecture
    from pfnts.backbones.network.training.checkpoints import Progress
    from pfnts.backbones.network.training.recipe import Recipe


def pretrain(
    out: Annotated[Path, option("Folder for checkpoints, log and weights.")] = Path("runs/pretrain"),
    seconds: Annotated[
        float, option("Time to train for; the learning rate falls to nothing at its end.", min=1)
    ] = 900,
    stop_after: Annotated[
        float | None, option("Stop this time after so many seconds, to go on later.", min=0)
    ] = None,
    device: Annotated[str, option("Where to train, such as cuda; cpu is for trying it out.")] = "cpu",
    begin: Annotated[
        Path | None, option("Weights to begin from, not at random.", exists=True, dir_okay=False)
    ] = None,
    learning_rate: Annotated[
        float, option("The largest learning rate; a third of it to go on from --begin.", min=0)
    ] = 4e-3,
    compiled: Annotated[
        bool, option("Compile on a GPU: two minutes, for long runs.", "--compile/--no-compile")
    ] = True,
    seed: Annotated[int, option("Where the tables come from.", min=0)] = 0,
    rows_per_step: Annotated[
        int | None, option("Rows of all tables of a step; fewer need less memory.", min=64)
    ] = None,
    layers: Annotated[int | None, option("Blocks of the network's in-context stage.", min=1)] = None,
    report_every: Annotated[float, option("Seconds between checkpoints.", min=1)] = 60,
    tiny: Annotated[
        bool, option("A tiny network on tiny tables: minutes on a CPU, of no other use.", "--tiny")
    ] = False,
) -> None:
    """Train the network of the embedded backbone on its synthetic prior.

    Goes on from what is in the folder OUT: after Ctrl-C or --stop-after the same command continues from the
    last checkpoint. At the end OUT/weights.safetensors holds the weights in float16, for
    `pfnts evaluate-backbone embedded --weights` or `EmbeddedBackbone(weights=...)`, and OUT/log.csv the loss,
    the learning rate, the held-out R2 and the coverage of 95 % intervals for the mean at each checkpoint.
    """
    from pfnts.backbones.network.training.train import pretrain as train
    from pfnts.backbones.network.weights import export_weights
    from pfnts.experiments.training_scores import SIZES, training_scores

    check_device(device)
    folder_at(out, name="--out")
    whole, architecture = settings(layers=layers, tiny=tiny)
    adam_rate = whole.adam_rate * learning_rate / whole.learning_rate
    recipe = replace(whole, seconds=seconds, seed=seed, learning_rate=learning_rate, adam_rate=adam_rate)
    if rows_per_step is not None:
        recipe = replace(recipe, rows_per_step=rows_per_step)
    sizes = (16, 64) if tiny else SIZES
    before = so_far(out, architecture)
    if before.seconds >= seconds:
        raise ValueError(
            f"--seconds must exceed the {before.seconds:.0f} s already spent in {out}, got {seconds:g}"
        )
    if before.step:
        say(f"Going on from step {before.step:,} after {before.seconds:,.0f} s.")
    columns = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    try:
        with Bars(*columns, console=terminal, transient=True) as bars:
            bar = bars.add_task("first steps", total=seconds, completed=int(before.seconds))

            def report(row: dict[str, Any]) -> None:
                bars.update(bar, completed=row["seconds"], description=f"step {row['step']:,}")
                say(in_words(row))

            network = train(
                out,
                recipe,
                architecture=architecture,
                device=device,
                begin=begin,
                compiled=compiled,
                stop_after=math.inf if stop_after is None else stop_after,
                score=partial(training_scores, device=device, sizes=sizes),
                report=report,
                prepared=lambda count: bars.update(bar, description=f"recording steps: shape {count}"),
                report_every=report_every,
            )
    except KeyboardInterrupt:
        kept = so_far(out, architecture)
        say(f"Stopped. {kept.step:,} steps are kept in {out}; the same command goes on.")
        raise typer.Exit(130) from None
    after = so_far(out, architecture)
    about = {"steps": str(after.step), "seconds": f"{after.seconds:.0f}", "seed": str(seed)}
    export_weights(network, out / "weights.safetensors", about=about)
    write_log(after.log, out / "log.csv", sizes=sizes)
    written = f"{out}/weights.safetensors ({(out / 'weights.safetensors').stat().st_size / 1e6:.1f} MB)"
    say(f"{after.step:,} steps in {after.seconds:,.0f} s. {written} and {out}/log.csv are written.")


def settings(*, layers: int | None, tiny: bool) -> tuple[Recipe, Architecture]:
    """What to train and how, but for what the other options say."""
    from pfnts.backbones.network.network import Architecture
    from pfnts.backbones.network.training.recipe import Recipe

    if not tiny:
        return Recipe(), Architecture(layers=layers or Architecture().layers)
    recipe = Recipe(
        warmup_steps=10,
        rows_per_step=512,
        lengths=(0, 64),
        length_weights=(0.3, 0.7),
        late_length_weights=(0.3, 0.7),
        widths=(3, 5),
        width_weights=(0.5, 0.5),
        steps_per_draw=4,
        shapes_at_once=2,
    )
    return recipe, Architecture(
        cell=16, cell_heads=2, cell_layers=1, readouts=2, heads=2, keys=1, layers=layers or 1
    )


def so_far(out: Path, architecture: Architecture) -> Progress:
    """Steps, seconds and log of the last checkpoint, which must be of the same network."""
    from pfnts.backbones.network.training.checkpoints import Progress

    path = out / "progress.json"
    if not path.exists():
        return Progress()
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        network, progress = kept["architecture"], Progress(**kept["progress"])
    except (ValueError, KeyError, TypeError) as error:
        said = f"{path} is one: {error}; delete it"
        raise ValueError(f"--out must not hold a damaged checkpoint, {said}") from error
    if network != asdict(architecture):
        raise ValueError(f"--out must be another folder: {out} holds a network of other sizes, {network}")
    return progress


def in_words(row: dict[str, Any]) -> str:
    """One line for a checkpoint."""
    heldout = ((name, " ".join(f"{x:.2f}" for x in found)) for name, found in _heldout(row).items())
    return (
        f"{row['seconds']:,.0f} s, step {row['step']:,}: loss {row['loss']:.4f}, learning rate "
        f"{row['learning_rate']:.1e}, held-out {'; '.join(map(' '.join, heldout))}"
    )


def write_log(log: Sequence[dict[str, Any]], path: Path, *, sizes: Sequence[int]) -> None:
    """Write one row for each checkpoint; held-out scores as one column for each and size."""
    flat: list[dict[str, Any]] = []
    for row in log:
        heldout = _heldout(row)
        scores = {f"{name} at {n}": x for name in heldout for n, x in zip(sizes, heldout[name], strict=True)}
        flat.append({key: value for key, value in row.items() if key not in heldout} | scores)
    write_file(path, csv_text(flat, list(flat[0]), digits=9))


def _heldout(row: dict[str, Any]) -> dict[str, list[float]]:
    return {name: value for name, value in row.items() if isinstance(value, list)}
