"""What to run, running it, keeping and summarising what came of it."""

from pfnts.experiments.backbone_scores import BackboneScore, score_backbone
from pfnts.experiments.batch import FailedRunsError, run_all
from pfnts.experiments.calibration import CoverageRow, calibrate
from pfnts.experiments.engines import LocalEngine, RayEngine
from pfnts.experiments.jobs import Job, job, prepare
from pfnts.experiments.outcomes import FinalRegret, summarize
from pfnts.experiments.report.coverage import coverage_figure
from pfnts.experiments.report.writer import regret_curves
from pfnts.experiments.simulations import RunSpec, plan, run
from pfnts.experiments.spec import PolicySpec, UnknownOptionError
from pfnts.experiments.store import CorruptRunError, Run, RunStore

__all__ = [
    "BackboneScore",
    "CorruptRunError",
    "CoverageRow",
    "FailedRunsError",
    "FinalRegret",
    "Job",
    "LocalEngine",
    "PolicySpec",
    "RayEngine",
    "Run",
    "RunSpec",
    "RunStore",
    "UnknownOptionError",
    "calibrate",
    "coverage_figure",
    "job",
    "plan",
    "prepare",
    "regret_curves",
    "run",
    "run_all",
    "score_backbone",
    "summarize",
]
