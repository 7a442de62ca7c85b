"""The posterior of the mean reward that the prediction model itself has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pfnts.posterior.estimator import Answer, Asks
from pfnts.posterior.gaussian import GaussianPosterior


@dataclass(frozen=True, kw_only=True)
class NetworkPosterior:
    """A normal posterior with the mean and the standard deviation that the model gives for the mean reward.

    It needs a model that knows the latter (``backbone.knows_mean_sd``), and asks about one prefix only.

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

    def posterior(self, answer: Answer, *, size: int, reward_variance: float) -> GaussianPosterior:  # noqa: ARG002
        """Give the posterior at the queries, arrays (q,)."""
        if answer.mean_sd is None:
            raise ValueError(
                'estimator "network" must have a backbone that knows the standard deviation of the mean; '
                'this one does not, choose estimator="shrunk" or "subclt"'
            )
        return GaussianPosterior(mean=answer.means[-1], variance=answer.mean_sd**2, size=size)
