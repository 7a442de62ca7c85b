"""Where and with what a run was made: kept beside it, and no part of its identity."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_LIBRARIES = (
    "pfnts", "numpy", "scipy", "torch", "scikit-learn", "xgboost", "jax", "bartz", "ray",
    "vowpalwabbit", "mabwiser", "contextualbandits", "bayesianbandits",
)  # fmt: skip


def provenance(*, device: str = "cpu") -> dict[str, Any]:
    """Versions of the software at hand, the machine it runs on, and the time now, as plain JSON values."""
    if device.startswith("cuda"):
        import torch

        device = str(torch.cuda.get_device_name(device))
    versions = {"python": platform.python_version()}
    for library in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    machine = {"cpu": cpu_model(), "cores": cores(), "device": device}
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return {"versions": versions, "machine": machine, "finished": finished}


def cores() -> int:
    """Count the cores this process may use, which in a container may be fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no such call
        return os.cpu_count() or 1


@cache
def cpu_model() -> str:
    """Name the processor."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
