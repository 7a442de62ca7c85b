"""Bayesian additive regression trees, fitted by bartz on tables padded to a few sizes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.arrays import Matrix, Vector
from pfnts.policies.baselines.tree_draws import TreeDraws

try:
    import jax
    from bartz import Bart, SparseConfig  # type: ignore[attr-defined]
except ImportError as error:
    raise ImportError('bartz is missing, install the extra: pip install "pfnts[baselines]"') from error

# Numbers of constant columns for which bartz is prepared, beside all; of so few columns it is always all.
_BARRED, _NARROW = (0, 16, 64), 16
# bartz wants probabilities below 1; a root that does not split has a chance of one in a million.
_ALMOST_ONE = 1 - 1e-6


@dataclass(frozen=True)
class BartSettings:
    """What bartz is asked to do.

    Examples
    --------
    >>> BartSettings(trees=20).split_probabilities[:3].round(4)
    array([1.    , 0.45  , 0.2025], dtype=float32)
    """

    trees: int = 100
    """Trees of the sum."""
    burn_in: int = 500
    """Draws of each chain that are thrown away."""
    draws: int = 500
    """Draws of each chain that are kept."""
    chains: int = 4
    """Independent Markov chains."""
    decay: float = 0.45
    """A node of depth d splits with probability decay^d."""
    smallest: int = 256
    """Rows to which small tables are padded; larger ones go to the next power of two."""

    def __post_init__(self) -> None:
        for name in ("trees", "draws", "chains", "smallest"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.burn_in < 0:
            raise ValueError(f"burn_in must not be negative, got {self.burn_in}")
        if not 0 < self.decay < 1:
            raise ValueError(f"decay must be between 0 and 1, got {self.decay}")

    @property
    def total(self) -> int:
        """Draws kept, of all chains together."""
        return self.chains * self.draws

    @property
    def split_probabilities(self) -> NDArray[np.float32]:
        """Probability that a node splits, by depth; trees have at most six levels."""
        by_depth = self.decay ** np.arange(5, dtype=np.float64)
        probabilities: NDArray[np.float32] = np.minimum(by_depth, _ALMOST_ONE).astype(np.float32)
        return probabilities

    def padded(self, n: int) -> int:
        """Rows of the table that ``n`` rows are padded to.

        Examples
        --------
        >>> BartSettings().padded(5), BartSettings().padded(1000)
        (256, 1024)
        """
        return max(self.smallest, 1 << (n - 1).bit_length())


@dataclass(frozen=True)
class Scale:
    """Where rewards lie and how far they reach."""

    centre: float
    reach: float
    """Half the range; zero if all rewards are equal."""

    @classmethod
    def of(cls, y: Vector) -> Scale:
        """Take it from rewards (n,), n >= 1."""
        return cls(float(y.mean()), float(y.max() - y.min()) / 2)


class BartFit:
    """Draws from the posterior of a function.

    Parameters
    ----------
    X
        Contexts (n, P), NaN where missing: a missing value is smaller than any other.
    y
        Rewards (n,).
    settings
        The model and how long to sample.
    scale
        Reach of the rewards to assume where those of ``y`` are all equal; all rewards of a policy, say.
    seed
        Of the Markov chains.
    """

    def __init__(self, X: Matrix, y: Vector, *, settings: BartSettings, scale: Scale, seed: int) -> None:
        own = Scale.of(y)
        self.size = len(y)
        """Rows n."""
        self._settings = settings
        self._centre, self._reach = own.centre, own.reach or scale.reach
        self._low = np.nan_to_num(np.fmin.reduce(X, axis=0), nan=0.0)
        width = np.nan_to_num(np.fmax.reduce(X, axis=0), nan=0.0) - self._low
        self._width = np.where(width > 0, width, 1.0)
        if self._reach > 0:
            fit = self._sample((y - self._centre) / self._reach, self._scaled(X), seed)
            # bartz predicts by compiled code that walks every tree of every draw down all six levels.
            trace = fit._main_trace
            self._cuts = np.asarray(fit._binner._splits)
            self._unit, self._offset = float(trace.leaf_unit), float(trace.offset)
            self._trees = TreeDraws(*map(np.asarray, (trace.var_tree, trace.split_tree, trace.leaf_tree)))

    def draws(self, X: Matrix) -> Matrix:
        """Values of every draw at ``X`` (q, P), as (q, R)."""
        if not self._reach > 0:
            return np.full((len(X), self._settings.total), self._centre)
        values = self._trees.values(_binned(self._scaled(X), self._cuts))
        scaled: Matrix = self._centre + self._reach * (self._offset + self._unit * values)
        return scaled

    def _sample(self, z: Vector, rows: NDArray[np.float32], seed: int) -> Any:
        settings, (n, width) = self._settings, rows.shape
        size = settings.padded(n)
        # Padding repeats the rows, so that cut points stay at the quantiles of the data.
        table, targets = np.resize(rows, (size, width)), np.resize(z, size).astype(np.float32)
        with _quiet():
            return Bart(
                table.T,
                targets,
                missing=np.arange(size) >= n,
                # s ~ Dirichlet(1 / P, ..., 1 / P), the paper's (zeta, xi) = (1, 1)
                sparse=SparseConfig(theta=1.0),
                offset=0.0,
                tau_num=1.0,
                num_trees=settings.trees,
                n_burn=settings.burn_in,
                n_save=settings.draws,
                num_chains=settings.chains,
                num_chain_devices=_devices(settings.chains),
                devices="cpu",
                printevery=None,
                seed=seed,
                init_kw={
                    "p_nonterminal": settings.split_probabilities,
                    "filter_splitless_vars": _barred(int((rows == rows[0]).all(axis=0).sum()), width),
                    # Padding would count towards a smallest leaf; the prior as written has none.
                    "min_points_per_decision_node": None,
                },
            )

    def _scaled(self, X: Matrix) -> NDArray[np.float32]:
        """Columns to [0, 1] in double precision, then single; missing values to -1."""
        unit = (X - self._low) / self._width
        return np.where(np.isnan(unit), -1.0, np.clip(unit, -0.5, 1.5)).astype(np.float32)


def _barred(constant: int, width: int) -> int:
    """Round the number of constant columns up: each number compiles anew, and only large ones cost time.

    Examples
    --------
    >>> [_barred(constant, 355) for constant in (0, 1, 50, 100)], _barred(0, 5)
    ([0, 16, 64, 355], 5)
    """
    sizes = [size for size in _BARRED if size < width] if width > _NARROW else []
    return next(size for size in (*sizes, width) if size >= constant)


def _binned(rows: NDArray[np.float32], cuts: NDArray[np.float32]) -> NDArray[np.unsignedinteger]:
    """Count the cut points (P, C) of each column below the values of ``rows`` (q, P)."""
    bins = np.empty(rows.shape, dtype=np.min_scalar_type(cuts.shape[1]))
    for j, column in enumerate(cuts):
        bins[:, j] = np.searchsorted(column, rows[:, j])
    return bins


def _devices(chains: int) -> int | None:
    """Jax devices to spread the chains over: as many as jax was set up with, and divide the chains."""
    most = max(d for d in range(1, chains + 1) if chains % d == 0 and d <= jax.local_device_count("cpu"))
    return None if most == 1 else most


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
