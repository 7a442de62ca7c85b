"""How an arm is chosen, with exact propensities: functions of a prediction, a mask and uniform numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix, Vector
from pfnts.policies.decision import Choices, Reason
from pfnts.policies.model import Answer, Shortlisted, Values, values_of
from pfnts.posterior import AnyPosterior


class Rule(Protocol):
    """Chooses an arm at each context."""

    @property
    def reason(self) -> Reason:
        """The reason of its decisions."""
        ...

    def n_uniforms(self, n_arms: int) -> int:
        """Return how many uniform numbers a choice among so many arms takes."""
        ...

    def __call__(self, answer: Answer, eligible: Mask, uniforms: Matrix, costs: Vector | None) -> Choices:
        """Choose among the ``eligible`` arms (q, K) with ``uniforms`` (q, n), ``costs`` (K,) deducted."""
        ...


@dataclass(frozen=True)
class Thompson:
    """Draw each arm's mean reward from the posterior and take the largest.

    ``exploration`` is a factor on the posterior's standard deviations; 0 takes the largest mean. ``mixture``
    is whether the posterior may be a mixture, of which a component is drawn first.
    """

    exploration: float = 1.0
    mixture: bool = False

    @property
    def reason(self) -> Reason:
        """ "thompson", or "greedy" where nothing is drawn."""
        return "thompson" if self.exploration else "greedy"

    def n_uniforms(self, n_arms: int) -> int:
        """One for each arm, one for ties, and one for the component of a mixture."""
        return n_arms + 1 + self.mixture

    def __call__(self, answer: Answer, eligible: Mask, uniforms: Matrix, costs: Vector | None) -> Choices:
        """Draw."""
        assert not isinstance(answer, Values), "Thompson sampling needs a posterior"
        if not isinstance(answer, Shortlisted):
            return thompson(answer, eligible, uniforms, exploration=self.exploration, costs=costs)
        positions = answer.positions
        few = thompson(
            answer.posterior,
            np.take_along_axis(eligible, positions, axis=1),
            np.concatenate([uniforms[:, : positions.shape[1] + self.mixture], uniforms[:, -1:]], axis=1),
            exploration=self.exploration,
            costs=None if costs is None else costs[positions],
        )
        shares = np.zeros(eligible.shape)
        np.put_along_axis(shares, positions, few.propensities, axis=1)  # the others are never chosen
        index = np.take_along_axis(positions, few.index[:, None], axis=1)[:, 0]
        return Choices(index, shares, answer.posterior, positions, answer.explore)


@dataclass(frozen=True)
class Greedy:
    """Take the largest value or posterior mean; equal ones share the decision evenly."""

    reason: Reason = field(default="greedy")

    def n_uniforms(self, n_arms: int) -> int:  # noqa: ARG002
        """One, for ties."""
        return 1

    def __call__(self, answer: Answer, eligible: Mask, uniforms: Matrix, costs: Vector | None) -> Choices:
        """Take the largest."""
        values = values_of(answer)
        return greedy(values if costs is None else values - costs, eligible, uniforms[:, -1])


@dataclass(frozen=True)
class UpperBound:
    """Take the largest upper bound: so many standard deviations above the posterior mean."""

    alpha: float = 1.0
    reason: Reason = field(default="greedy", init=False)

    def n_uniforms(self, n_arms: int) -> int:  # noqa: ARG002
        """One, for ties."""
        return 1

    def __call__(self, answer: Answer, eligible: Mask, uniforms: Matrix, costs: Vector | None) -> Choices:
        """Take the largest bound."""
        assert not isinstance(answer, Values | Shortlisted), "an upper bound needs a posterior of all arms"
        bounds = answer.mean + self.alpha * np.sqrt(answer.variance)
        return greedy(bounds if costs is None else bounds - costs, eligible, uniforms[:, -1])


@dataclass(frozen=True)
class InverseGap:
    """SquareCB (Foster and Rakhlin, 2020): the larger an arm's gap to the best, the smaller its probability.

    The weight of a gap is ``rate`` times the root of the number of rows.
    """

    rate: float = 2.0
    reason: Reason = field(default="explore", init=False)

    def n_uniforms(self, n_arms: int) -> int:  # noqa: ARG002
        """One."""
        return 1

    def __call__(self, answer: Answer, eligible: Mask, uniforms: Matrix, costs: Vector | None) -> Choices:
        """Draw."""
        assert not isinstance(answer, Shortlisted), "inverse gap weighting needs values of all arms"
        values, weight = values_of(answer), self.rate * np.sqrt(np.sum(answer.size))
        shares = inverse_gap_weights(values if costs is None else values - costs, eligible, weight=weight)
        return Choices(drawn(shares, uniforms[:, 0]), shares)


@dataclass(frozen=True)
class AsPredicted:
    """Draw an arm with the probabilities that the model returns as its values."""

    reason: Reason = field(default="explore", init=False)

    def n_uniforms(self, n_arms: int) -> int:  # noqa: ARG002
        """One."""
        return 1

    def __call__(self, answer: Answer, eligible: Mask, uniforms: Matrix, costs: Vector | None) -> Choices:  # noqa: ARG002
        """Draw."""
        shares = np.where(eligible, values_of(answer), 0.0)
        shares = shares / shares.sum(axis=1, keepdims=True)
        return Choices(drawn(shares, uniforms[:, 0]), shares)


def thompson(
    posterior: AnyPosterior,
    eligible: Mask,
    uniforms: Matrix,
    *,
    exploration: float = 1.0,
    costs: Vector | None = None,
) -> Choices:
    """Draw mean rewards (q, K) and take the largest of each row.

    Parameters
    ----------
    posterior
        Of the mean rewards, (q, K).
    eligible
        Arms that may be taken, (q, K).
    uniforms
        (q, n) numbers: as many as a draw of the posterior needs (one for each entry, one more for a mixture),
        and the last of each row to break ties.
    exploration
        Factor on the standard deviations of the draw; 0 takes the largest mean.
    costs
        Deducted from the mean reward of each arm, (K,) or (q, K).
    """
    scaled = posterior if exploration == 1.0 else posterior.scaled(exploration)
    scaled = scaled if costs is None else scaled.shifted(costs)
    index = largest(scaled.draw(uniforms), eligible, uniforms[:, -1])
    return Choices(index, scaled.best_arm_probabilities(eligible), posterior)


def greedy(values: Matrix, eligible: Mask, tie_break: Vector) -> Choices:
    """Take the largest value of each row (q, K); equal ones share the decision evenly."""
    allowed = np.where(eligible, values, -np.inf)
    best = allowed == allowed.max(axis=1, keepdims=True)
    return Choices(largest(values, eligible, tie_break), best / best.sum(axis=1, keepdims=True))


def inverse_gap_weights(values: Matrix, eligible: Mask, *, weight: float) -> Matrix:
    """Probabilities (q, K): 1 / (K + weight * gap) for eligible arms but the best, which has the rest.

    Examples
    --------
    >>> inverse_gap_weights(np.array([[1.0, 0.0]]), np.ones((1, 2), dtype=bool), weight=8.0)
    array([[0.9, 0.1]])
    """
    allowed = np.where(eligible, values, -np.inf)
    rows, best = np.arange(len(values)), allowed.argmax(axis=1)
    gaps = np.where(eligible, allowed.max(axis=1, keepdims=True) - values, 0.0)
    shares = np.where(eligible, 1 / (eligible.sum(axis=1, keepdims=True) + weight * gaps), 0.0)
    shares[rows, best] = 0.0
    shares[rows, best] = 1.0 - shares.sum(axis=1)
    return shares


def largest(values: Matrix, eligible: Mask, tie_break: Vector) -> Counts:
    """Position (q,) of the largest eligible value of each row; ``tie_break`` (q,) picks among equal ones."""
    allowed = np.where(eligible, values, -np.inf)
    equal = allowed == allowed.max(axis=1, keepdims=True)
    rank = (tie_break * equal.sum(axis=1)).astype(np.int64)
    return np.asarray((equal.cumsum(axis=1) > rank[:, None]).argmax(axis=1))


def drawn(shares: Matrix, uniform: Vector) -> Counts:
    """Position (q,) drawn from probabilities (q, K) by a uniform number (q,) each."""
    below = shares.cumsum(axis=1) <= uniform[:, None]
    # Rounding may leave the sum a little below a number drawn: the last arm that may be taken, then.
    last = shares.shape[1] - 1 - (shares[:, ::-1] > 0).argmax(axis=1)
    return np.asarray(np.minimum(below.sum(axis=1), last))


def evenly(eligible: Mask, uniform: float) -> int:
    """Position of one of the eligible arms (K,), uniformly at random."""
    arms = np.flatnonzero(eligible)
    return int(arms[int(uniform * len(arms))])
