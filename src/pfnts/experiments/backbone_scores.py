"""How well a backbone predicts held-out functions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pfnts.backbones import Backbone, LinearBackbone
from pfnts.experiments.heldout import FUNCTIONS, KNOWN, HeldOut, HeldOutDraw, RealTable, best_regressor, r2
from pfnts.experiments.outcomes import mean_and_error
from pfnts.ope.log import Matrix
from pfnts.scores import coverage, crps

SIZES = (16, 64, 256, 1024, 4096)
LEVELS = np.arange(1, 100) / 100
LOW, HIGH = 4, 94
"""Positions of 5 % and 95 % among the levels."""
WIDTH = 1.96
"""Standard deviations to either side in a 95 % interval."""
PUBLISHED = {("friedman1-10", 200): 0.95}
"""R2 of TabPFN v2 on scikit-learn's make_friedman1, which is the same function of the same contexts."""


@dataclass(frozen=True)
class BackboneScore:
    """Scores of a backbone on one held-out function after one number of rows."""

    function: str
    """The function's name."""
    size: int
    """Rows of the history."""
    draws: int
    """How many histories the scores are over."""
    r2: float
    """1 - squared error of the predictive mean over variance of the latent mean, averaged over draws."""
    r2_error: float
    """Standard error of that average; NaN for a single draw."""
    crps: float
    """CRPS of the predictive distribution at fresh rewards."""
    least_crps: float
    """What the true distribution of the reward would score."""
    coverage: float
    """Share of fresh rewards within the 90 % predictive interval."""
    mean_coverage: float
    """Share of latent means within the 95 % interval of the mean; NaN where the backbone gives none."""
    level_drift: float
    """See `drift`."""
    shape_drift: float
    """See `drift`."""
    reference: float | None
    """R2 to compare with: of ridge with the right prior on linear functions, of TabPFN v2 on friedman1-10,
    of the best of forest, boosting, ridge and five neighbours on a real table."""
    seconds: float
    """Mean time of a draw: history read, 200 queries answered."""


def score_backbone(
    backbone: Backbone,
    *,
    functions: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    draws: int = 10,
    seed: int = 42,
    listener: Callable[[HeldOut, int, int], None] = lambda *_: None,
) -> Iterator[BackboneScore]:
    """Score a backbone on held-out functions, each history from scratch, and yield the scores as they come.

    Parameters
    ----------
    backbone
        What to score.
    functions
        Names of held-out functions and real tables; all functions when left out.
    sizes
        Rows of the histories, each at least 4; a size with a published figure is added if below the largest,
        and one that a real table is too short for is left out.
    draws
        Histories for each function and size.
    seed
        The same seed gives the same histories.
    listener
        Told the function, the size and the number of the draw about to be scored.

    Examples
    --------
    >>> (score,) = score_backbone(LinearBackbone(), functions=["linear-10"], sizes=[256], draws=2)
    >>> score.r2 > 0.85, 0.8 < score.coverage < 1
    (True, True)
    """
    for function, size in planned(functions, sizes, draws=draws):
        measured, drawn = [], []
        began = time.perf_counter()
        for number in range(draws):
            listener(function, size, number)
            drawn.append(function.draw(size, number=number, seed=seed))
            measured.append(measure(backbone, function, drawn[-1]))
        seconds = (time.perf_counter() - began) / draws
        scores = {name: mean_and_error([score[name] for score, _ in measured]) for name in measured[0][0]}
        means = {name: mean for name, (mean, _) in scores.items()}
        level, shape = drift(*np.stack([said for _, said in measured], axis=1))
        means |= {"r2_error": scores["r2"][1], "level_drift": level, "shape_drift": shape, "seconds": seconds}
        yield BackboneScore(function.name, size, draws, reference=_reference(function, drawn), **means)


def planned(
    functions: Sequence[str] | None, sizes: Sequence[int], *, draws: int
) -> list[tuple[HeldOut, int]]:
    """List the functions and sizes to score, in the order of scoring."""
    names = list(FUNCTIONS) if functions is None else list(functions)
    for name in names:
        if name not in KNOWN:
            raise ValueError(f"functions must be among {', '.join(KNOWN)}; got {name!r}")
    if not sizes or min(sizes) < 4:
        raise ValueError(f"sizes must be at least 4, got {list(sizes)}")
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    tasks = {(name, n) for name in names for n in sizes if n <= KNOWN[name].largest}
    tasks |= {(name, size) for name, size in PUBLISHED if name in names and size <= max(sizes)}
    ordered = sorted(tasks, key=lambda task: (names.index(task[0]), task[1]))
    return [(KNOWN[name], size) for name, size in ordered]


def measure(backbone: Backbone, function: HeldOut, draw: HeldOutDraw) -> tuple[dict[str, float], Matrix]:
    """Show a backbone one history: scores of its answers, and means (2, q) after half and all of the rows."""
    size = len(draw.y)
    sequence = backbone.sequence(draw.X, draw.y)
    said = sequence.predict(draw.queries, sizes=[size // 2, size], levels=LEVELS)
    whole, quantiles, sd = said.means[1], said.quantiles, said.mean_sd
    scores = {
        "r2": r2(whole, draw.latent),
        "crps": float(crps(LEVELS, quantiles, draw.outcomes).mean()),
        "least_crps": function.least_crps(draw.latent),
        "coverage": coverage(quantiles[LOW], quantiles[HIGH], draw.outcomes),
        "mean_coverage": math.nan,
    }
    if sd is not None:
        scores["mean_coverage"] = coverage(whole - WIDTH * sd, whole + WIDTH * sd, draw.latent)
    return scores, said.means


def drift(before: Matrix, after: Matrix) -> tuple[float, float]:
    """How far predictive means (draws, q) moved in a direction that could have been foreseen, in two numbers.

    Predictive means of a Bayesian are a martingale: no statistic of the past says where they will move. Two
    such statistics are looked at here. The *level* drift is the mean increment over the root mean square of
    the increments: positive where predictions rise. The *shape* drift is the correlation, about zero, of the
    increments with how far the earlier predictions were from their mean over the queries: positive where
    they had been shrunk too much, negative where they had followed the noise. Both lie between -1 and 1, and
    are zero on average over functions drawn from the backbone's own prior.
    """
    increment, deviation = after - before, before - before.mean(axis=1, keepdims=True)
    moved, spread = np.sqrt((increment**2).mean()), np.sqrt((deviation**2).mean())
    if moved == 0:
        return 0.0, 0.0
    shape = (increment * deviation).mean() / (moved * spread) if spread > 0 else 0.0
    return float(increment.mean() / moved), float(shape)


def _reference(function: HeldOut, drawn: list[HeldOutDraw]) -> float | None:
    if isinstance(function, RealTable):
        return best_regressor(drawn)
    if not function.name.startswith("linear-10"):
        return PUBLISHED.get((function.name, len(drawn[0].y)))
    # Coefficients and noise as they are drawn; what is known of the intercept costs it next to nothing.
    ridge = LinearBackbone(precision=1.0, noise=1.0, standardize=False)
    return float(np.mean([measure(ridge, function, draw)[0]["r2"] for draw in drawn]))
