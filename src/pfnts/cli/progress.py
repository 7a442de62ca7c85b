"""How jobs come along: bars in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing, nullcontext
from functools import partial

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from pfnts.cli.console import terminal, visible
from pfnts.experiments import FailedRunsError, Job, Run, RunStore, run_all
from pfnts.experiments.jobs import Engine, Failure

_LINE_EVERY = 30.0
"""Seconds between lines about what is under way, where there is no terminal."""


def finish_all(
    jobs: Sequence[Job], *, store: RunStore | None = None, engine: Engine | None = None
) -> tuple[list[Run], FailedRunsError | None]:
    """Do what is not done, with bars; give back the runs in the order of the jobs, and what failed."""
    waiting = {job.spec: job for job in jobs if store is None or job not in store}
    if jobs and store is not None:
        nouns = f"{len(jobs)} {jobs[0].spec.noun}{'' if len(jobs) == 1 else 's'}"
        terminal.print(f"{nouns}, of which {len(jobs) - len(waiting)} were finished before.")
    display, found, failures = _Display(list(waiting.values())), {}, None
    made = run_all(jobs, store=store, engine=engine, listener=display.hear, on_failure=display.fail)
    with display.bars if terminal.is_terminal else nullcontext(), closing(made) as runs:
        try:
            for run in runs:
                found[run.spec] = run
                if run.spec in waiting:
                    display.finish(waiting[run.spec], run)
        except FailedRunsError as error:
            failures = error
    # Runs come in the order in which they end, which is not always the same.
    return [found[job.spec] for job in jobs if job.spec in found], failures


class _Display:
    """A line for each job that ends; of those under way bars in a terminal, elsewhere a line at times."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        column = partial(Column, no_wrap=True)
        self.bars = Progress(
            # In a narrow terminal the name of a run gives way, not its numbers.
            TextColumn("{task.description}", markup=False, table_column=column(overflow="ellipsis", ratio=1)),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[state]}", markup=False, table_column=column(min_width=24)),
            TimeRemainingColumn(table_column=column(min_width=7)),
            console=terminal,
            transient=True,
            expand=True,
        )
        self._ended, self._total = 0, len(jobs)
        self._noun = f"{jobs[0].spec.noun}s" if jobs else "runs"
        steps, state = sum(job.spec.steps for job in jobs), f"0/{self._total} {self._noun}"
        self._all = self.bars.add_task(f"all {self._noun}", total=steps, state=state)
        self._said: dict[Job, tuple[TaskID, int, float]] = {}
        self._printed = time.monotonic()

    def hear(self, job: Job, steps: int, value: float) -> None:
        if job not in self._said:
            name = visible(job.spec.title).replace("\n", " ")
            self._said[job] = self.bars.add_task(name, total=job.spec.steps, state=""), 0, 0.0
        bar, before, _ = self._said[job]
        self._said[job] = bar, steps, value
        state = f"{steps:,}, {_measured(job, value)}" if steps else "starts"
        self.bars.update(bar, completed=steps, state=state)
        self.bars.advance(self._all, steps - before)
        if not terminal.is_terminal and time.monotonic() - self._printed > _LINE_EVERY:
            for each, (_, done, number) in self._said.items():
                state = f"{done:,} of {each.spec.steps:,}, {_measured(each, number)}"
                self._print(f"under way: {each.spec.title}: {state}")

    def finish(self, job: Job, run: Run) -> None:
        value = self._said[job][2] if job in self._said else 0.0
        self._end(job, f"{_measured(job, value)} ({run.result.seconds:,.1f} s)")

    def fail(self, failure: Failure) -> None:
        self._end(failure.job, f"failed, {failure.reason}", style="red")

    def _end(self, job: Job, text: str, style: str = "") -> None:
        steps = 0
        if job in self._said:
            bar, steps, _ = self._said.pop(job)
            self.bars.remove_task(bar)
        self._ended += 1
        # All of its steps, though a dataset may have ended earlier: the bar is to end full.
        count = f"{self._ended}/{self._total}"
        self.bars.update(self._all, advance=job.spec.steps - steps, state=f"{count} {self._noun}")
        self._print(f"{count} {job.spec.title}: {text}", style=style)

    def _print(self, text: str, style: str = "") -> None:
        terminal.print(Text(visible(text), style=style), soft_wrap=True)
        self._printed = time.monotonic()


def _measured(job: Job, value: float) -> str:
    number = f"{value:.2f}" if job.spec.measure == "coverage" else f"{value:,.0f}"
    return f"{job.spec.measure} {number}"
