"""The candidate layouts: how good their forecasts were, and which one answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pfnts.arrays import Matrix, Vector
from pfnts.backbones.base import Append, Backbone
from pfnts.scores import crps

# As many levels as a PFN puts out; the CRPS of a Gaussian is then right to 0.3 %.
LEVELS = tuple(np.arange(1, 100) / 100)
TEMPER = 0.5
"""Share of the evidence of the forecasts that enters the weights."""


@dataclass(frozen=True)
class Scores:
    """CRPS of the forecasts of each candidate layout, over the rows that every candidate forecast.

    Examples
    --------
    >>> Scores.none(2).add(np.array([[0.5, 0.25], [0.5, np.nan]]))
    Scores(totals=(0.5, 0.25), rows=1)
    """

    totals: tuple[float, ...]
    """Sum of the CRPS of each candidate."""
    rows: int
    """Rows scored."""

    @classmethod
    def none(cls, candidates: int) -> Scores:
        """Return scores of no row."""
        return cls((0.0,) * candidates, 0)

    def add(self, losses: Matrix) -> Scores:
        """Add the CRPS (m, L) of rows; NaN where a candidate has no forecast."""
        known = losses[~np.isnan(losses).any(axis=1)]
        totals = list(self.totals)
        for loss in known.tolist():  # one by one: the pieces in which rows come do not matter
            totals = [total + one for total, one in zip(totals, loss, strict=True)]
        return Scores(tuple(totals), self.rows + len(known))

    def weights(self, temper: float = TEMPER) -> Vector:
        """Return the weight (L,) of each candidate: proportional to (mean CRPS)^(-temper n).

        For a Gaussian of estimated scale, n log(mean CRPS) is minus the profile log likelihood up to a
        constant: this is a tempered Bayes factor that needs no scale.

        Examples
        --------
        >>> Scores((10.0, 11.0), 100).weights().round(3)
        array([0.992, 0.008])
        """
        if not self.rows or min(self.totals) <= 0:
            best = np.array(self.totals) == min(self.totals)
            return np.asarray(best / best.sum())
        logs = -temper * self.rows * (np.log(self.totals) - np.log(min(self.totals)))
        weights = np.exp(logs)
        return np.asarray(weights / weights.sum())


def lower_total(active: int, totals: Sequence[float]) -> int:
    """Return the place of the lowest total; ``active`` where it is among the lowest."""
    best = min(totals)
    return active if totals[active] == best else list(totals).index(best)


def appended(
    backbone: Backbone, appends: Sequence[tuple[list[int], Append]], rewards: Vector
) -> dict[int, float]:
    """Append rows to sequences in one call; return the CRPS of the forecasts wanted, by row number.

    ``rewards`` (n,) are those of all rows of the history.
    """
    answers = backbone.append([append for _, append in appends], levels=LEVELS)
    losses: dict[int, float] = {}
    for (rows, _), answer in zip(appends, answers, strict=True):
        if answer is not None:
            found = crps(np.array(LEVELS), answer.quantiles, rewards[rows])
            losses |= dict(zip(rows, found.tolist(), strict=True))
    return losses
