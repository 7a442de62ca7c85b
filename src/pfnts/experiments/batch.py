"""Running what was planned, and nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from pfnts.experiments.engines import Engine, Failure, Job, Listener, LocalEngine
from pfnts.experiments.spec import RunSpec
from pfnts.experiments.store import Run, RunStore, producer


class FailedRunsError(RuntimeError):
    """Some runs failed, after all others were made."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        listed = "; ".join(f"{each.spec.title}: {each.reason}" for each in failures)
        super().__init__(f"{len(failures)} of the runs failed: {listed}")
        self.failures = tuple(failures)
        """What failed and why."""


def run_all(
    specs: Iterable[RunSpec],
    *,
    store: RunStore | None = None,
    engine: Engine | None = None,
    data: Path | None = None,
    listener: Listener = lambda *_: None,
    on_failure: Callable[[Failure], None] = lambda _: None,
) -> Generator[Run, None, None]:
    """Yield every run: first those in the store, then the others as they are made and saved.

    A run that fails stops no other; when all have ended, a `FailedRunsError` says which did.

    Parameters
    ----------
    specs
        What to run.
    store
        Where finished runs are kept; none are when left out.
    engine
        Who makes the runs; this process, one after another in the order of ``specs``, when left out.
    data
        Folder with the tables of OpenML scenarios.
    listener
        Told how each run comes along.
    on_failure
        Told at once of a run that failed.

    Examples
    --------
    >>> from pfnts.experiments import PolicySpec, plan
    >>> specs = plan(scenarios=["friedman"], policies=[PolicySpec("uniform")],
    ...              horizon=50, replications=2, seed=42)
    >>> [done.trajectory.horizon for done in run_all(specs)]
    [50, 50]
    """
    if store is not None:
        store.tidy()
    missing = []
    for spec in dict.fromkeys(specs):
        if store is not None and spec in store:
            yield Run(spec, store.load(spec))
        else:
            missing.append(spec)
    failures: list[Failure] = []
    jobs = [Job(spec, producer(spec), data) for spec in missing]
    with closing((engine or LocalEngine(workers=1)).execute(jobs, listener=listener)) as results:
        for result in results:
            if isinstance(result, Failure):
                failures.append(result)
                on_failure(result)
                continue
            if store is not None:
                store.save(result.spec, result.trajectory, made=result.made)
            yield Run(result.spec, result.trajectory)
    if failures:
        raise FailedRunsError(failures)
