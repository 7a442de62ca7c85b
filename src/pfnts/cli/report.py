"""``pfnts report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfnts.cli.console import say
from pfnts.cli.options import option
from pfnts.experiments.report import write_report


def report(
    runs: Annotated[Path, typer.Argument(help="Folder of finished runs, as `pfnts run --out` leaves it.")],
    out: Annotated[Path | None, option("Where it goes; RUNS/report when left out.")] = None,
    figures: Annotated[
        bool, option("Draw the figures for papers and slides; the page has curves of its own.")
    ] = True,
) -> None:
    """Make tables, figures and a page from finished runs.

    The page, index.html, is one file that needs no network: sortable tables, regret curves with their values
    under the pointer. The same tables lie beside it as markdown, CSV and LaTeX, the curves as SVG and PDF.
    Runs that are missing are shown as missing, and damaged ones are named. The paper's numbers stand beside
    ours in the report of **pfnts reproduce**.
    """
    page = write_report(runs, out, figures=figures)
    say(f"The report is in {page}.")
