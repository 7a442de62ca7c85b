"""Ridge regression per arm: what LinTS and LinUCB share."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pfnts.encodings import Schema
from pfnts.policies.archive import read_archive, write_archive
from pfnts.policies.base import Label, Matrix, Policy, Vector

# A rank-one update loses a little precision each time; one fresh inverse in this many keeps the loss below
# 1e-10 at hardly any cost.
_INVERT_EVERY = 256


class RidgeModels:
    """One ridge regression per arm, kept up to date by rank-one updates.

    Parameters
    ----------
    n_arms
        Number of arms K.
    width
        Length d of a row.
    penalty
        Prior precision of each coefficient.

    Examples
    --------
    >>> models = RidgeModels(n_arms=2, width=1, penalty=1.0)
    >>> models.observe(np.ones(1), arm=1, reward=4.0)
    >>> mean, spread = models.predict(np.ones((1, 1)))
    >>> mean, spread
    (array([[0., 2.]]), array([[1. , 0.5]]))
    """

    def __init__(self, *, n_arms: int, width: int, penalty: float) -> None:
        self._precision = np.tile(penalty * np.eye(width), (n_arms, 1, 1))
        self._inverse = np.tile(np.eye(width) / penalty, (n_arms, 1, 1))
        self._moment = np.zeros((n_arms, width))
        self._coefficients = np.zeros((n_arms, width))
        self._since_inverted = np.zeros(n_arms, dtype=np.int64)

    def observe(self, x: Vector, *, arm: int, reward: float) -> None:
        """Add one row ``x`` (d,) of an arm."""
        self._precision[arm] += np.outer(x, x)
        self._moment[arm] += reward * x
        self._since_inverted[arm] += 1
        if self._since_inverted[arm] == _INVERT_EVERY:
            self._inverse[arm] = np.linalg.inv(self._precision[arm])
            self._since_inverted[arm] = 0
        else:
            # Sherman and Morrison
            side = self._inverse[arm] @ x
            self._inverse[arm] -= np.outer(side, side / (1 + x @ side))
        self._coefficients[arm] = self._inverse[arm] @ self._moment[arm]

    def predict(self, rows: Matrix) -> tuple[Matrix, Matrix]:
        """Fitted mean and squared spread x' A^-1 x at ``rows`` (q, d), both (q, K)."""
        mean: Matrix = rows @ self._coefficients.T
        # (K, q, d): one product per arm; rounding must not make a spread negative
        sides = rows @ self._inverse
        spread: Matrix = np.maximum((sides * rows).sum(axis=2).T, 0.0)
        return mean, spread

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays from which `restore` continues to the last bit."""
        return {
            "precision": self._precision,
            "inverse": self._inverse,
            "moment": self._moment,
            "since_inverted": self._since_inverted,
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take up saved arrays; shapes or values that do not fit are a ValueError."""
        state = self.state()
        for name, own in state.items():
            if arrays[name].shape != own.shape or not np.isfinite(arrays[name]).all():
                raise ValueError(
                    f"path must be an undamaged saved policy, its {name} is not a finite array {own.shape}"
                )
        for name, own in state.items():
            own[...] = arrays[name]
        self._coefficients[...] = np.stack(
            [inverse @ moment for inverse, moment in zip(self._inverse, self._moment, strict=True)]
        )


class RidgePolicy(Policy):
    """A policy on `RidgeModels`: the design row, learning, and one file to save it in.

    Missing values count as zero, so centred columns are the safer choice.
    """

    name: str

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        penalty: float,
        intercept: bool,
        warmup: int,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None,
    ) -> None:
        if not penalty > 0 or not np.isfinite(penalty):
            raise ValueError(f"penalty must be a positive number, got {penalty}")
        super().__init__(arms, warmup=warmup, explore=explore, schema=schema)
        self._penalty = float(penalty)
        self._intercept = bool(intercept)
        self._models = RidgeModels(n_arms=self.n_arms, width=0, penalty=self._penalty)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file: arrays and JSON, nothing pickled."""
        header = {
            "arms": list(self._arms),
            "warmup": self._warmup,
            "explore": self._explore,
            "penalty": self._penalty,
            "intercept": self._intercept,
            "settings": self._settings(),
            "schema": None if self._schema is None else self._schema.to_json(),
        }
        arrays = {"counts": np.stack([self._observed, self._pending]), **self._models.state()}
        write_archive(path, policy=self.name, header=header, arrays=arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a policy back; it goes on to the decisions that the saved one would have taken."""
        header, arrays = read_archive(path, policy=cls.name)
        try:
            policy = cls(
                header["arms"],
                warmup=header["warmup"],
                explore=header.get("explore", 0.0),
                penalty=header["penalty"],
                intercept=header["intercept"],
                schema=None if header["schema"] is None else Schema.from_json(header["schema"]),
                **header["settings"],
            )
            if arrays["counts"].shape != (2, policy.n_arms):
                raise ValueError(
                    f"path must be an undamaged saved policy, it has counts {arrays['counts'].shape} "
                    f"for {policy.n_arms} arms"
                )
            if policy._schema is not None:
                policy._commit(policy._schema)
                policy._models.restore(arrays)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(
                f"path must be an undamaged saved policy, {str(path)!r} is not: {error!r}"
            ) from error
        policy._reset_counts(arrays["counts"].astype(np.int64))
        return policy

    @abstractmethod
    def _settings(self) -> dict[str, float]:
        """Keyword arguments of the subclass's own."""

    def _start(self, width: int) -> None:
        self._models = RidgeModels(n_arms=self.n_arms, width=width + self._intercept, penalty=self._penalty)

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        for x, arm, reward in zip(self._design(X), arms, rewards, strict=True):
            self._models.observe(x, arm=int(arm), reward=float(reward))

    def _design(self, X: Matrix) -> Matrix:
        rows = np.ones((len(X), X.shape[1] + self._intercept))
        rows[:, int(self._intercept) :] = np.where(np.isnan(X), 0.0, X)
        return rows
