"""What to run, running it, keeping and summarising what came of it."""

from pfnts.experiments.backbone_scores import BackboneScore, score_backbone
from pfnts.experiments.batch import FailedRunsError, run_all
from pfnts.experiments.calibration import CoverageRow, calibrate
from pfnts.experiments.calibration_report import coverage_figure
from pfnts.experiments.engines import LocalEngine, RayEngine
from pfnts.experiments.figures import regret_curves
from pfnts.experiments.runner import run
from pfnts.experiments.spec import PolicySpec, RunSpec, UnknownOptionError, plan
from pfnts.experiments.store import CorruptRunError, Run, RunStore
from pfnts.experiments.summary import FinalRegret, summarize

__all__ = [
    "BackboneScore",
    "CorruptRunError",
    "CoverageRow",
    "FailedRunsError",
    "FinalRegret",
    "LocalEngine",
    "PolicySpec",
    "RayEngine",
    "Run",
    "RunSpec",
    "RunStore",
    "UnknownOptionError",
    "calibrate",
    "coverage_figure",
    "plan",
    "regret_curves",
    "run",
    "run_all",
    "score_backbone",
    "summarize",
]
