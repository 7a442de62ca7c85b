"""What the commands print in common, and how."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import rich.table
import typer
from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from pfnts.experiments import FailedRunsError, Job, Run, RunStore, summarize
from pfnts.experiments.report.tables import Table, spread

_WHOLE = 30
"""Characters of a number up to which three of them have room beside a name."""
_MANY = 8
"""Columns beyond which lines between them have no room."""


class PlainConsole(Console):
    """A console to which a text is a text: names may hold brackets, colons and codes for terminals."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text that has no markup and moves no cursor."""
        options.update(markup=False, emoji=False, highlight=False)
        return super().render_str(visible(text), **options)


terminal = PlainConsole()
errors = PlainConsole(stderr=True)


def visible(text: str) -> str:
    """Show control characters by their codes instead of sending them to the terminal.

    Examples
    --------
    >>> visible("red \\x1b[31m, two\\nlines")
    'red \\\\x1b[31m, two\\nlines'
    """
    shown = (c if c.isprintable() or c in "\n\t " else c.encode("unicode_escape").decode() for c in text)
    return "".join(shown)


def say(text: str, *, style: str = "") -> None:
    """Print a sentence, never broken by us: names and paths can be copied from it."""
    terminal.print(Text(visible(text), style=style), soft_wrap=True)


def whole_numbers(text: str) -> list[int]:
    """Read --sizes."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"--sizes must be whole numbers with commas between them, got {text!r}") from None


class Commands(TyperGroup):
    """Commands that answer a mistake with a sentence and status 2, and not with a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Call the command that was asked for."""
        with plain_errors(ValueError, ImportError, OSError):
            return super().invoke(ctx)


@contextmanager
def plain_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Print an error of these kinds as one sentence and leave with status 2."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):  # leaving is no mistake, nor is a reader who has seen enough
        raise
    except kinds as error:
        reason = str(error)
        if isinstance(error, OSError):
            named = error.filename2 or error.filename  # of a rename the second is the one that was asked for
            remedy = "; make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) and not named else ""
            reason = f"{error.strerror or error}{f': {named}' if named else ''}{remedy}"
        errors.print(Text.assemble(("error: ", "bold red"), visible(reason)), soft_wrap=True)
        raise typer.Exit(2) from error


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings as sentences, without the line of code that gave them, or its argument."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        say(message.partition("; name them in drop=")[0])


@contextmanager
def stoppable(jobs: Sequence[Job], store: RunStore) -> Iterator[None]:
    """Answer Ctrl-C by saying what is kept and how to go on, and leave with status 130."""
    try:
        yield
    except KeyboardInterrupt:
        kept = sum(job in store for job in jobs)
        nouns = f"{jobs[0].spec.noun}s" if jobs else "runs"
        say(f"Stopped. {kept} of {len(jobs)} {nouns} are kept in {store.root}; the same command goes on.")
        raise typer.Exit(130) from None


def leave_with_failures(error: FailedRunsError | None) -> None:
    """Print which runs failed, and where, to the end of standard error, and leave with status 1."""
    if error is None:
        return
    for failure in error.failures:
        spec = failure.job.spec
        errors.print(Text.assemble(("failed: ", "bold red"), visible(spec.title)), soft_wrap=True)
        errors.print(str(spec.describe()), soft_wrap=True, style="dim")
        errors.print(failure.traceback.rstrip() or failure.reason, soft_wrap=True)
    count = len(error.failures)
    them = "1 run failed and nothing of it" if count == 1 else f"{count} runs failed and nothing of them"
    errors.print(f"{them} is kept; all others are. The same command tries again.", soft_wrap=True)
    raise typer.Exit(1)


def show(table: Table) -> None:
    """Print a table; what is too wide is folded, never cut off, and an interval stands below its value."""
    many = len(table.header) > _MANY
    box = SIMPLE_HEAD if many else HEAVY_HEAD
    shown = rich.table.Table(title=visible(table.caption), box=box, padding=(0, int(not many)))
    for i, heading in enumerate(table.header):
        # Long names give way first, and numbers only where they are very long themselves.
        whole = i >= table.text_columns and all(len(row[i].text) <= _WHOLE for row in table.rows)
        justify: Any = "left" if i < table.text_columns else "right"
        shown.add_column(heading, justify=justify, overflow="fold", no_wrap=whole)
    for row in table.rows:
        shown.add_row(*(cell.text.replace(" [", "\n[") if i else cell.text for i, cell in enumerate(row)))
    terminal.print(shown)


def regret_table(runs: Sequence[Run]) -> Table:
    """Final regret by scenario and policy, after as many rounds as were played."""
    listed = [
        (row.scenario, row.policy.label, str(row.replications), spread(row.mean, row.standard_error),
         f"{row.seconds:,.1f}")
        for row in summarize(runs)
    ]  # fmt: skip
    rounds = [run.result.horizon for run in runs]
    after = " to ".join(dict.fromkeys(f"{end:,}" for end in (min(rounds), max(rounds))))
    caption = f"Final regret after {after} rounds, mean ± standard error"
    return Table.of(caption, ("scenario", "policy", "runs", "regret", "seconds a run"), listed, words=2)
