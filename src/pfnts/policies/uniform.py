"""The policy that never learns: every eligible arm alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.policies.base import Choice, Mask, Matrix, Policy, Vector


class Uniform(Policy):
    """Choose uniformly at random among the eligible arms.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> Uniform(arms=4).decide([0.0], rng=np.random.default_rng(0)).propensities
    array([0.25, 0.25, 0.25, 0.25])
    """

    name = "uniform"

    def _choose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> Sequence[Choice]:  # noqa: ARG002
        return [Choice(int(rng.choice(np.flatnonzero(mask))), mask / mask.sum()) for mask in eligible]

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        """Learn nothing."""
