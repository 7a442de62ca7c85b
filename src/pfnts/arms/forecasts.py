"""Rewards as forecast by models that had not seen them, and how good the forecasts were."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    forecasts: Iterable[Forecast], model_of: Callable[[Forecast], ArmHistory], backbone: Backbone
) -> list[tuple[list[Forecast], Array]]:
    """CRPS (m,) of forecasts, those of one model and size together; all from one call of the backbone."""
    groups: dict[tuple[ArmHistory, int], list[Forecast]] = {}
    for forecast in forecasts:
        groups.setdefault((model_of(forecast), forecast.size), []).append(forecast)
    questions = [
        Question(model.sequence, np.stack([f.row for f in group]), (size,), _LEVELS)  # type: ignore[arg-type]
        for (model, size), group in groups.items()
    ]
    answers = backbone.predict(questions) if questions else []
    return [
        (group, crps(np.array(_LEVELS), answer.quantiles, np.array([f.reward for f in group])))
        for group, answer in zip(groups.values(), answers, strict=True)
    ]
