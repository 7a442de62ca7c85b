"""Fixed functions, none seen in training as such, and real tables, on which a backbone is scored."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from pfnts.environments.bart import draw_bart
from pfnts.environments.synthetic import friedman1, friedman2, friedman3
from pfnts.ope.log import Matrix, Vector

MeanReward = Callable[[Matrix], Vector]
"""Contexts (n, P), uniform on the unit cube, to the latent mean (n,)."""

QUERIES = 200


@dataclass(frozen=True)
class HeldOutFunction:
    """A latent mean of uniform contexts, and what is seen of it.

    Examples
    --------
    >>> draw = FUNCTIONS["friedman1-5"].draw(64, number=0, seed=42)
    >>> draw.X.shape, draw.y.shape, draw.queries.shape
    ((64, 5), (64,), (200, 5))
    """

    name: str
    """The word by which it is chosen."""
    description: str
    """One line for a reader of the scores."""
    n_features: int
    """Length P of a context."""
    draw_mean: Callable[[Generator], MeanReward]
    """Draws the latent mean; most functions are the same at every draw."""
    noise: float | None = 1.0
    """Standard deviation of normal noise; None where rewards are 0 or 1 and the latent mean a probability."""
    chosen: bool = False
    """Whether the rows are those on which a policy tried the arm (`chosen_rows`); queries are anybody."""
    largest: ClassVar[float] = math.inf
    """Rows that a history may have."""

    def draw(self, size: int, *, number: int, seed: int) -> HeldOutDraw:
        """Draw ``size`` rows and the queries; more rows continue fewer."""
        entropy = [seed, zlib.crc32(self.name.encode()), number]
        streams = map(np.random.default_rng, np.random.SeedSequence(entropy).spawn(5))
        for_mean, for_rows, for_rewards, for_queries, for_outcomes = streams
        mean = self.draw_mean(for_mean)
        take = partial(chosen_rows, mean=mean) if self.chosen else Generator.random
        X = take(for_rows, (size, self.n_features))
        queries = for_queries.random((QUERIES, self.n_features))
        latent = mean(queries)
        y, outcomes = self._rewards(mean(X), rng=for_rewards), self._rewards(latent, rng=for_outcomes)
        return HeldOutDraw(X, y, queries, latent, outcomes)

    def least_crps(self, latent: Vector) -> float:
        """CRPS that the true distribution of the reward has on average, given the latent means."""
        if self.noise is None:
            return float((latent * (1 - latent)).mean())
        return self.noise / math.sqrt(math.pi)

    def _rewards(self, latent: Vector, *, rng: Generator) -> Vector:
        if self.noise is None:
            return (rng.random(len(latent)) < latent).astype(np.float64)
        return latent + self.noise * rng.standard_normal(len(latent))


@dataclass(frozen=True)
class HeldOutDraw:
    """One history, and what is asked after it."""

    X: Matrix
    """(n, P)"""
    y: Vector
    """(n,)"""
    queries: Matrix
    """(q, P)"""
    latent: Vector
    """(q,) latent mean at the queries."""
    outcomes: Vector
    """(q,) a fresh reward at each query."""
    seed: int = 0
    """For a model that has to draw."""


def chosen_rows(rng: Generator, shape: tuple[int, int], *, mean: MeanReward) -> Matrix:
    """Draw contexts (n, P) on which a policy would have tried an arm with these mean rewards.

    It is the fifth in which the arm leads most over another, whose mean is linear and varies as much; to one
    context in twenty-five the policy shows the arm whatever it expects. More rows continue fewer.

    Examples
    --------
    >>> X = chosen_rows(np.random.default_rng(0), (500, 3), mean=lambda x: x[:, 0])
    >>> X.shape, bool(X[:, 0].mean() > 0.55)
    ((500, 3), True)
    """
    rows, features = shape
    slopes = rng.standard_normal(features)
    anybody = rng.random((2000, features))
    spread = float(mean(anybody).std() / ((anybody @ slopes).std() + 1e-12))

    def lead(x: Matrix) -> Vector:
        other: Vector = spread * (x @ slopes)
        return mean(x) - other

    least, found = np.quantile(lead(anybody), 0.8), np.empty((0, features))
    while len(found) < rows:
        x, luck = rng.random((1000, features)), rng.random(1000)
        found = np.concatenate([found, x[(lead(x) >= least) | (luck < 0.04)]])
    return found[:rows]


def r2(predicted: Vector, truth: Vector) -> float:
    """Share of the variance of ``truth`` (q,) that ``predicted`` (q,) explains."""
    return float(1 - ((predicted - truth) ** 2).mean() / truth.var())


def _linear(rng: Generator) -> MeanReward:
    coefficients = rng.standard_normal(10)
    return lambda x: x @ coefficients


def _steps(rng: Generator) -> MeanReward:
    """Jumps along three columns and one at a corner of two of them, each about three times the noise."""
    heights, cuts = 3 * rng.standard_normal(4), rng.uniform(0.2, 0.8, size=3)

    def mean(x: Matrix) -> Vector:
        above = (x[:, :3] > cuts).astype(np.float64)
        return np.column_stack([above, above[:, 0] * above[:, 1]]) @ heights

    return mean


def _chance(shift: float) -> Callable[[Generator], MeanReward]:
    # Friedman's first function has mean 14.4 and standard deviation 4.9; the logits' is 2.
    return lambda _: lambda x: expit((friedman1(x) - 14.4) / 2.5 - shift)


def _friedman(number: int, function: MeanReward, n_features: int) -> HeldOutFunction:
    about = f"Friedman {number} of {5 if number == 1 else 4} among {n_features} features, noise 1"
    return HeldOutFunction(f"friedman{number}-{n_features}", about, n_features, lambda _: function)


def _chosen(function: HeldOutFunction) -> HeldOutFunction:
    about = f"{function.description}; rows that a policy chose, queries anybody"
    return replace(function, name=f"{function.name}-chosen", description=about, chosen=True)


_ANYBODY = (
    *(
        _friedman(number, function, n_features)
        for number, function in enumerate((friedman1, friedman2, friedman3), 1)
        for n_features in (5, 10, 20)
    ),
    HeldOutFunction("linear-10", "linear in 10 features, coefficients N(0, 1), noise 1", 10, _linear),
    HeldOutFunction(
        "bart-4",
        "sums of 100 trees over 4 features as in the scenario synbart, with its noise of 0.1",
        4,
        lambda rng: draw_bart(n_features=4, rng=rng),
        noise=0.1,
    ),
    HeldOutFunction("steps-10", "jumps along 3 of 10 features and at a corner, noise 1", 10, _steps),
    HeldOutFunction("binary-5", "rewards of 0 or 1, half of them 1, 5 features", 5, _chance(0.0), noise=None),
    HeldOutFunction(
        "binary-rare-5", "rewards of 0 or 1, one in fifteen 1, 5 features", 5, _chance(4.0), noise=None
    ),
)

_CHOSEN = ("linear-10", "friedman1-5", "friedman3-5", "bart-4", "steps-10", "binary-5")
FUNCTIONS: dict[str, HeldOutFunction] = {function.name: function for function in _ANYBODY}
"""Every held-out function, by name; the last ones are some of the first, with rows that a policy chose."""
FUNCTIONS |= {each.name: each for each in (_chosen(FUNCTIONS[name]) for name in _CHOSEN)}


@dataclass(frozen=True)
class RealTable:
    """Rows of a real table in random order: a history, and up to 200 others that are asked about.

    Nothing is known of the means but the targets themselves, so these take the place of the latent mean.
    """

    name: str
    """The word by which it is chosen."""
    description: str
    """One line for a reader of the scores."""
    n_features: int
    """Length P of a context."""
    rows: int
    """Rows of the table, of which a third at most are asked about."""
    source: str
    """What comes after ``load_`` in scikit-learn."""
    label: int | None
    """The class whose rows have target 1, others 0; None where targets are numbers."""

    @property
    def largest(self) -> int:
        """Rows that a history may have: all but those that are asked about."""
        return self.rows - min(QUERIES, self.rows // 3)

    def draw(self, size: int, *, number: int, seed: int) -> HeldOutDraw:
        """Draw ``size`` rows and the queries; more rows continue fewer."""
        if size > self.largest:
            raise ValueError(f"sizes must be at most {self.largest} for {self.name}, got {size}")
        X, y = _load(self.source)
        targets = y if self.label is None else (y == self.label).astype(np.float64)
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode()), number])
        order = rng.permutation(len(y))
        asked, rows = np.split(order, [self.rows - self.largest])
        rows = rows[:size]
        return HeldOutDraw(X[rows], targets[rows], X[asked], latent=targets[asked], outcomes=targets[asked])

    def least_crps(self, latent: Vector) -> float:  # noqa: ARG002
        """Not known of a real table."""
        return math.nan


@lru_cache(maxsize=4)
def _load(source: str) -> tuple[Matrix, Vector]:
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError("real tables need scikit-learn; install pfnts[bench]") from error
    table = getattr(datasets, f"load_{source}")()
    return table.data.astype(np.float64), table.target.astype(np.float64)


def best_regressor(draws: list[HeldOutDraw]) -> float:
    """Mean R2 over draws of the best of forest, boosting, ridge regression and five nearest neighbours."""
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def score(model: Any, draw: HeldOutDraw) -> float:
        return r2(model.fit(draw.X, draw.y).predict(draw.queries), draw.outcomes)

    n = len(draws[0].y)
    models = [
        RandomForestRegressor(200, random_state=0),
        HistGradientBoostingRegressor(min_samples_leaf=min(20, max(2, n // 8)), random_state=0),
        make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 11))),
        make_pipeline(StandardScaler(), KNeighborsRegressor(min(5, n))),
    ]
    return max(float(np.mean([score(model, draw) for draw in draws])) for model in models)


TABLES: dict[str, RealTable] = {
    table.name: table
    for table in (
        RealTable("digits", "is an 8 x 8 image a three?", 64, 1797, "digits", 3),
        RealTable("breast-cancer", "is a tumour malignant?", 30, 569, "breast_cancer", 0),
        RealTable("wine", "is a wine from the first of three growers?", 13, 178, "wine", 0),
        RealTable("diabetes", "how far a disease has gone after a year", 10, 442, "diabetes", None),
    )
}
"""Every real table, by name."""

HeldOut = HeldOutFunction | RealTable
KNOWN: dict[str, HeldOut] = {**FUNCTIONS, **TABLES}
"""What a backbone can be scored on, by name."""
