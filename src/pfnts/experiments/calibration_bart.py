"""Intervals of BART with the prior that Chipman, George and McCulloch (2010) recommend, by bartz."""

from __future__ import annotations

import warnings

import numpy as np

from pfnts.experiments.calibration import Interval
from pfnts.experiments.heldout import HeldOutDraw

try:
    from bartz.BART import gbart  # type: ignore[attr-defined]
except ImportError as error:
    raise ImportError('BART needs bartz, install the extra: pip install "pfnts[baselines]"') from error

TREES = 100
BURN_IN = 500
DRAWS = 500


def bart_interval(history: HeldOutDraw, *, level: float) -> Interval:
    """Give the central ``level`` of 500 draws of the mean reward at the queries, (q,) and (q,).

    A node at depth d splits with probability 0.95 / (1 + d)^2, in contrast to the trees of BFTS; the noise
    variance is guessed from a linear regression. The first history of each size waits for a compiler.
    """
    size, width = history.X.shape
    # A linear regression with an intercept needs a row more than it has coefficients.
    guess = {} if size > width + 1 else {"sigest": float(history.y.std())}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prior = {"base": 0.95, "power": 2.0, "k": 2.0, "ntree": TREES, **guess}
        chain = {"nskip": BURN_IN, "ndpost": DRAWS, "printevery": None, "seed": history.seed}
        X, y, queries = (part.astype(np.float32) for part in (history.X, history.y, history.queries))
        fitted = gbart(X, y, x_test=queries, **prior, **chain)
    draws = np.asarray(fitted.yhat_test, dtype=np.float64)
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return lower, upper
