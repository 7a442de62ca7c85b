"""Options that commands have in common: how many runs at a time, by whom, where, from which data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pfnts.backbones.devices import check_device
from pfnts.experiments.engines import LocalEngine, RayEngine
from pfnts.experiments.jobs import Engine


def option(text: str, *names: str, **rules: Any) -> Any:
    """Describe an option: its meaning, its names if not the parameter's own, and rules of `typer.Option`."""
    return typer.Option(*names, help=text, **rules)


Workers = Annotated[int | None, option("Runs at a time, a core each; all cores when left out.", min=1)]
EngineName = Annotated[
    str, option("Who makes the runs: **local** processes, or a **ray** cluster.", "--engine")
]
Address = Annotated[
    str | None, option("Of a running Ray cluster, such as `auto`; one is started here when left out.")
]
Device = Annotated[
    str, option("Where pfn-ts computes, such as cuda, if its backbone can. Other policies stay on the CPU.")
]
Figures = Annotated[bool, option("Draw the figures for papers and slides; the page has curves of its own.")]
Data = Annotated[
    Path | None, option("Folder with the OpenML tables; PFNTS_DATA or a download when left out.")
]


def chosen_engine(name: str, *, workers: int | None, address: str | None, device: str) -> Engine:
    """Make the engine, and check the device where it is this machine's."""
    if name not in ("local", "ray"):
        raise ValueError(f"--engine must be local or ray, got {name!r}")
    if address is None:
        check_device(device)  # of a cluster elsewhere the engine asks
    elif name != "ray":
        raise ValueError(f"--address is of a Ray cluster and needs --engine ray, got {name!r}")
    return LocalEngine(workers=workers) if name == "local" else RayEngine(address=address, workers=workers)
