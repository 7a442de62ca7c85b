"""How jobs come along: bars in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from typing import Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from pfnts.cli.console import plain_errors, terminal, visible
from pfnts.experiments import FailedRunsError, Job, Run, RunStore, run_all
from pfnts.experiments.engines import Engine, UnusableDeviceError
from pfnts.experiments.jobs import Failure

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
    shown, found, failures = list(waiting.values()), {}, None
    with (
        plain_errors(UnusableDeviceError, OSError, ValueError),
        _Bars(shown) if terminal.is_terminal else _Lines(shown) as display,
        closing(
            run_all(jobs, store=store, engine=engine, listener=display.hear, on_failure=display.fail)
        ) as runs,
    ):
        try:
            for run in runs:
                found[run.spec] = run
                if run.spec in waiting:
                    display.finish(waiting[run.spec], run)
        except FailedRunsError as error:
            failures = error
    # Runs come in the order in which they end, which is not always the same.
    return [found[job.spec] for job in jobs if job.spec in found], failures


class _Lines(AbstractContextManager["_Lines"]):
    """A line for each job that ends, and now and then one for those under way."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._total = len(jobs)
        self._ended = 0
        self._said: dict[Job, tuple[int, float]] = {}
        self._printed = time.monotonic()

    def __exit__(self, *error: object) -> None:
        """Nothing to close."""

    def hear(self, job: Job, steps: int, value: float) -> None:
        self._said[job] = steps, value
        if time.monotonic() - self._printed > _LINE_EVERY:
            for each, (done, number) in self._said.items():
                state = f"{done:,} of {each.spec.steps:,}, {_measured(each, number)}"
                self._print(f"under way: {each.spec.title}: {state}")

    def finish(self, job: Job, run: Run) -> None:
        _, value = self._said.get(job, (0, 0.0))
        self._end(job, f"{_measured(job, value)} ({run.result.seconds:,.1f} s)")

    def fail(self, failure: Failure) -> None:
        self._end(failure.job, f"failed, {failure.reason}", style="red")

    def _end(self, job: Job, text: str, style: str = "") -> None:
        self._said.pop(job, None)
        self._ended += 1
        self._print(f"{self._ended}/{self._total} {job.spec.title}: {text}", style=style)

    def _print(self, text: str, style: str = "") -> None:
        terminal.print(Text(visible(text), style=style), soft_wrap=True)
        self._printed = time.monotonic()


class _Bars(_Lines):
    """The same lines, and below them a bar for all jobs and one for each that is under way."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        super().__init__(jobs)
        self._progress = Progress(
            # In a narrow terminal the name of a run gives way, not its numbers.
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
            ),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[state]}", markup=False, table_column=Column(no_wrap=True, min_width=24)),
            TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
            console=terminal,
            transient=True,
            expand=True,
        )
        self._noun = f"{jobs[0].spec.noun}s" if jobs else "runs"
        total = sum(job.spec.steps for job in jobs)
        self._all = self._progress.add_task(f"all {self._noun}", total=total, state="")
        self._bars: dict[Job, TaskID] = {}
        self._steps: dict[Job, int] = {}
        self._show_all()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def hear(self, job: Job, steps: int, value: float) -> None:
        self._said[job] = steps, value
        if job not in self._bars:
            name = visible(job.spec.title).replace("\n", " ")
            self._bars[job] = self._progress.add_task(name, total=job.spec.steps, state="")
        state = f"{steps:,}, {_measured(job, value)}" if steps else "starts"
        self._progress.update(self._bars[job], completed=steps, state=state)
        self._steps[job] = steps
        self._show_all()

    def _end(self, job: Job, text: str, style: str = "") -> None:
        if job in self._bars:
            self._progress.remove_task(self._bars.pop(job))
        # All of its steps, though a dataset may have ended earlier: the bar is to end full.
        self._steps[job] = job.spec.steps
        super()._end(job, text, style)
        self._show_all()

    def _show_all(self) -> None:
        state = f"{self._ended}/{self._total} {self._noun}"
        self._progress.update(self._all, completed=sum(self._steps.values()), state=state)


def _measured(job: Job, value: float) -> str:
    number = f"{value:.2f}" if job.spec.measure == "coverage" else f"{value:,.0f}"
    return f"{job.spec.measure} {number}"
