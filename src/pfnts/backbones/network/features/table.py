"""The features of a row: every number that the network receives with it besides its columns, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True)
class Feature:
    """One or more numbers that are computed for a row from the rows before it."""

    name: str
    kind: Literal["prediction", "note"]
    """A prediction is in the unit of the target; a note helps to weigh predictions."""
    width: int
    """How many numbers."""
    where: str
    """Module that computes it."""
    formula: str


FEATURES = (
    Feature(
        "lines",
        "prediction",
        3,
        "ridge",
        "Ridge regression on a constant and the columns; penalty 0.1 P, P, 10 P",
    ),
    Feature(
        "waves",
        "prediction",
        3,
        "ridge",
        "Ridge regression on a constant and x, sin x, cos x, sin 2x, cos 2x of each column; the same penalties",
    ),
    Feature(
        "kernel",
        "prediction",
        3,
        "kernels",
        "Ridge regression with the kernel exp(-d²/2) + a line, all columns weighted 1/P in d²; "
        "penalty 0.03, 0.3, 3",
    ),
    Feature(
        "weighted kernel",
        "prediction",
        3,
        "kernels",
        "The same, with each column weighted by the variance that its waves explain",
    ),
    Feature(
        "average by evidence",
        "prediction",
        1,
        "features",
        "Bayesian model average of the twelve regressions above, equal prior probabilities",
    ),
    Feature(
        "trees",
        "prediction",
        2,
        "trees",
        "Boosted trees, 8 per round: after 3 rounds, and after all 8 rounds",
    ),
    Feature(
        "nearest rows",
        "prediction",
        3,
        "neighbours",
        "Target of the nearest row; mean of the nearest 4; mean of the nearest 16 weighted by exp(-2 d² / d₈²)",
    ),
    Feature("nearest rows, whitened", "prediction", 3, "neighbours", "The same after whitening the columns"),
    Feature(
        "average by errors",
        "prediction",
        1,
        "track_record",
        "Average of all predictions above, weights (1 + sum of squared errors so far)^(-n/4)",
    ),
    Feature("mean", "prediction", 1, "track_record", "Mean of the targets so far"),
    Feature(
        "distances",
        "note",
        2,
        "neighbours",
        "Log distance to the nearest row, halved: as scaled, and whitened",
    ),
    Feature(
        "leverage",
        "note",
        1,
        "features",
        "Log standard deviation of the line's prediction, in that of the noise",
    ),
    Feature(
        "probabilities",
        "note",
        12,
        "features",
        "Log posterior probability of each regression, at least -10, divided by 4",
    ),
    Feature("errors", "note", 23, "track_record", "Log root mean squared error of each prediction so far"),
    Feature("rows", "note", 1, "track_record", "log(1 + n) / 4"),
)
"""All features, in the order in which the network receives them: predictions first, then notes."""

BY_RECORD = [f.name for f in FEATURES if f.where == "track_record"]
PREDICTIONS = sum(f.width for f in FEATURES if f.kind == "prediction")
"""Number of predictions."""
NOTES = sum(f.width for f in FEATURES if f.kind == "note")
"""Number of notes."""
BASE_PREDICTIONS = PREDICTIONS + NOTES
"""Number of features of a row."""


def places(name: str) -> slice:
    """Return where a feature stands among all.

    Examples
    --------
    >>> places("trees"), places("rows")
    (slice(13, 15, None), slice(61, 62, None))
    """
    begin = 0
    for feature in FEATURES:
        if feature.name == name:
            return slice(begin, begin + feature.width)
        begin += feature.width
    raise KeyError(name)


def arranged(found: Mapping[str, Tensor]) -> Tensor:
    """Concatenate features (..., width) in the order of the table."""
    return torch.cat([found[feature.name] for feature in FEATURES], -1)
