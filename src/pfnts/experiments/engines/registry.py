"""Engines by name."""

from __future__ import annotations

from pfnts.experiments.engines.base import Engine
from pfnts.experiments.engines.cluster import RayEngine
from pfnts.experiments.engines.local import LocalEngine
from pfnts.experiments.engines.lockstep import LockstepEngine

NAMES = ("local", "lockstep", "ray")


def make(name: str, *, workers: int | None = None, address: str | None = None) -> Engine:
    """Make an engine.

    Parameters
    ----------
    name
        "local" for processes of this machine, "lockstep" for runs side by side in one, on a card, "ray" for a
        cluster.
    workers
        Runs at a time; as many as there are cores, or 40 in lockstep, when left out.
    address
        Of a running Ray cluster; one is started on this machine when left out.

    Examples
    --------
    >>> make("local", workers=2)
    <pfnts.experiments.engines.local.LocalEngine object at ...>
    """
    if name not in NAMES:
        raise ValueError(f"engine must be one of {', '.join(NAMES)}; got {name!r}")
    if name == "ray":
        return RayEngine(address=address, workers=workers)
    if address is not None:
        raise ValueError(f'address is of a Ray cluster and needs the engine "ray", got {name!r}')
    return LockstepEngine(workers=workers) if name == "lockstep" else LocalEngine(workers=workers)
