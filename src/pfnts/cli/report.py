"""``pfnts report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfnts.cli.console import console, plain_errors
from pfnts.experiments.report import write_report, write_results


def report(
    runs: Annotated[Path, typer.Argument(help="Folder of finished runs, as `pfnts run --out` leaves it.")],
    out: Annotated[
        Path | None, typer.Option(help="Where it goes; RUNS/report or RUNS/results when left out.")
    ] = None,
    tables_only: Annotated[
        bool,
        typer.Option(
            "--tables-only",
            help="Only what is worth keeping beside code: tables, a picture for each, a README on how they "
            "were made.",
        ),
    ] = False,
    figures: Annotated[
        bool, typer.Option(help="Draw the figures for papers and slides; the page has curves of its own.")
    ] = True,
) -> None:
    """Make tables, figures and a page from finished runs.

    The page, index.html, is one file that needs no network: sortable tables, regret curves with their values
    under the pointer, the paper's numbers beside ours. The same tables lie beside it as markdown, CSV and
    LaTeX, the curves as SVG and PDF. Runs that are missing are shown as missing.
    """
    with plain_errors(ValueError, ImportError, OSError):
        if tables_only:
            page = write_results(runs, out or runs / "results", figures=figures)
        else:
            page = write_report(runs, out, figures=figures)
    console.print(f"The report is in [bold]{page}[/].", soft_wrap=True)
