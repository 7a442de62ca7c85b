"""What an estimator of posteriors asks of a prediction model, and what it makes of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

from pfnts.posterior.base import Array
from pfnts.posterior.bounded import BoundedPosterior
from pfnts.posterior.gaussian import GaussianPosterior
from pfnts.posterior.rewards import RewardDistribution
from pfnts.posterior.student import StudentPosterior

AnyPosterior: TypeAlias = GaussianPosterior | StudentPosterior | RewardDistribution | BoundedPosterior


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

    def posterior(self, answer: Answer, *, size: int, reward_variance: float) -> AnyPosterior:
        """Give the posterior at the queries, arrays (q,).

        Parameters
        ----------
        answer
            What the model said to `asks(size)`.
        size
            Rows of the history.
        reward_variance
            Variance of the rewards of all arms so far.
        """
        ...
