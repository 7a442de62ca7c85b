"""Estimators: from predictions to posteriors of mean rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
import scipy

from pfnts.posterior.base import Array, GaussianPosterior, stack
from pfnts.posterior.bounded import BoundedPosterior
from pfnts.posterior.mixture import MixturePosterior
from pfnts.posterior.rewards import RewardDistribution, stack_rewards

AnyPosterior: TypeAlias = GaussianPosterior | RewardDistribution | BoundedPosterior | MixturePosterior

_LEVELS = tuple((np.arange(200) + 0.5) / 200)


@dataclass(frozen=True)
class Asks:
    """The predictions that an estimator needs after a history of n rows."""

    sizes: tuple[int, ...]
    """Sizes of the prefixes whose predictive means it needs, ascending; the last is n."""
    levels: tuple[float, ...] = ()
    """Levels of the predictive quantiles that it needs after all n rows."""


class Answer(Protocol):
    """Predictions at q queries; `pfnts.backbones.Prediction` is one."""

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
        """(q,) posterior standard deviation of the mean reward after the last, if the model predicts it."""
        ...


@runtime_checkable
class Estimator(Protocol):
    """Makes a posterior of the mean rewards at queries from the predictions there."""

    needs_mean_sd: ClassVar[bool]
    """True if it needs a model that predicts the standard deviation of the mean."""

    def asks(self, n: int) -> Asks:
        """Return the predictions that it needs after n >= 3 rows."""
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

    def asks(self, n: int) -> Asks:
        """Ask for the mean after all n rows."""
        return Asks((n,))

    def posterior(
        self,
        answer: Answer,
        *,
        size: int,  # noqa: ARG002
        own: int,
        reward_variance: float,
    ) -> GaussianPosterior:
        """Return the posterior at the queries, arrays (q,), of the arm's own number of rows."""
        if answer.mean_sd is None:
            raise ValueError(
                'estimator "network" must have a backbone that knows the standard deviation of the mean; '
                'this one does not, choose estimator="shrunk" or "subclt"'
            )
        variance = np.maximum(answer.mean_sd**2, least_variance(own, reward_variance))
        return GaussianPosterior(mean=answer.means[-1], variance=variance, size=max(own, 1))


@dataclass(frozen=True, kw_only=True)
class Predictive:
    """The predictive distribution of a reward instead of a posterior: the paper's PFN-PS.

    It is no posterior of the mean: it stays as wide as the noise, so that exploration never ends.

    Examples
    --------
    >>> len(Predictive().asks(8).levels)
    200
    """

    needs_mean_sd: ClassVar[bool] = False

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


def pooled(rewards: Array, q: int) -> GaussianPosterior:
    """Return the posterior (q,) of an arm with too few rows: its mean is like a reward (n,) of any arm."""
    return GaussianPosterior(mean=np.full(q, np.mean(rewards)), variance=np.full(q, np.var(rewards)), size=1)


def join(columns: Sequence[AnyPosterior]) -> AnyPosterior:
    """Join posteriors (q,), one per arm, into (q, K); all become rewards where one of them is."""
    for column in columns:
        if isinstance(column, RewardDistribution):
            return stack_rewards([_rewards(other, len(column.points)) for other in columns])
    return stack(columns)  # type: ignore[arg-type]


def _rewards(column: AnyPosterior, count: int) -> RewardDistribution:
    """Return equally likely rewards of an arm, also where its posterior is that of `pooled`."""
    if isinstance(column, RewardDistribution):
        return column
    normal = scipy.special.ndtri((np.arange(count) + 0.5) / count)
    return RewardDistribution(column.mean + normal[:, None] * np.sqrt(column.variance), column.size)
