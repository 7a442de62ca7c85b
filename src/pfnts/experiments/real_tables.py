"""Real tables that come with scikit-learn, on which a backbone is scored beside common regressors."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pfnts.experiments.heldout_functions import QUERIES, HeldOutDraw, r2
from pfnts.ope.log import Matrix, Vector


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
