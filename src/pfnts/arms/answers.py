"""The posteriors of arms, joined into one; some may have none of their own yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from pfnts.posterior import AnyPosterior, GaussianPosterior, RewardDistribution, stack
from pfnts.posterior.base import Array
from pfnts.posterior.rewards import stack_rewards

# Degrees of freedom at which a Student is a Gaussian for every purpose: a stand-in among Student columns.
_NEARLY_GAUSSIAN = 1000.0


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


def _unshared(directions: Array, own: int) -> Array:
    """Spread the last ``own`` directions (J, q, K) so that each arm's part has draws to itself."""
    shared, rest = directions[:-own], directions[-own:]
    arms = directions.shape[-1]
    spread = rest[:, None] * np.eye(arms)[None, :, None, :]
    return np.concatenate([shared, spread.reshape(own * arms, *directions.shape[1:])])
