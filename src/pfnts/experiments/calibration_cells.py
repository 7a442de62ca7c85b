"""Coverage diagnostics in several processes: a task with a number of rows is a cell of its own."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from pfnts.experiments.calibration import TASKS, CoverageRow, calibrate
from pfnts.experiments.processes import belong_to_parent, one_thread_children
from pfnts.experiments.threads import one_thread


def calibrate_cells(
    *,
    backbones: Sequence[str],
    bart: bool,
    sizes: Sequence[int],
    replications: int,
    seed: int,
    workers: int,
    listener: Callable[[str, int], None] = lambda *_: None,
) -> list[CoverageRow]:
    """Do what `calibrate` does with the paper's tasks, several cells at a time.

    Most of BART's time goes to its compiler, once for every cell, so that cells are what is shared out.

    Parameters
    ----------
    backbones
        Names; each is asked for SubCLT and for shrunk variances.
    bart
        Whether BART is run for comparison.
    sizes
        Rows of the histories.
    replications
        Histories for each cell.
    seed
        The same seed gives the same histories.
    workers
        Cells at a time.
    listener
        Told the task and the size of a cell that is done.
    """
    cells = [(task, size) for task in TASKS for size in sizes]
    context = multiprocessing.get_context("spawn")
    with (
        one_thread_children(),
        ProcessPoolExecutor(workers, mp_context=context, initializer=_begin) as pool,
    ):
        futures = {
            pool.submit(_cell, list(backbones), bart, task, size, replications, seed): (task, size)
            # The longest first, so that none is left for one process alone.
            for task, size in sorted(cells, key=lambda cell: -cell[1])
        }
        try:
            for future in as_completed(futures):
                future.result()
                listener(*futures[future])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    found = {cell: future.result() for future, cell in futures.items()}
    return [row for cell in cells for row in found[cell]]


def _begin() -> None:
    belong_to_parent()
    # An executor waits for what is under way, and Ctrl-C shall not.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _cell(
    backbones: list[str], bart: bool, task: str, size: int, replications: int, seed: int
) -> list[CoverageRow]:
    with one_thread():
        return calibrate(
            backbones=backbones, bart=bart, tasks=[task], sizes=[size], replications=replications, seed=seed
        )
