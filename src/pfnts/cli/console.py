"""What the commands print in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.table import Table

from pfnts.experiments import CorruptRunError, FinalRegret

console = Console()
errors = Console(stderr=True)


@contextmanager
def plain_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Print an error of these kinds as one sentence, instead of a traceback, and leave with status 2."""
    caught: tuple[type[Exception], ...] = (CorruptRunError, *kinds)
    try:
        yield
    except caught as error:
        errors.print(f"[bold red]error:[/] {error}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error


def regret_table(rows: Sequence[FinalRegret]) -> Table:
    """Final regret by scenario and policy."""
    compared = any(row.published is not None for row in rows)
    table = Table(title=f"Final regret after {rows[0].horizon:,} rounds, mean ± standard error")
    table.add_column("scenario")
    table.add_column("policy")
    table.add_column("runs", justify="right")
    table.add_column("regret", justify="right")
    if compared:
        table.add_column("the paper's PFN-TS", justify="right")
    table.add_column("seconds a run", justify="right")
    for row in rows:
        cells = [row.scenario, row.policy.label, str(row.replications), regret(row)]
        if compared:
            cells.append("" if row.published is None else f"{row.published:,.1f}")
        table.add_row(*cells, f"{row.seconds:,.1f}")
    return table


def regret(row: FinalRegret) -> str:
    """Mean and, where there is one, standard error."""
    if math.isnan(row.standard_error):
        return f"{row.mean:,.1f}"
    return f"{row.mean:,.1f} ± {row.standard_error:,.1f}"
