"""What the policies of other libraries share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies.base import Policy
from pfnts.policies.decision import Matrix, Vector
from pfnts.policies.traffic import NO_WARMUP, Traffic


class PeerPolicy(Policy):
    """A model of another library behind our interface.

    The library learns, one row at a time, and says what it thinks of every arm; the arm is drawn here, by the
    library's rule and with our random numbers, so that decisions can be repeated and propensities are exact.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    intercept
        Whether a constant joins the features, for libraries that add none themselves.
    traffic, schema
        See `Policy`.
    """

    library: ClassVar[str]
    """Module that is imported."""

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        intercept: bool = False,
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(arms, traffic=traffic, schema=schema)
        self._intercept = bool(intercept)
        self._module = imported(self.library, policy=self.name)

    @abstractmethod
    def _learn(self, row: Matrix, arm: int, reward: float) -> None:
        """Take one row (1, d) into the library's model."""

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        design = self._design(X)
        for i, (arm, reward) in enumerate(zip(arms.tolist(), rewards.tolist(), strict=True)):
            self._learn(design[i : i + 1], arm, reward)

    def _design(self, X: Matrix) -> Matrix:
        """Rows (q, d) as the library gets them: it knows no missing values, so these count as zero."""
        rows = np.where(np.isnan(X), 0.0, X)
        return np.concatenate([rows, np.ones((len(X), 1))], axis=1) if self._intercept else rows

    def _settings(self) -> dict[str, Any]:
        return {"intercept": self._intercept}


def imported(module: str, *, policy: str) -> Any:
    """Import a module of another library, or say which extra is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"the policy {policy!r} needs {module.partition('.')[0]}; install it with: "
            'pip install "pfnts[peers]"'
        ) from error
