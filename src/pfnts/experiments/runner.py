"""Running what was planned, and nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pfnts import environments
from pfnts.experiments.spec import RunSpec
from pfnts.experiments.store import Run, RunStore
from pfnts.simulation import Trajectory, simulate
from pfnts.simulation.loop import Progress

Listener = Callable[[RunSpec, int, float], None]
"""Told which run is under way, its rounds done and its regret so far."""


def run(spec: RunSpec, *, prefetch: int = 256, progress: Progress | None = None) -> Trajectory:
    """Run one description from its seed.

    Parameters
    ----------
    spec
        What to run.
    prefetch
        Contexts the policy is shown ahead; changes the time, not the outcome.
    progress
        Called with the rounds done and the regret so far.

    Examples
    --------
    >>> from pfnts.experiments import PolicySpec
    >>> spec = RunSpec("friedman", PolicySpec("uniform"), horizon=100, replication=0, seed=42)
    >>> run(spec).total_regret == run(spec).total_regret
    True
    """
    for_environment, for_policy = spec.generators()
    environment = environments.make(spec.scenario, horizon=spec.horizon, rng=for_environment)
    policy = spec.policy.build(arms=environment.n_arms)
    return simulate(policy, environment, rng=for_policy, prefetch=prefetch, progress=progress)


def run_all(
    specs: Iterable[RunSpec], *, store: RunStore | None = None, listener: Listener | None = None
) -> Iterator[Run]:
    """Yield every run in turn: read from the store where it is finished, run and saved where it is not.

    Parameters
    ----------
    specs
        What to run.
    store
        Where finished runs are kept; none are when left out.
    listener
        Told how each run comes along.

    Examples
    --------
    >>> from pfnts.experiments import PolicySpec, plan
    >>> specs = plan(scenarios=["friedman"], policies=[PolicySpec("uniform")],
    ...              horizon=50, replications=2, seed=42)
    >>> [done.trajectory.horizon for done in run_all(specs)]
    [50, 50]
    """
    for spec in specs:
        if store is not None and spec in store:
            yield Run(spec, store.load(spec))
            continue
        trajectory = run(spec, progress=_progress(spec, listener))
        if store is not None:
            store.save(spec, trajectory)
        yield Run(spec, trajectory)


def _progress(spec: RunSpec, listener: Listener | None) -> Progress | None:
    if listener is None:
        return None
    return lambda rounds, regret: listener(spec, rounds, regret)
