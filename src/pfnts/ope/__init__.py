"""What a policy would have earned, estimated from a log of random decisions."""

from pfnts.ope.bootstrap import Bootstrap, cluster_bootstrap
from pfnts.ope.drinkless import read_drinkless, simulated_drinkless
from pfnts.ope.estimators import (
    Estimate,
    WeightDiagnostics,
    dm,
    dr,
    effective_sample_size,
    ips,
    snips,
    weight_diagnostics,
    weights,
)
from pfnts.ope.gaps import Gap, gaps
from pfnts.ope.identity import with_identity
from pfnts.ope.log import Log
from pfnts.ope.outcome import Ridge, cross_fitted
from pfnts.ope.reading import BadLogError, Roles, log_from_columns, read_log
from pfnts.ope.replay import Replay, replay

__all__ = [
    "BadLogError",
    "Bootstrap",
    "Estimate",
    "Gap",
    "Log",
    "Replay",
    "Ridge",
    "Roles",
    "WeightDiagnostics",
    "cluster_bootstrap",
    "cross_fitted",
    "dm",
    "dr",
    "effective_sample_size",
    "gaps",
    "ips",
    "log_from_columns",
    "read_drinkless",
    "read_log",
    "replay",
    "simulated_drinkless",
    "snips",
    "weight_diagnostics",
    "weights",
    "with_identity",
]
