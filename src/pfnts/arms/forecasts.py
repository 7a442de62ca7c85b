"""Rewards as forecast by models that had not seen them, and how good the forecasts were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pfnts.arms.sequences import ArmHistory
from pfnts.backbones.base import Backbone, Question
from pfnts.posterior.base import Array
from pfnts.scores import crps

# As many levels as a PFN puts out; the CRPS of a Gaussian is then right to 0.3 %.
_LEVELS = tuple(np.arange(1, 100) / 100)


@dataclass(frozen=True)
class Forecast:
    """A reward to be scored: what was known of it just before it arrived."""

    layout: int
    """Place of the layout among the candidates."""
    number: int
    """The row's place in the history."""
    arm: int
    size: int
    """Rows of its model that the forecast rests on: a refresh point."""
    row: Array
    """(F,)"""
    reward: float


def scored(
    forecasts: Sequence[Forecast], model_of: Callable[[Forecast], ArmHistory], backbone: Backbone
) -> Array:
    """CRPS (m,) of forecasts, all from one call of the backbone; those of one model and size together."""
    groups: dict[tuple[ArmHistory, int], list[int]] = {}
    for place, forecast in enumerate(forecasts):
        groups.setdefault((model_of(forecast), forecast.size), []).append(place)
    rows, rewards = [f.row for f in forecasts], np.array([f.reward for f in forecasts])
    questions = [
        Question(model.sequence, np.stack([rows[place] for place in places]), (size,), _LEVELS)  # type: ignore[arg-type]
        for (model, size), places in groups.items()
    ]
    losses = np.empty(len(forecasts))
    answers = backbone.predict(questions) if questions else []
    for places, answer in zip(groups.values(), answers, strict=True):
        losses[places] = crps(np.array(_LEVELS), answer.quantiles, rewards[places])
    return losses
