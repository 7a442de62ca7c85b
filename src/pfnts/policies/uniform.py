"""The policy that never learns: every eligible arm alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.policies.base import Policy
from pfnts.policies.decision import Choices, Mask, Matrix, Vector
from pfnts.policies.rules import greedy


class Uniform(Policy):
    """Choose uniformly at random among the eligible arms.

    Parameters
    ----------
    arms
        Number of arms, their labels, or labels to features; None where decisions bring their own candidates.
    traffic
        Shares of the rounds that are not left to chance; no warm-up.
    schema
        What the columns of a context are; inferred from the first context when not given.

    Examples
    --------
    >>> Uniform(arms=4).decide([0.0], rng=np.random.default_rng(0)).propensities
    array([0.25, 0.25, 0.25, 0.25])
    """

    name = "uniform"
    rule = "explore"
    judges_features = True

    def _reset(self, width: int, n_arms: int) -> None:
        """Nothing to make."""

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        """Learn nothing."""

    def _choose(self, X: Matrix, arms: Sequence[int], eligible: Mask, uniforms: Matrix) -> Choices:  # noqa: ARG002
        return greedy(np.zeros(eligible.shape), eligible, uniforms[:, -1])

    def _unchanged(self, arms: NDArray[np.int64]) -> int:
        return len(arms)

    def _settings(self) -> dict[str, Any]:
        return {}
