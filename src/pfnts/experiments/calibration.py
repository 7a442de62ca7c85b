"""Coverage diagnostics: how often intervals hold the mean reward, and how long they are."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from pfnts import backbones as known_backbones
from pfnts import environments
from pfnts.backbones import Backbone
from pfnts import posterior
from pfnts.scores import coverage

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Interval = tuple[Vector, Vector]

LEVEL = 0.95
"""Share of the mean rewards that an interval says it holds."""
TASKS = ("linear", "friedman")
"""The paper's: arm 0 of these scenarios, with 10 and 5 features."""
SIZES = (16, 64, 256, 1024)
"""Rows of a history."""
ESTIMATORS = ("network", "shrunk", "subclt")
"""For every backbone: the learned posterior where there is one, SubCLT that never collapses, and the paper's."""


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
        """Model and variance in a few words.

        Examples
        --------
        >>> CoverageRow("linear", "bart", "mcmc", 16, 1, 0.9, 0.1, 2.0, 0.1, 1.0).method
        'BART'
        """
        return "BART" if self.model == "bart" else f"{self.model}, {self.variance}"


@dataclass(frozen=True)
class History:
    """Rewards of arm 0 at random contexts, and what is asked after them."""

    X: Matrix
    """(n, P)"""
    y: Vector
    """(n,)"""
    queries: Matrix
    """(q, P)"""
    means: Vector
    """(q,) mean reward at the queries."""
    seed: int
    """For whoever needs to draw."""


Listener = Callable[[str, int, int, str], None]
"""Told task, size, replication and model that come next."""
Measured = tuple[float, float, float]
"""Coverage, mean length and seconds in one replication."""


def calibrate(
    *,
    backbones: Sequence[str | Backbone] = ("linear", "embedded"),
    bart: bool = True,
    tasks: Sequence[str] = TASKS,
    sizes: Sequence[int] = SIZES,
    replications: int = 10,
    queries: int = 50,
    seed: int = 42,
    listener: Listener = lambda *_: None,
) -> list[CoverageRow]:
    """Compare nominal 95 % intervals for the mean reward with the truth, as the paper does.

    Functions, history and queries are drawn anew for each task, size and replication, and are the same for
    every method.

    Parameters
    ----------
    backbones
        Names or backbones; each is asked for its own posterior of the mean, shrunk SubCLT and SubCLT.
    bart
        Whether BART is run for comparison; it needs the extra ``baselines``.
    tasks
        Names of scenarios, not of OpenML, whose mean rewards are unknown; their arm 0 is learned.
    sizes
        Rows of the histories, each at least 3.
    replications
        Histories for each task and size.
    queries
        Contexts at which each interval is asked for.
    seed
        The same seed gives the same histories.
    listener
        Told what comes next.

    Examples
    --------
    >>> rows = calibrate(backbones=["linear"], bart=False, tasks=["linear"], sizes=[256], replications=2)
    >>> [row.method for row in rows]
    ['linear, network', 'linear, shrunk', 'linear, subclt']
    >>> all(0.6 < row.coverage <= 1 for row in rows)
    True
    """
    _check(tasks, sizes, replications=replications, queries=queries)
    methods = _methods([known_backbones.load(backbone) for backbone in backbones], bart=bart)
    rows = []
    for task in tasks:
        for size in sizes:
            found: dict[tuple[str, str], list[Measured]] = {}
            for number in range(replications):
                history = draw_history(task, size, number=number, queries=queries, seed=seed)
                for name, intervals in methods.items():
                    listener(task, size, number, name)
                    began = time.perf_counter()
                    given = intervals(history)
                    seconds = time.perf_counter() - began
                    for variance, interval in given.items():
                        measured = _measured(interval, history, seconds)
                        found.setdefault((name, variance), []).append(measured)
            rows += [_row(task, size, model, variance, all_of) for (model, variance), all_of in found.items()]
    return rows


def draw_history(task: str, size: int, *, number: int, queries: int, seed: int) -> History:
    """Draw the functions of a scenario, then rewards of arm 0 at ``size`` contexts, then the queries.

    Examples
    --------
    >>> draw_history("friedman", 16, number=0, queries=50, seed=42).queries.shape
    (50, 5)
    """
    child, for_model = SeedSequence([seed, zlib.crc32(task.encode()), size, number]).spawn(2)
    drawn = environments.make(task, horizon=size + queries, rng=np.random.default_rng(child))
    return History(
        X=drawn.contexts[:size],
        y=drawn.rewards[:size, 0],
        queries=drawn.contexts[size:],
        means=drawn.means[size:, 0],
        seed=int(for_model.generate_state(1)[0] >> 1),
    )


def backbone_intervals(backbone: Backbone, history: History) -> dict[str, Interval]:
    """Give the intervals at the queries, (q,) and (q,), by variance estimator.

    There is one arm, so that the variance of "the rewards of all arms", by which shrunk variances are
    floored, is that of the history's own rewards.
    """
    sequence, n = backbone.sequence(history.X, history.y), len(history.y)
    intervals = {}
    for name in ESTIMATORS:
        estimator = posterior.load(name)
        if estimator.needs_mean_sd and not backbone.knows_mean_sd:
            continue
        asked = estimator.asks(n)
        answer = sequence.predict(history.queries, sizes=asked.sizes, levels=asked.levels)
        found = estimator.posterior(answer, size=n, reward_variance=float(np.var(history.y)))
        intervals[name] = found.interval(LEVEL)
    return intervals


def _methods(
    loaded: Sequence[Backbone], *, bart: bool
) -> dict[str, Callable[[History], dict[str, Interval]]]:
    names = [backbone.name for backbone in loaded]
    if len(set(names)) < len(names):
        raise ValueError(f"backbones must have different names, got {names}")
    methods: dict[str, Callable[[History], dict[str, Interval]]] = {
        backbone.name: partial(backbone_intervals, backbone) for backbone in loaded
    }
    if bart:
        from pfnts.experiments.calibration_bart import bart_interval

        methods["bart"] = lambda history: {"mcmc": bart_interval(history, level=LEVEL)}
    if not methods:
        raise ValueError("backbones must name at least one, or bart be true, got none")
    return methods


def _check(tasks: Sequence[str], sizes: Sequence[int], *, replications: int, queries: int) -> None:
    for task in tasks:
        if task.startswith("openml-"):
            raise ValueError(f"tasks must be scenarios with known mean rewards, got {task!r}")
        environments.describe(task)
    if not sizes or min(sizes) < 3:
        raise ValueError(f"sizes must be at least 3, got {list(sizes)}")
    if replications < 1 or queries < 1:
        raise ValueError(
            f"replications and queries must be positive integers, got {replications} and {queries}"
        )


def _measured(interval: Interval, history: History, seconds: float) -> Measured:
    lower, upper = interval
    return coverage(lower, upper, history.means), float((upper - lower).mean()), seconds


def _row(task: str, size: int, model: str, variance: str, measured: list[Measured]) -> CoverageRow:
    values = np.array(measured)
    means = values.mean(axis=0)
    errors = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.full(3, np.nan)
    return CoverageRow(
        task=task,
        model=model,
        variance=variance,
        size=size,
        replications=len(values),
        coverage=float(means[0]),
        coverage_error=float(errors[0]),
        length=float(means[1]),
        length_error=float(errors[1]),
        seconds=float(means[2]),
    )
