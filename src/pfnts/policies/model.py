"""What a policy asks of the model that it has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix, Vector
from pfnts.events import ActionSet, History
from pfnts.posterior import AnyPosterior


@dataclass(frozen=True)
class Shape:
    """Sizes that a model is made for."""

    width: int
    """Floats in a context."""
    arms: int
    """Arms there have ever been; their numbers are below."""
    first: int
    """Arms at the beginning."""
    features: int = 0
    """Floats in the features of an arm."""


@dataclass(frozen=True)
class Values:
    """Value of each arm by a model without a posterior: a predicted mean, an upper bound, a probability."""

    values: Matrix
    """(q, K)"""
    size: Vector
    """(K,) rows that the values of each arm rest on."""

    @property
    def mean(self) -> Matrix:
        """The values, (q, K)."""
        return self.values


@dataclass(frozen=True)
class Shortlisted:
    """A posterior of some of the arms at each context: there were too many to ask about all of them."""

    posterior: AnyPosterior
    """(q, S)"""
    positions: Counts
    """(q, S) positions of these arms."""
    explore: float
    """Share of the decisions in which any eligible arm is drawn uniformly."""


Answer: TypeAlias = AnyPosterior | Values | Shortlisted


class Model(Protocol):
    """Learns rows and predicts rewards of arms; a policy has one.

    Contexts are floats, arms are numbers: an arm's place among all arms there have ever been, which is never
    given to another arm. A subclass implements `fresh`, `observe` and `predict`. What it predicts must follow
    from the rows alone, however they were cut into calls.
    """

    takes_features: bool = False
    """Whether arms may have features, and decisions candidates of their own."""
    copies: bool = False
    """Whether a deep copy takes less time than learning the rows."""

    @abstractmethod
    def fresh(self, shape: Shape) -> Model:
        """Return a model of the same settings that has seen no row."""

    @abstractmethod
    def observe(self, history: History, start: int, end: int) -> None:
        """Learn the rows from ``start`` to ``end``: their contexts, features, arms and rewards."""

    @abstractmethod
    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> Answer:
        """Return a posterior (q, K) of the mean rewards of ``arms`` at contexts ``X`` (q, P), or `Values`.

        Predictions for arms that are not ``eligible`` (q, K) are not used; None asks for all arms.
        """

    def held(self, history: History, arms: ActionSet) -> Counts:
        """Return the rows of each arm that predictions rest on, (K,); below ``warmup`` it is cold."""
        return history.rows_of(arms)

    def version(self, history: History, arms: ActionSet) -> Hashable:  # noqa: ARG002
        """Return a value that stays equal as long as predictions for these arms do."""
        return history.size

    def unchanged(self, arms: Counts) -> int:  # noqa: ARG002
        """Return how many rows of these arms (m,), in this order, change no prediction."""
        return 0

    def lasts(self) -> int | None:
        """Return the number of rows after which any row changes predictions; None if not known."""
        return None

    def make_room(self, n_arms: int) -> bool:  # noqa: ARG002
        """Make room for more arms, if predictions stay as they are; otherwise the model is made again."""
        return False

    def announce(self, X: Matrix) -> None:  # noqa: ARG002
        """Use contexts (m, P) to come for computing predictions in batches, if that saves time."""
        return

    def prepare(self) -> None:
        """Compute now what the next prediction would otherwise wait for."""
        return


def values_of(answer: Answer) -> Matrix:
    """Values, or posterior means, (q, K)."""
    return np.asarray(answer.posterior.mean if isinstance(answer, Shortlisted) else answer.mean)
