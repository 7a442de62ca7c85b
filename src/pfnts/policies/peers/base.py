"""What the models of other libraries share."""

from __future__ import annotations

from abc import abstractmethod
from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np

from pfnts.arrays import Matrix
from pfnts.events import History
from pfnts.policies.model import Model


class PeerModel(Model):
    """A model of another library: it learns one row at a time, and predicts for every arm.

    The arm is drawn by our rule with our random numbers, so that decisions can be repeated and propensities
    are exact. A subclass implements `fresh`, `add` and `predict`.

    Parameters
    ----------
    module
        The library.
    intercept
        Whether a constant joins the features, for libraries that add none themselves.
    """

    def __init__(self, module: Any, *, intercept: bool = False) -> None:
        self._module, self._intercept = module, bool(intercept)

    @abstractmethod
    def add(self, row: Matrix, arm: int, reward: float) -> None:
        """Add one row (1, d)."""

    def observe(self, history: History, start: int, end: int) -> None:
        """Add rows, one after the other."""
        design = self._design(history.contexts[start:end])
        rows = zip(history.arms[start:end].tolist(), history.rewards[start:end].tolist(), strict=True)
        for i, (arm, reward) in enumerate(rows):
            self.add(design[i : i + 1], arm, reward)

    def _design(self, X: Matrix) -> Matrix:
        """Return rows (q, d) for the library: it knows no missing values, so these count as zero."""
        rows = np.where(np.isnan(X), 0.0, X)
        return np.concatenate([rows, np.ones((len(X), 1))], axis=1) if self._intercept else rows

    def __deepcopy__(self, memo: dict[int, Any]) -> PeerModel:
        memo[id(self._module)] = self._module
        other = object.__new__(type(self))
        memo[id(self)] = other
        other.__dict__.update({name: deepcopy(value, memo) for name, value in self.__dict__.items()})
        return other


def imported(module: str, *, policy: str) -> Any:
    """Import a module of another library, or raise an error that names the extra."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"the policy {policy!r} needs {module.partition('.')[0]}; install it with: "
            'pip install "pfnts[peers]"'
        ) from error
