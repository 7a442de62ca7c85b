"""Coverage diagnostics: how often intervals hold the mean reward, and how long they are."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from pfnts import environments, posterior
from pfnts.backbones import Backbone
from pfnts.dotted import sources
from pfnts.experiments.batch import run_all
from pfnts.experiments.heldout import HeldOutDraw
from pfnts.experiments.jobs import Engine, Progress, Spec, prepare
from pfnts.experiments.outcomes import mean_and_error
from pfnts.experiments.spec import backbone_name, loaded
from pfnts.experiments.store import Run, RunStore
from pfnts.experiments.threads import one_thread
from pfnts.ope.log import Matrix, Vector
from pfnts.scores import coverage

Interval = tuple[Vector, Vector]

LEVEL = 0.95
"""Share of the mean rewards that an interval says it holds."""
TASKS = ("linear", "friedman")
"""The paper's: arm 0 of these scenarios, with 10 and 5 features."""
SIZES = (16, 64, 256, 1024)
"""Rows of a history."""
QUERIES = 50
"""Contexts at which each interval is asked for."""
ESTIMATORS = ("network", "shrunk", "subclt")
"""For every backbone: its own posterior of the mean if it has one, shrunk SubCLT, and the paper's."""
BART = "bart"


@dataclass(frozen=True)
class Measured:
    """How the intervals of one model did on one task after one number of rows."""

    coverage: Matrix
    """(R, V) share of the queries whose mean reward lies within its interval, by replication and variance."""
    length: Matrix
    """(R, V) mean length of the intervals."""
    seconds: float
    """Wall-clock time of all replications."""


@dataclass(frozen=True)
class CoverageSpec(Spec):
    """Histories of one task and one size, all replications, for one model.

    Most of BART's time goes to its compiler, once for every size: so replications are not torn apart.
    """

    kind = "coverage"
    noun = "cell"
    measure = "coverage"
    result = Measured

    task: str
    """Scenario whose arm 0 is learned; its mean rewards must be known."""
    model: str
    """Name of a backbone, or "bart"."""
    size: int
    """Rows of a history."""
    replications: int
    """How many histories."""
    seed: int
    """The same seed gives the same histories, whatever the model."""

    @property
    def title(self) -> str:
        """Task, rows and model in a few words."""
        return f"{self.task}, {self.size:,} rows, {self.model}"

    @property
    def steps(self) -> int:
        """Replications."""
        return self.replications

    @property
    def variances(self) -> tuple[str, ...]:
        """How the model gets its intervals."""
        return ("mcmc",) if self.model == BART else usable(loaded(self.model))

    def decided_by(self, inputs: object) -> dict[str, Any]:  # noqa: ARG002 (a history is drawn, not read)
        """Weights and files of the user's own behind the model."""
        if self.model == BART:
            return {}
        decided = {"backbone": backbone_name(loaded(self.model)), "sources": sources([self.model])}
        return {name: value for name, value in decided.items() if value is not None}

    def device(self, asked: str) -> str:
        """Where the model computes, when ``asked`` is where it may."""
        return "cpu" if self.model in (BART, "linear") else asked

    def perform(self, inputs: object, *, device: str, progress: Progress) -> Measured:  # noqa: ARG002
        """Draw the histories and measure the intervals, in one thread."""
        covered = np.empty((self.replications, len(self.variances)))
        length = np.empty_like(covered)
        began = time.perf_counter()
        # Loaded outside, because a library is held to one thread only if it is loaded by then.
        intervals = _intervals(self.model, self.device(device))
        with one_thread():
            for number in range(self.replications):
                history = draw_history(self.task, self.size, number=number, seed=self.seed)
                for place, (low, high) in enumerate(intervals(history).values()):
                    covered[number, place] = coverage(low, high, history.latent)
                    length[number, place] = (high - low).mean()
                progress(number + 1, float(covered[: number + 1].mean()))
        return Measured(covered, length, time.perf_counter() - began)


@dataclass(frozen=True)
class CoverageRow:
    """How the intervals of one method did on one task after one number of rows."""

    task: str
    """Scenario whose arm 0 is learned."""
    model: str
    """Name of a backbone, or "bart"."""
    variance: str
    """How it gets its intervals: "network", "shrunk", "subclt" or "mcmc"."""
    size: int
    """Rows of the history."""
    replications: int
    """How many histories the figures are over."""
    coverage: float
    """Share of the queries whose mean reward lies within its interval."""
    coverage_error: float
    """Standard error of that share over replications; NaN for a single one."""
    length: float
    """Mean length of the intervals."""
    length_error: float
    """Standard error of that mean over replications; NaN for a single one."""
    seconds: float
    """Mean time of a replication: history read, intervals given, those of all variances of a backbone."""

    @property
    def method(self) -> str:
        """Model and variance in a few words."""
        return "BART" if self.model == BART else f"{self.model}, {self.variance}"


def calibrate(
    *,
    backbones: Sequence[str] = ("linear", "embedded"),
    bart: bool = True,
    tasks: Sequence[str] = TASKS,
    sizes: Sequence[int] = SIZES,
    replications: int = 10,
    seed: int = 42,
    device: str = "cpu",
    store: RunStore | None = None,
    engine: Engine | None = None,
) -> list[CoverageRow]:
    """Compare nominal 95 % intervals for the mean reward with the truth, as the paper does.

    Functions, history and queries are drawn anew for each task, size and replication, and are the same for
    every method.

    Parameters
    ----------
    backbones
        Names; each is asked for its own posterior of the mean, shrunk SubCLT and SubCLT.
    bart
        Whether BART is run for comparison; it needs the extra ``baselines``.
    tasks
        Names of scenarios, not of OpenML, whose mean rewards are unknown; their arm 0 is learned.
    sizes
        Rows of the histories, each at least 3.
    replications
        Histories for each task and size.
    seed
        The same seed gives the same histories.
    device
        Where backbones that leave a choice compute.
    store
        Where finished cells are kept; none are when left out.
    engine
        Who makes them; this process when left out.

    Examples
    --------
    >>> rows = calibrate(backbones=["linear"], bart=False, tasks=["linear"], sizes=[256], replications=2)
    >>> [row.method for row in rows]
    ['linear, network', 'linear, shrunk', 'linear, subclt']
    >>> all(0.6 < row.coverage <= 1 for row in rows)
    True
    """
    specs = plan_coverage(
        backbones=backbones, bart=bart, tasks=tasks, sizes=sizes, replications=replications, seed=seed
    )
    return coverage_rows(specs, run_all(prepare(specs, device=device), store=store, engine=engine))


def plan_coverage(
    *,
    backbones: Sequence[str],
    bart: bool,
    tasks: Sequence[str] = TASKS,
    sizes: Sequence[int],
    replications: int,
    seed: int,
) -> list[CoverageSpec]:
    """List the cells, the longest first, so that none is left for one process alone."""
    for task in tasks:
        if task.startswith("openml-"):
            raise ValueError(f"tasks must be scenarios with known mean rewards, got {task!r}")
        environments.describe(task)
    if not sizes or min(sizes) < 3:
        raise ValueError(f"sizes must be at least 3, got {list(sizes)}")
    if replications < 1:
        raise ValueError(f"replications must be a positive integer, got {replications}")
    names = list(dict.fromkeys(backbones))
    for name in names:
        loaded(name)  # a mistake in a name shows here, not in another process
    if bart:
        from pfnts.experiments import calibration_bart  # noqa: F401 (a missing extra shows here, too)
    models = [*names, *([BART] if bart else [])]
    if not models:
        raise ValueError("backbones must name at least one, or bart be true, got none")
    cells = product(sorted(set(sizes), reverse=True), tasks, models)
    return [CoverageSpec(task, model, size, replications, seed) for size, task, model in cells]


def coverage_rows(specs: Sequence[CoverageSpec], runs: Iterable[Run]) -> list[CoverageRow]:
    """Average over replications, by task, then by size, in the order in which models were asked for."""
    found = {run.spec: run.result for run in runs}
    tasks, models = ([*dict.fromkeys(getattr(spec, name) for spec in specs)] for name in ("task", "model"))
    rows = []
    for spec in sorted(found, key=lambda spec: (tasks.index(spec.task), spec.size, models.index(spec.model))):
        done, cell = found[spec], (spec.task, spec.model)
        for place, variance in enumerate(spec.variances):
            covered, length = (mean_and_error(of[:, place].tolist()) for of in (done.coverage, done.length))
            figures = (*covered, *length, done.seconds / spec.replications)
            rows.append(CoverageRow(*cell, variance, spec.size, spec.replications, *figures))
    return rows


def draw_history(task: str, size: int, *, number: int, queries: int = QUERIES, seed: int) -> HeldOutDraw:
    """Draw the functions of a scenario, then rewards of arm 0 at ``size`` contexts, then the queries."""
    child, for_model = SeedSequence([seed, zlib.crc32(task.encode()), size, number]).spawn(2)
    drawn = environments.make(task, horizon=size + queries, rng=np.random.default_rng(child))
    (X, later), (y, outcomes) = (np.split(of, [size]) for of in (drawn.contexts, drawn.rewards[:, 0]))
    of_model = int(for_model.generate_state(1)[0] >> 1)
    return HeldOutDraw(X, y, later, drawn.means[size:, 0], outcomes, seed=of_model)


def backbone_intervals(backbone: Backbone, history: HeldOutDraw) -> dict[str, Interval]:
    """Give the intervals at the queries, (q,) and (q,), by variance estimator.

    There is one arm, so that the variance of "the rewards of all arms", by which shrunk variances are
    floored, is that of the history's own rewards.
    """
    sequence, n = backbone.sequence(history.X, history.y), len(history.y)
    intervals = {}
    for name in usable(backbone):
        estimator = posterior.load(name)
        asked = estimator.asks(n)
        answer = sequence.predict(history.queries, sizes=asked.sizes, levels=asked.levels)
        found = estimator.posterior(answer, size=n, own=n, reward_variance=float(np.var(history.y)))
        intervals[name] = found.interval(LEVEL)
    return intervals


def _intervals(model: str, device: str) -> Callable[[HeldOutDraw], dict[str, Interval]]:
    if model != BART:
        return partial(backbone_intervals, loaded(model, device))
    from pfnts.experiments.calibration_bart import bart_interval

    return lambda history: {"mcmc": bart_interval(history, level=LEVEL)}


def usable(backbone: Backbone) -> tuple[str, ...]:
    """Estimators that a backbone knows enough for."""
    return tuple(
        name for name in ESTIMATORS if backbone.knows_mean_sd or not posterior.load(name).needs_mean_sd
    )
