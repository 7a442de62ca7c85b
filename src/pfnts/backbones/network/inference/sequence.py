"""A history held by the network, to be predicted after any of its prefixes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import ArrayLike

from pfnts.backbones.base import Matrix, Prediction, PredictiveSequence, Question, Vector
from pfnts.backbones.checks import check_keep, check_rows
from pfnts.backbones.network.features.rows import Rows
from pfnts.backbones.network.inference.frame import LARGEST_BASIS, SMALLEST_BASIS, Frame, basis_of
from pfnts.backbones.network.inference.state import State
from pfnts.backbones.network.network import CausalPFN

KEPT_FOR = 8
"""A state is dropped when as many calls did not need it."""


class EmbeddedSequence(PredictiveSequence):
    """The network's `pfnts.backbones.base.PredictiveSequence`: rows, and states of them in the frames in use.

    A prefix of t rows is shown in the frame of its first `basis_of` (t) rows. A state is extended when a
    prediction or a forecast needs it; until then appended rows wait. Rows and queries share a forward pass.

    Parameters
    ----------
    network
        The network, on ``device``.
    X, y
        The first rows, (n, P) and (n,).
    keep
        Columns that are never mixed with others.
    device
        Where to compute.
    """

    def __init__(
        self,
        network: CausalPFN,
        X: ArrayLike,
        y: ArrayLike,
        *,
        keep: Sequence[int] = (),
        device: str = "cpu",
    ) -> None:
        X, y = check_rows(X, y, columns=None)
        self.network = network
        self.device = device
        self._X, self._y = Rows.of(torch.tensor(X)[None]), Rows.of(torch.tensor(y)[None])
        self._keep = check_keep(keep, X.shape[1])
        # Replaced as a whole, never changed: other threads and copies may hold them.
        self._states: dict[int, tuple[State, int]] = {}  # by basis, with the number of the last call
        self._calls = 0

    @property
    def size(self) -> int:
        """Number of observations held."""
        return self._y.length

    @property
    def columns(self) -> int:
        """Number of features."""
        return self._X.buffer.shape[2]

    def rows(self, begin: int, end: int) -> tuple[Matrix, Vector]:
        """Return contexts and targets of some rows."""
        return self._X.first(end)[0, begin:].numpy(), self._y.first(end)[0, begin:].numpy()

    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        """Add observations at the end; they wait until a prediction needs them."""
        self.become(self.appended(X, y))

    def appended(self, X: ArrayLike, y: ArrayLike) -> EmbeddedSequence:
        """Return a copy with more observations at the end."""
        X_new, y_new = check_rows(X, y, columns=self.columns)
        other = copy.copy(self)
        other._X = self._X.append(torch.from_numpy(X_new)[None])
        other._y = self._y.append(torch.from_numpy(y_new)[None])
        return other

    def become(self, other: EmbeddedSequence) -> None:
        """Take the rows and states of a copy."""
        self._X, self._y = other._X, other._y
        self._states, self._calls = other._states, other._calls

    def predict(self, queries: ArrayLike, *, sizes: Sequence[int], levels: ArrayLike = ()) -> Prediction:
        """Predict at ``queries`` (q, P): means after each size, quantiles after the last of them."""
        from pfnts.backbones.network.inference.batch import predict

        return predict([Question(self, queries, sizes, levels)])[0]  # type: ignore[arg-type]

    def __deepcopy__(self, memo: dict[int, Any]) -> EmbeddedSequence:
        """Return a copy to be extended on its own; what it holds is frozen and shared."""
        memo[id(self)] = other = copy.copy(self)
        return other

    def held(self, basis: int) -> int:
        """Return the number of rows that the state in a frame holds."""
        return self._states[basis][0].size if basis in self._states else 0

    def state(self, basis: int) -> State:
        """Return the state in the frame of the first ``basis`` rows, as far as it has come."""
        if basis in self._states:
            return self._states[basis][0]
        return State.empty(Frame.of(*self.rows(0, basis), keep=self._keep), device=self.device)

    def keep(self, states: dict[int, State]) -> None:
        """Keep states by their basis, and drop those that were not needed for long."""
        self._calls = call = self._calls + 1
        held = {basis: one for basis, one in self._states.items() if one[1] > call - KEPT_FOR}
        self._states = held | {basis: (state, call) for basis, state in states.items()}

    def due(self) -> tuple[int, int] | None:
        """Return the basis of the next frame and the number of rows due in its state by now, if any.

        It is extended a little at a time before it is needed, so that no prediction waits for all of it.
        """
        n, basis = self.size, basis_of(self.size)
        if not (SMALLEST_BASIS <= basis < LARGEST_BASIS and n > 2 * basis):
            return None
        return 2 * basis, min(
            n, 5 * (n - 2 * basis), self.held(2 * basis) + n // 8
        )  # all at 2.5 times the basis
