"""What the commands print in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pfnts.experiments import CorruptRunError, FailedRunsError, FinalRegret, RunSpec, RunStore

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


@contextmanager
def stoppable(specs: Sequence[RunSpec], store: RunStore) -> Iterator[None]:
    """Answer Ctrl-C by saying what is kept and how to go on, and leave with status 130."""
    try:
        yield
    except KeyboardInterrupt:
        planned = set(specs)
        kept = sum(spec in store for spec in planned)
        console.print(
            f"Stopped. {kept} of {len(planned)} runs are kept in {store.root}; the same command goes on."
        )
        raise typer.Exit(130) from None


def explain_failures(error: FailedRunsError) -> None:
    """Print which runs failed, and where, to the end of standard error."""
    for failure in error.failures:
        errors.print(f"[bold red]failed:[/] {escape(failure.spec.title)}", highlight=False, soft_wrap=True)
        errors.print(str(failure.spec.describe()), markup=False, highlight=False, soft_wrap=True, style="dim")
        text = failure.traceback.rstrip() or failure.reason
        errors.print(text, markup=False, highlight=False, soft_wrap=True)
    count = len(error.failures)
    them = "1 run failed and nothing of it" if count == 1 else f"{count} runs failed and nothing of them"
    errors.print(
        f"{them} is kept; all others are. The same command tries again.", highlight=False, soft_wrap=True
    )


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
