"""``pfnts evaluate-backbone``."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from pfnts import backbones
from pfnts.backbones import Backbone
from pfnts.cli.console import console, plain_errors
from pfnts.cli.devices import check_device
from pfnts.experiments import BackboneScore, score_backbone
from pfnts.experiments.backbone_scores import SIZES, HeldOut, planned
from pfnts.experiments.heldout_functions import FUNCTIONS
from pfnts.experiments.real_tables import TABLES

HEADINGS = ("n", "R2", "±", "ref.", "CRPS", "least", "90 %", "95 % mean", "level", "shape", "s")
NOTES = (
    "R2: share of the latent mean's variance that is explained, averaged over draws; ±: its standard error.",
    "ref.: R2 of ridge with the right prior on linear-10, of TabPFN v2 on friedman1-10 at n = 200, of the "
    "best of forest, boosting, ridge and five neighbours on a real table.",
    "CRPS at fresh rewards; least: of their true distribution. 90 %: share of them in the 90 % interval.",
    "95 % mean: share of latent means in the 95 % interval of the mean (on a real table: of targets).",
    "level, shape: drift of the predictive means from n / 2 to n rows, in [-1, 1], near 0 for a martingale: "
    "mean increment over its root mean square, correlation of increment and earlier prediction.",
    "s: seconds to read a history and answer 200 queries.",
)


def evaluate_backbone(
    name: Annotated[
        str, typer.Argument(help=f"The backbone: {', '.join(backbones.names())}. See **pfnts info**.")
    ] = "embedded",
    functions: Annotated[
        str | None,
        typer.Option(
            help=f"Score on these only, commas between them; also {', '.join(TABLES)}, which come with "
            "scikit-learn. All functions when left out."
        ),
    ] = None,
    sizes: Annotated[str, typer.Option(help="Rows of a history, commas between them.")] = ",".join(
        map(str, SIZES)
    ),
    draws: Annotated[int, typer.Option(min=1, help="Fresh histories for each function and size.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same histories.")] = 42,
    out: Annotated[
        Path | None, typer.Option(help="Write the scores to OUT.csv and, as a table, to OUT.md.")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="Where to compute, such as cuda; not for linear, which has no choice."),
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            help="Other weights than the default: for embedded a file that **pfnts pretrain** wrote, for "
            "tabicl or tabpfn a checkpoint of its regressor."
        ),
    ] = None,
) -> None:
    """Score a backbone on held-out functions.

    Each history is drawn afresh and shown to the backbone from its first row. The functions are Friedman's
    three with 5, 10 and 20 features, linear functions, sums of trees, steps, and rewards of 0 or 1. On two
    cores the embedded backbone takes about an hour for all of it, and a few minutes with --sizes 16,64,256;
    tabicl and tabpfn want a GPU.
    """
    with plain_errors(ValueError, ImportError):
        backbone = _loaded(name, device=device, weights=weights)
        scores = _scored_with_bar(
            backbone,
            functions=None if functions is None else functions.split(","),
            sizes=_numbers(sizes),
            draws=draws,
            seed=seed,
        )
    console.print(score_table(scores, title=f"{name}, {draws} draws, seed {seed}"))
    for note in NOTES:
        console.print(note, style="dim")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_csv(scores, out.with_name(f"{out.name}.csv"))
        markdown = out.with_name(f"{out.name}.md")
        markdown.write_text(
            score_markdown(scores, title=f"{name}, {draws} draws, seed {seed}"), encoding="utf-8"
        )
        console.print(f"Written to [bold]{out}.csv[/] and [bold]{out}.md[/].")


def score_table(scores: Sequence[BackboneScore], *, title: str) -> Table:
    """Scores for a terminal."""
    table = Table(title=title, box=SIMPLE_HEAD, padding=0)
    table.add_column("function", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for i, row in enumerate(scores):
        first = i == 0 or scores[i - 1].function != row.function
        if first and i:
            table.add_section()
        table.add_row(row.function if first else "", *_cells(row))
    return table


def score_markdown(scores: Sequence[BackboneScore], *, title: str) -> str:
    """Scores as a Markdown page."""
    known: dict[str, HeldOut] = {**FUNCTIONS, **TABLES}
    lines = [f"# {title}", "", *(f"{note}\n" for note in NOTES)]
    lines += [f"| function | {' | '.join(HEADINGS)} |", "|---" + "|---:" * len(HEADINGS) + "|"]
    lines += [f"| {row.function} | {' | '.join(_cells(row))} |" for row in scores]
    lines += [
        "",
        *(f"- {name}: {known[name].description}" for name in dict.fromkeys(s.function for s in scores)),
    ]
    return "\n".join(lines) + "\n"


def write_csv(scores: Sequence[BackboneScore], path: Path) -> None:
    """Write one row for each function and size."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(BackboneScore)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in scores)


def _cells(row: BackboneScore) -> list[str]:
    return [
        str(row.size),
        f"{row.r2:.3f}",
        "" if math.isnan(row.r2_error) else f"{row.r2_error:.3f}",
        "" if row.reference is None else f"{row.reference:.3f}",
        f"{row.crps:.3f}",
        "" if math.isnan(row.least_crps) else f"{row.least_crps:.3f}",
        f"{row.coverage:.2f}",
        "" if math.isnan(row.mean_coverage) else f"{row.mean_coverage:.3f}",
        f"{row.level_drift:+.2f}",
        f"{row.shape_drift:+.2f}",
        f"{row.seconds:.2f}",
    ]


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"--sizes must be whole numbers with commas between them, got {text!r}") from None


def _scored_with_bar(
    backbone: Backbone, *, functions: Sequence[str] | None, sizes: Sequence[int], draws: int, seed: int
) -> list[BackboneScore]:
    tasks = planned(functions, sizes, draws=draws)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=draws * sum(_work(function, size) for function, size in tasks))
        before = 0.0

        def listener(function: HeldOut, size: int, draw: int) -> None:
            nonlocal before
            progress.update(
                bar, advance=before, description=f"{function.name}, {size:,} rows, draw {draw + 1}"
            )
            before = _work(function, size)

        scores = score_backbone(
            backbone, functions=functions, sizes=sizes, draws=draws, seed=seed, listener=listener
        )
        return list(scores)


def _work(function: HeldOut, size: int) -> float:
    """About how long a draw takes, in no unit: the bar is to move evenly."""
    return (200 + size) * (20 + function.n_features)


def _loaded(name: str, *, device: str | None, weights: Path | None) -> Backbone:
    given: dict[str, Any] = {"device": device, "weights": weights}
    options = {option: value for option, value in given.items() if value is not None}
    if device is not None:
        check_device(device)
    try:
        return backbones.load(name, **options)
    except TypeError as error:
        raise ValueError(f"--{' and --'.join(options)} must be left out for the backbone {name!r}") from error
