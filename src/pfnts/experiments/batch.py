"""Doing what was planned, and nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing

from pfnts.experiments.engines import LocalEngine
from pfnts.experiments.jobs import Engine, Failure, Finished, Job, Listener, Spec, job
from pfnts.experiments.store import Run, RunStore
from pfnts.files import tidy


class FailedRunsError(RuntimeError):
    """Some runs failed, after all others were made."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        listed = "; ".join(f"{each.job.spec.title}: {each.reason}" for each in failures)
        super().__init__(f"{len(failures)} of the runs failed: {listed}")
        self.failures = tuple(failures)
        """What failed and why."""


def run_all(
    asked: Iterable[Spec | Job],
    *,
    store: RunStore | None = None,
    engine: Engine | None = None,
    listener: Listener = lambda *_: None,
    on_failure: Callable[[Failure], None] = lambda _: None,
) -> Generator[Run, None, None]:
    """Yield every run: first those in the store, then the others as they are made and saved.

    A run that fails stops no other; when all have ended, a `FailedRunsError` says which did.

    Parameters
    ----------
    asked
        What to do, each once: specs, or jobs from `prepare`, which may have inputs and a device.
    store
        Where finished runs are kept; none are when left out.
    engine
        Who does it; this process, one after another in the order asked for, when left out.
    listener
        Told how each comes along.
    on_failure
        Told at once of a run that failed.

    Examples
    --------
    >>> from pfnts.experiments import PolicySpec, plan
    >>> specs = plan(scenarios=["friedman"], policies=[PolicySpec("uniform")],
    ...              horizon=50, replications=2, seed=42)
    >>> [done.result.horizon for done in run_all(specs)]
    [50, 50]
    """
    jobs = [each if isinstance(each, Job) else job(each) for each in dict.fromkeys(asked)]
    missing = list(jobs)
    if store is not None:
        tidy(store.root)
        store.check_data(jobs)
        missing = [each for each in jobs if each not in store]
        for there in (each for each in jobs if each in store):
            yield Run(there.spec, store.load(there))
    failures: list[Failure] = []
    with closing((engine or LocalEngine(workers=1)).execute(missing, listener=listener)) as results:
        for result in results:
            if isinstance(result, Finished):
                if store is not None:
                    store.save(result.job, result.result, made=result.made)
                yield Run(result.job.spec, result.result)
            else:
                failures.append(result)
                on_failure(result)
    if failures:
        raise FailedRunsError(failures)
