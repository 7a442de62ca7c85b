"""The features of a row: all numbers that the network receives with it besides its columns, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True)
class Feature:
    """Numbers of one kind, computed for a row from the rows before it."""

    name: str
    kind: Literal["prediction", "note"]
    """Predictions are in the unit of the target; notes help the network to weigh them."""
    width: int
    """Number of columns."""
    module: str
    """File that computes them."""
    formula: str
    cost: int | None = None
    """Milliseconds on one core for 5,000 rows with 45 columns; None if part of those above."""


FEATURES = (
    Feature("lines", "prediction", 3, "ridge", "ridge regression on 1, x; penalties 0.1 P, P, 10 P", 10),
    Feature("waves", "prediction", 3, "ridge", "the same on 1, x, sin x, cos x, sin 2x, cos 2x", 35),
    Feature(
        "kernel",
        "prediction",
        3,
        "kernels",
        "kernel ridge, exp(-d²/2) + x·x' + 1; penalties 0.03, 0.3, 3",
        258,
    ),
    Feature(
        "weighted kernel",
        "prediction",
        3,
        "kernels",
        "the same, columns weighted by the variance of their waves",
    ),
    Feature(
        "average by evidence", "prediction", 1, "features", "average of these twelve, posterior probabilities"
    ),
    Feature("trees", "prediction", 2, "trees", "boosted trees, 8 per round: after 3 rounds, after 8", 447),
    Feature(
        "nearest",
        "prediction",
        3,
        "neighbours",
        "target of the nearest row, of 4, of 16 weighted by distance",
        169,
    ),
    Feature("nearest, whitened", "prediction", 3, "neighbours", "the same after whitening the columns"),
    Feature(
        "average by errors",
        "prediction",
        1,
        "track_record",
        "average of all above, weights (1 + SSE)^(-n/4)",
        2,
    ),
    Feature("mean", "prediction", 1, "track_record", "mean of the targets"),
    Feature("distances", "note", 2, "neighbours", "half the log distance of the nearest row; whitened"),
    Feature("leverage", "note", 1, "ridge", "log sd of the second line, in sds of the noise"),
    Feature("probabilities", "note", 12, "features", "log posterior probability of each regression, over 4"),
    Feature("errors", "note", 23, "track_record", "log root mean squared error of each prediction"),
    Feature("rows", "note", 1, "track_record", "log(1 + n) / 4"),
)
"""All features, in the order in which the network receives them: predictions, then notes."""

PREDICTIONS = sum(f.width for f in FEATURES if f.kind == "prediction")
"""Number of predictions."""
NOTES = sum(f.width for f in FEATURES if f.kind == "note")
"""Number of notes."""
BASE_PREDICTIONS = PREDICTIONS + NOTES
"""Number of features of a row."""


def places(name: str) -> slice:
    """Return the places of a feature among all.

    Examples
    --------
    >>> places("trees"), places("rows")
    (slice(13, 15, None), slice(61, 62, None))
    """
    names = [feature.name for feature in FEATURES]
    if name not in names:
        raise ValueError(f"name must be one of {', '.join(names)}, got {name!r}")
    number = names.index(name)
    begin = sum(feature.width for feature in FEATURES[:number])
    return slice(begin, begin + FEATURES[number].width)


def arranged(found: Mapping[str, Tensor]) -> Tensor:
    """Concatenate features (..., width) in the order of the table."""
    return torch.cat([found[feature.name] for feature in FEATURES], -1)


def as_markdown() -> str:
    """Return the table for the documentation."""
    lines = ["| feature | kind | width | formula | module | ms |", "|---|---|--:|---|---|--:|"]
    for f in FEATURES:
        cost = "" if f.cost is None else f"{f.cost}"
        lines.append(f"| {f.name} | {f.kind} | {f.width} | {f.formula} | `{f.module}` | {cost} |")
    return "\n".join(lines)
