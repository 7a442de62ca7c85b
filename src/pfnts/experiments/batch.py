"""Running what was planned, and nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pfnts.experiments.engines import Engine, Failure, Finished, Job, Listener, LocalEngine
from pfnts.experiments.spec import RunSpec
from pfnts.experiments.store import Run, RunStore, producer

_OTHER_ROUNDS = (
    "it met other rounds than the runs beside it, as with another table of the same name, and cannot be "
    "compared with them; use the same data, or another folder for the runs"
)


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
    device: str = "cpu",
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
    device
        Where policies that leave a choice compute, as PyTorch names it; no part of what is run.
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
    missing, met = [], _Rounds()
    for spec in dict.fromkeys(specs):
        if store is not None and spec in store:
            done = Run(spec, store.load(spec))
            met.are_those_of(done)
            yield done
        else:
            missing.append(spec)
    failures: list[Failure] = []
    jobs = [Job(spec, producer(spec), data, device) for spec in missing]
    with closing((engine or LocalEngine(workers=1)).execute(jobs, listener=listener)) as results:
        for result in results:
            if isinstance(result, Finished):
                done = Run(result.spec, result.trajectory)
                if met.are_those_of(done):
                    if store is not None:
                        store.save(result.spec, result.trajectory, made=result.made)
                    yield done
                    continue
                result = Failure(result.spec, _OTHER_ROUNDS)
            failures.append(result)
            on_failure(result)
    if failures:
        raise FailedRunsError(failures)


class _Rounds:
    """Remembers what each replication was, by what its fixed arms would have lost."""

    def __init__(self) -> None:
        self._fixed: dict[tuple[str, int, int, int], NDArray[np.float64]] = {}

    def are_those_of(self, run: Run) -> bool:
        """Whether a run met the same rounds as the first one of its replication."""
        spec, fixed = run.spec, run.trajectory.fixed
        first = self._fixed.setdefault((spec.scenario, spec.horizon, spec.replication, spec.seed), fixed)
        # Not to the last digit, which another processor may have summed up otherwise.
        return first.shape == fixed.shape and bool(np.allclose(first, fixed, rtol=1e-9))
