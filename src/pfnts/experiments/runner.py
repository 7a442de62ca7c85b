"""Running one description from its seed."""

from __future__ import annotations

from pathlib import Path

from pfnts import environments
from pfnts.experiments.spec import RunSpec
from pfnts.experiments.threads import one_thread
from pfnts.simulation import Trajectory, simulate
from pfnts.simulation.loop import Progress

PREFETCH, PREFETCH_ELSEWHERE = 256, 1024
"""Contexts shown ahead on the CPU, and on other devices, which answer many questions as fast as a few."""


def run(
    spec: RunSpec,
    *,
    data: Path | None = None,
    device: str = "cpu",
    prefetch: int | None = None,
    progress: Progress | None = None,
) -> Trajectory:
    """Run one description from its seed, in one thread: on a CPU the numbers are the same wherever it runs.

    Parameters
    ----------
    spec
        What to run.
    data
        Folder with the tables of OpenML scenarios, as `pfnts.environments.make` takes it.
    device
        Where the policy computes, if it leaves a choice, as PyTorch names it. The last digits may depend on
        it, and a close decision on them; what is run does not.
    prefetch
        Contexts the policy is shown ahead; changes the time, not the outcome. When left out, as many as suit
        the device.
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
    environment = environments.make(spec.scenario, horizon=spec.horizon, rng=for_environment, data=data)
    # Made outside, because a library is held to one thread only if it is loaded by then.
    policy = spec.policy.build(arms=environment.n_arms, device=device)
    if prefetch is None:
        prefetch = PREFETCH if spec.policy.device(device).startswith("cpu") else PREFETCH_ELSEWHERE
    with one_thread():
        return simulate(policy, environment, rng=for_policy, prefetch=prefetch, progress=progress)
