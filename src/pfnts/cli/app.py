"""The command line's entry point: every command in a module of its own, listed here."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from pfnts.cli.calibrate import calibrate
from pfnts.cli.console import Commands
from pfnts.cli.demo import demo
from pfnts.cli.evaluate_backbone import evaluate_backbone
from pfnts.cli.info import info, scenarios, weights
from pfnts.cli.ope import ope
from pfnts.cli.options import option
from pfnts.cli.pretrain import pretrain
from pfnts.cli.reproduce import reproduce
from pfnts.cli.run import report, run
from pfnts.cli.service import export, keys, serve, service

app = typer.Typer(
    name="pfnts",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pfnts {version('pfnts')}")
        raise typer.Exit


@app.callback()
def start(
    _version: Annotated[
        bool, option("Print the version.", "--version", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Contextual bandits on tabular data: Thompson sampling with prior-data fitted networks."""
    # For modules of the user's own. At the end, so that no file here stands in for an installed package.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


for command in (
    *(demo, run, report, reproduce, ope, serve, export),
    *(scenarios, calibrate, evaluate_backbone, pretrain, weights, info),
):
    app.command()(command)
app.add_typer(keys, name="keys")
app.add_typer(service, name="service")
