"""``pfnts evaluate-backbone``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pfnts import backbones
from pfnts.backbones import Backbone
from pfnts.backbones.devices import check_device
from pfnts.cli.console import say, show, terminal, whole_numbers
from pfnts.cli.options import option
from pfnts.experiments import BackboneScore, score_backbone
from pfnts.experiments.backbone_scores import SIZES, planned
from pfnts.experiments.files import folder_at
from pfnts.experiments.heldout import KNOWN, TABLES, HeldOut
from pfnts.experiments.report.tables import Table, csv_text, markdown
from pfnts.files import write_file

COLUMNS = {
    "function": ("function", ""), "size": ("n", ""), "r2": ("R2", ".3f"), "r2_error": ("±", ".3f"),
    "reference": ("ref.", ".3f"), "crps": ("CRPS", ".3f"), "least_crps": ("least", ".3f"),
    "coverage": ("90 %", ".2f"), "mean_coverage": ("95 % mean", ".3f"), "level_drift": ("level", "+.2f"),
    "shape_drift": ("shape", "+.2f"), "seconds": ("s", ".2f"),
}  # fmt: skip
"""Of a score: its heading and its digits."""
NOTES = (
    "R2: share of the latent mean's variance that is explained, averaged over draws; ±: its standard error.",
    "ref.: R2 of ridge with the right prior on linear functions, of TabPFN v2 on friedman1-10 at n = 200, of "
    "the best of forest, boosting, ridge and five neighbours on a real table.",
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
        option(
            f"Score on these only, commas between them; also {', '.join(TABLES)}, which come with "
            "scikit-learn. All functions when left out."
        ),
    ] = None,
    sizes: Annotated[str, option("Rows of a history, commas between them.")] = ",".join(map(str, SIZES)),
    draws: Annotated[int, option("Fresh histories for each function and size.", min=1)] = 10,
    seed: Annotated[int, option("The same seed gives the same histories.", min=0)] = 42,
    out: Annotated[Path | None, option("Write the scores to OUT.csv and, as a table, to OUT.md.")] = None,
    device: Annotated[
        str | None, option("Where to compute, such as cuda; not for linear, which has no choice.")
    ] = None,
    weights: Annotated[
        Path | None,
        option(
            "Other weights than the default: for embedded a file that **pfnts pretrain** wrote, for "
            "tabicl or tabpfn a checkpoint of its regressor."
        ),
    ] = None,
) -> None:
    """Score a backbone on held-out functions.

    Each history is drawn afresh and shown to the backbone from its first row. The functions are Friedman's
    three with 5, 10 and 20 features, linear functions, sums of trees, steps, and rewards of 0 or 1; some come
    again as NAME-chosen, with rows that a policy chose and queries about anybody, as a bandit has them. On
    two cores the embedded backbone takes about an hour for all of it, and a few minutes with --sizes
    16,64,256; tabicl and tabpfn want a GPU.
    """
    if out is not None:
        folder_at(out.parent, name="the folder of --out")
    backbone = _loaded(name, device=device, weights=weights)
    chosen, rows = None if functions is None else functions.split(","), whole_numbers(sizes)
    with _bar(planned(chosen, rows, draws=draws), draws) as hear:
        asked = score_backbone(backbone, functions=chosen, sizes=rows, draws=draws, seed=seed, listener=hear)
        scores = list(asked)
    table = score_table(scores, title=f"{name}, {draws} draws, seed {seed}")
    show(table)
    for note in NOTES:
        say(note, style="dim")
    if out is not None:
        numbers = csv_text(map(vars, scores), [field.name for field in fields(BackboneScore)], digits=6)
        write_file(out.with_name(f"{out.name}.csv"), numbers)
        functions_scored = dict.fromkeys(row.function for row in scores)
        listed = (f"- {each}: {KNOWN[each].description}" for each in functions_scored)
        about = [markdown(table), *(f"{note}\n" for note in NOTES), *listed, ""]
        write_file(out.with_name(f"{out.name}.md"), "\n".join(about))
        say(f"Written to {out}.csv and {out}.md.")


def score_table(scores: Sequence[BackboneScore], *, title: str) -> Table:
    """A row for each function and size; nothing for what is unknown."""
    listed = [[(getattr(row, name), digits) for name, (_, digits) in COLUMNS.items()] for row in scores]
    # Only NaN is unlike itself.
    rows = [["" if x is None or x != x else f"{x:{digits}}" for x, digits in row] for row in listed]
    return Table.of(title, tuple(heading for heading, _ in COLUMNS.values()), rows)


@contextmanager
def _bar(tasks: Sequence[tuple[HeldOut, int]], draws: int) -> Iterator[Callable[[HeldOut, int, int], None]]:
    """A bar that is to move evenly: by about how long a draw takes, in no unit."""

    def work(function: HeldOut, size: int) -> float:
        return (200 + size) * (20 + function.n_features)

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal, transient=True) as progress:
        bar, before = progress.add_task("", total=draws * sum(work(*task) for task in tasks)), 0.0

        def listener(function: HeldOut, size: int, draw: int) -> None:
            nonlocal before
            shown = f"{function.name}, {size:,} rows, draw {draw + 1}"
            progress.update(bar, advance=before, description=shown)
            before = work(function, size)

        yield listener


def _loaded(name: str, *, device: str | None, weights: Path | None) -> Backbone:
    given: dict[str, Any] = {"device": device, "weights": weights}
    options = {option: value for option, value in given.items() if value is not None}
    if device is not None:
        check_device(device)
    try:
        return backbones.load(name, **options)
    except TypeError as error:
        raise ValueError(f"--{' and --'.join(options)} must be left out for the backbone {name!r}") from error
