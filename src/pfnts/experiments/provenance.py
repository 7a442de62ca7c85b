"""Where and with what a run was made: kept beside it, and no part of its identity."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_LIBRARIES = (
    "pfnts", "numpy", "scipy", "torch", "scikit-learn", "xgboost", "jax", "bartz", "ray",
    "vowpalwabbit", "mabwiser", "contextualbandits", "bayesianbandits",
)  # fmt: skip
_CPUINFO = Path("/proc/cpuinfo")


def provenance(*, device: str = "cpu") -> dict[str, Any]:
    """Versions of the software at hand, the machine it runs on, and the time now, as plain JSON values.

    Examples
    --------
    >>> sorted(provenance()), provenance()["machine"]["device"]
    (['finished', 'machine', 'versions'], 'cpu')
    """
    machine = {"cpu": cpu_model(), "cores": cores(), "device": device_name(device)}
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return {"versions": versions(), "machine": machine, "finished": finished}


def device_name(device: str) -> str:
    """Name a GPU by its model, anything else as PyTorch does."""
    if not device.startswith("cuda"):
        return device
    import torch

    return str(torch.cuda.get_device_name(device))


def versions() -> dict[str, str]:
    """Version of Python and of every library at hand that a policy may use."""
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


def cores() -> int:
    """Count the cores this process may use, which in a container may be fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no such call
        return os.cpu_count() or 1


@cache
def cpu_model() -> str:
    """Name the processor."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())
