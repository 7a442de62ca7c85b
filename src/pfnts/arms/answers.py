"""From what a prediction model says about arms to a posterior of their mean rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from pfnts.arms.sequences import ArmHistory, LayoutSequences
from pfnts.backbones.base import Backbone, Prediction, Question
from pfnts.posterior import AnyPosterior, Estimator, GaussianPosterior, RewardDistribution, stack
from pfnts.posterior.base import Array
from pfnts.posterior.rewards import stack_rewards

# Degrees of freedom at which a Student is a Gaussian for every purpose: a stand-in among Student columns.
_NEARLY_GAUSSIAN = 1000.0


def posteriors(
    sequences: LayoutSequences,
    rows: Array,
    numbers: NDArray[np.int64],
    *,
    q: int,
    backbone: Backbone,
    estimator: Estimator,
) -> list[AnyPosterior | None]:
    """Posterior of each arm's mean reward, arrays (q,), from one prediction; None without a refresh point.

    Parameters
    ----------
    sequences
        The layout that answers.
    rows, numbers
        Contexts with features of arms (K q, P + A), and arms (K q,), arm by arm.
    q
        Contexts.
    backbone, estimator
        Who is asked, and who says what to ask.
    """
    queries = sequences.features(rows, numbers)
    models = [sequences.of(arm) for arm in numbers[::q].tolist()]
    parts = [slice(start, start + q) for start in range(0, len(rows), q)]
    answers: dict[int, Prediction] = {}
    if sequences.layout.shared and models[0].version:
        # One question about every context under every arm.
        [whole] = backbone.predict([_question(models[0], queries, estimator)])
        answers = {place: _part(whole, which) for place, which in enumerate(parts)}
    else:
        ready = [place for place, model in enumerate(models) if model.version]
        questions = [_question(models[place], queries[parts[place]], estimator) for place in ready]
        answers = dict(zip(ready, backbone.predict(questions) if questions else [], strict=True))
    return [
        estimator.posterior(answers[place], size=model.version, reward_variance=model.reward_variance)
        if place in answers
        else None
        for place, model in enumerate(models)
    ]


def stand_in(rewards: Array, q: int) -> GaussianPosterior:
    """What is said of an arm without a posterior of its own: its mean is like a reward (n,) of any arm."""
    scale = np.full(q, np.std(rewards))
    return GaussianPosterior(
        mean=np.full(q, np.mean(rewards)), variance=scale**2, size=1, directions=scale[None]
    )


def join(columns: Sequence[AnyPosterior], *, coupled: bool, own: int) -> AnyPosterior:
    """Join posteriors (q,), one per arm, into (q, K); the last ``own`` directions stay each arm's own."""
    for column in columns:
        if isinstance(column, RewardDistribution):
            return stack_rewards([_rewards(other, len(column.points)) for other in columns])
    if len({type(column) for column in columns}) > 1:
        columns = [
            column.student(_NEARLY_GAUSSIAN) if isinstance(column, GaussianPosterior) else column
            for column in columns
        ]
    joined: GaussianPosterior = stack(columns, coupled=coupled)  # type: ignore[type-var, assignment]
    if coupled and own and joined.directions is not None:
        return replace(joined, directions=_unshared(joined.directions, own))
    return joined


def _rewards(column: AnyPosterior, count: int) -> RewardDistribution:
    """Give equally likely rewards, also for a stand-in."""
    if isinstance(column, RewardDistribution):
        return column
    normal = scipy.special.ndtri((np.arange(count) + 0.5) / count)
    return RewardDistribution(column.mean + normal[:, None] * np.sqrt(column.variance), column.size)


def _question(model: ArmHistory, queries: Array, estimator: Estimator) -> Question:
    asked = estimator.asks(model.version)
    assert model.sequence is not None
    return Question(model.sequence, queries, asked.sizes, asked.levels)


def _part(whole: Prediction, which: slice) -> Prediction:
    sd = None if whole.mean_sd is None else whole.mean_sd[which]
    return Prediction(whole.means[:, which], whole.quantiles[:, which], sd)


def _unshared(directions: Array, own: int) -> Array:
    """Spread the last ``own`` directions (J, q, K) so that each arm's part has draws to itself."""
    shared, rest = directions[:-own], directions[-own:]
    arms = directions.shape[-1]
    spread = rest[:, None] * np.eye(arms)[None, :, None, :]
    return np.concatenate([shared, spread.reshape(own * arms, *directions.shape[1:])])
