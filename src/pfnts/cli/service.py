"""``pfnts service``."""

from __future__ import annotations

from pathlib import Path

import typer

from pfnts.cli.console import plain_errors, say
from pfnts.cli.serve import Data, Database, opened

service = typer.Typer(no_args_is_help=True, help="Look after the store of the decision service.")


@service.callback()
def commands() -> None:
    """Look after the store of the decision service."""


@service.command()
def check(data: Data = Path("pfnts-data"), database: Database = None) -> None:
    """Check that every log is complete and matches its decisions' fingerprints; exit status 1 if not."""
    with plain_errors(ValueError, ImportError, OSError, RuntimeError):
        from pfnts.service.check import check as run

        with opened(data, database) as store:
            findings = list(run(store))
    for finding in findings:
        verdict = "consistent" if finding.problem is None else f"NOT consistent: {finding.problem}"
        say(f"{finding.experiment}: {finding.records:,} records, {finding.decisions:,} decisions, {verdict}")
    if not findings:
        say("There is no experiment in the store.")
    if any(finding.problem is not None for finding in findings):
        raise typer.Exit(1)
