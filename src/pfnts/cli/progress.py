"""How runs come along: bars in a terminal, now and then a line elsewhere."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

from pfnts.cli.console import console
from pfnts.experiments import Run, RunSpec, RunStore, run_all
from pfnts.experiments.engines import Engine, Failure

_LINE_EVERY = 30.0
"""Seconds between lines about what is under way, where there is no terminal."""


def run_with_bars(
    specs: Sequence[RunSpec],
    *,
    store: RunStore | None = None,
    engine: Engine | None = None,
    data: Path | None = None,
    device: str = "cpu",
) -> Generator[Run, None, None]:
    """Yield every run, as `run_all` does, while the console shows how those under way come along."""
    planned = list(dict.fromkeys(specs))
    waiting = [spec for spec in planned if store is None or spec not in store]
    if planned and store is not None:
        console.print(f"{len(planned)} runs, of which {len(planned) - len(waiting)} were finished before.")
    fresh = set(waiting)
    with _Bars(waiting) if console.is_terminal else _Lines(waiting) as display:
        runs = run_all(
            planned,
            store=store,
            engine=engine,
            data=data,
            device=device,
            listener=display.hear,
            on_failure=display.fail,
        )
        with closing(runs):
            for run in runs:
                if run.spec in fresh:
                    display.finish(run)
                yield run


class _Lines:
    """A line for each run that ends, and now and then one for those under way."""

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        self._total = len(specs)
        self._ended = 0
        self._under_way: dict[RunSpec, str] = {}
        self._printed = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def hear(self, spec: RunSpec, rounds: int, regret: float) -> None:
        self._under_way[spec] = f"{spec.title}: round {rounds:,} of {spec.horizon:,}, regret {regret:,.1f}"
        if time.monotonic() - self._printed > _LINE_EVERY:
            for text in self._under_way.values():
                self._print(f"under way: {escape(text)}")

    def finish(self, run: Run) -> None:
        regret, seconds = run.trajectory.total_regret, run.trajectory.seconds
        self._end(run.spec, f"{escape(run.spec.title)}: regret {regret:,.1f} ({seconds:,.1f} s)")

    def fail(self, failure: Failure) -> None:
        self._end(
            failure.spec, f"{escape(failure.spec.title)}: [bold red]failed[/], {escape(failure.reason)}"
        )

    def _end(self, spec: RunSpec, text: str) -> None:
        self._under_way.pop(spec, None)
        self._ended += 1
        self._print(f"{self._ended}/{self._total} {text}")

    def _print(self, text: str) -> None:
        console.print(text, highlight=False, soft_wrap=True)
        self._printed = time.monotonic()


class _Bars(_Lines):
    """The same lines, and below them a bar for all runs and one for each that is under way."""

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        super().__init__(specs)
        self._progress = Progress(
            # In a narrow terminal the name of a run gives way, not its numbers.
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[state]}", table_column=Column(no_wrap=True, min_width=24)),
            TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
            console=console,
            transient=True,
            expand=True,
        )
        self._all = self._progress.add_task("all runs", total=sum(spec.horizon for spec in specs), state="")
        self._bars: dict[RunSpec, TaskID] = {}
        self._rounds: dict[RunSpec, int] = {}
        self._show_all()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def hear(self, spec: RunSpec, rounds: int, regret: float) -> None:
        if spec not in self._bars:
            self._bars[spec] = self._progress.add_task(escape(spec.title), total=spec.horizon, state="")
        state = f"round {rounds:,}, regret {regret:,.0f}" if rounds else "starts"
        self._progress.update(self._bars[spec], completed=rounds, state=state)
        self._rounds[spec] = rounds
        self._show_all()

    def _end(self, spec: RunSpec, text: str) -> None:
        if spec in self._bars:
            self._progress.remove_task(self._bars.pop(spec))
        # All of its horizon, though a dataset may have ended earlier: the bar is to end full.
        self._rounds[spec] = spec.horizon
        super()._end(spec, text)
        self._show_all()

    def _show_all(self) -> None:
        self._progress.update(
            self._all, completed=sum(self._rounds.values()), state=f"{self._ended}/{self._total} runs"
        )
