"""What an estimator of posteriors asks of a prediction model, and what it makes of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
import scipy

from pfnts.posterior.base import Array, GaussianPosterior, StudentPosterior, stack
from pfnts.posterior.bounded import BoundedPosterior
from pfnts.posterior.rewards import RewardDistribution, stack_rewards

AnyPosterior: TypeAlias = GaussianPosterior | StudentPosterior | RewardDistribution | BoundedPosterior

_LEVELS = tuple((np.arange(200) + 0.5) / 200)
# Degrees of freedom at which a Student is a Gaussian for every purpose: a stand-in among Student columns.
_NEARLY_GAUSSIAN = 1000.0


@dataclass(frozen=True)
class Asks:
    """What an estimator wants to know after a history of n rows."""

    sizes: tuple[int, ...]
    """Prefix sizes whose predictive means are wanted, ascending; the last is n."""
    levels: tuple[float, ...] = ()
    """Levels of the predictive quantiles that are wanted after all n rows."""


class Answer(Protocol):
    """What a prediction model says; `pfnts.backbones.Prediction` is one."""

    @property
    def means(self) -> Array:
        """(sizes, q) predictive means after each prefix."""
        ...

    @property
    def quantiles(self) -> Array:
        """(levels, q) predictive quantiles after the last."""
        ...

    @property
    def mean_sd(self) -> Array | None:
        """(q,) posterior standard deviation of the mean reward after the last, if the model knows it."""
        ...


@runtime_checkable
class Estimator(Protocol):
    """Turns what a prediction model says about queries into a posterior of the mean rewards there."""

    needs_mean_sd: ClassVar[bool]
    """Whether only a model that knows the standard deviation of the mean will do."""
    coupled: bool
    """Whether arms that share a sequence share the draws of its blocks."""
    own_directions: ClassVar[int]
    """How many of the last directions belong to an arm alone, whatever arms share."""

    def asks(self, n: int) -> Asks:
        """Say what to ask after n >= 3 rows."""
        ...

    def posterior(self, answer: Answer, *, size: int, own: int, reward_variance: float) -> AnyPosterior:
        """Return the posterior at the queries, arrays (q,).

        Parameters
        ----------
        answer
            Predictions for `asks(size)`.
        size
            Rows of the sequence.
        own
            Rows of the arm itself; fewer than ``size`` where arms share a sequence.
        reward_variance
            Variance of the rewards of all arms.
        """
        ...


FLOOR = 3.0
"""Standard deviations of a reward over an arm's number of rows: the least standard deviation of its mean."""


def least_variance(own: int, reward_variance: float) -> float:
    """Return the least variance of the mean of an arm with ``own`` rows: ``(FLOOR / own)^2`` of all rewards'.

    Five equal rewards of one arm show little if the rewards of other arms vary.

    Examples
    --------
    >>> round(least_variance(30, 4.0), 4)
    0.04
    """
    return (FLOOR / max(own, 1)) ** 2 * reward_variance


@dataclass(frozen=True, kw_only=True)
class NetworkPosterior:
    """Normal posterior with the mean reward's mean and standard deviation as the model predicts them.

    The model must predict the latter (``backbone.knows_mean_sd``). The variance is never below
    `least_variance`.

    Examples
    --------
    >>> NetworkPosterior().asks(100)
    Asks(sizes=(100,), levels=())
    """

    needs_mean_sd: ClassVar[bool] = True
    coupled: ClassVar[bool] = False
    own_directions: ClassVar[int] = 0

    def asks(self, n: int) -> Asks:
        """Ask for the mean after all n rows."""
        return Asks((n,))

    def posterior(self, answer: Answer, *, size: int, own: int, reward_variance: float) -> GaussianPosterior:
        """Return the posterior at the queries, arrays (q,)."""
        if answer.mean_sd is None:
            raise ValueError(
                'estimator "network" must have a backbone that knows the standard deviation of the mean; '
                'this one does not, choose estimator="shrunk" or "subclt"'
            )
        variance = np.maximum(answer.mean_sd**2, least_variance(own, reward_variance))
        return GaussianPosterior(mean=answer.means[-1], variance=variance, size=size)


@dataclass(frozen=True, kw_only=True)
class Predictive:
    """The predictive distribution of a reward in the place of a posterior: the paper's PFN-PS.

    It is no posterior of the mean: it stays as wide as the noise, and explores for ever.

    Examples
    --------
    >>> len(Predictive().asks(8).levels)
    200
    """

    needs_mean_sd: ClassVar[bool] = False
    coupled: ClassVar[bool] = False
    own_directions: ClassVar[int] = 0

    def asks(self, n: int) -> Asks:
        """Ask for the predictive distribution after all n rows."""
        return Asks((n,), _LEVELS)

    def posterior(
        self,
        answer: Answer,
        *,
        size: int,
        own: int,  # noqa: ARG002
        reward_variance: float,  # noqa: ARG002
    ) -> RewardDistribution:
        """Return equally likely rewards at the queries, points (M, q)."""
        return RewardDistribution(answer.quantiles, np.full(answer.quantiles.shape[1], size))


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
