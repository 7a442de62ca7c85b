"""Options of the commands that make runs: how many at a time, by whom, where, from which data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfnts.backbones.devices import check_device
from pfnts.experiments.engines import LocalEngine, RayEngine
from pfnts.experiments.jobs import Engine

Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Runs at a time, a core each; all cores when left out."),
]
EngineName = Annotated[
    str,
    typer.Option("--engine", help="Who makes the runs: **local** processes, or a **ray** cluster."),
]
Address = Annotated[
    str | None,
    typer.Option(help="Of a running Ray cluster, such as `auto`; one is started here when left out."),
]
Device = Annotated[
    str,
    typer.Option(
        help="Where pfn-ts computes, such as cuda, if its backbone can. Other policies stay on the CPU."
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder with the OpenML tables; PFNTS_DATA or a download when left out."),
]


def chosen_engine(name: str, *, workers: int | None, address: str | None, device: str) -> Engine:
    """Make the engine, and check the device where it is this machine's."""
    if name not in ("local", "ray"):
        raise ValueError(f"--engine must be local or ray, got {name!r}")
    if address is None:
        check_device(device)  # of a cluster elsewhere the engine asks
    elif name != "ray":
        raise ValueError(f"--address is of a Ray cluster and needs --engine ray, got {name!r}")
    if name == "ray":
        return RayEngine(address=address, workers=workers)
    return LocalEngine(workers=workers)
