"""Who makes the runs: processes of this machine, many side by side in one of them, or a Ray cluster."""

from pfnts.experiments.engines.cluster import RayEngine, UnusableDeviceError
from pfnts.experiments.engines.local import LocalEngine

__all__ = ["LocalEngine", "RayEngine", "UnusableDeviceError"]
