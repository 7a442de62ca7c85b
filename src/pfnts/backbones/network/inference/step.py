"""Steps of serving: rows to append to a state, and queries to answer after that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pfnts.backbones.base import Matrix, Vector
from pfnts.backbones.network.inference.state import State

CELLS_AT_ONCE = {"cpu": 2**15, "cuda": 2**19, "mps": 2**16}
"""Cells of one forward pass."""
SCORES_AT_ONCE = {"cpu": 2**22, "cuda": 2**26, "mps": 2**24}
"""Entries of the mask of one history."""


@dataclass(frozen=True)
class Queries:
    """Contexts to be predicted after each of some numbers of rows."""

    X: Matrix
    """(q, P)"""
    sizes: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.X) * len(self.sizes)


@dataclass(frozen=True)
class Output:
    """Predictions of q contexts after S numbers of rows, in the units of the targets."""

    means: Matrix
    """(S, q)"""
    quantiles: NDArray[np.float64]
    """(S, q, Q), not sorted"""
    mean_sd: Matrix
    """(S, q)"""

    @staticmethod
    def joined(parts: Sequence[Output]) -> Output:
        """Concatenate predictions of different contexts."""
        each = zip(*((part.means, part.quantiles, part.mean_sd) for part in parts), strict=True)
        return Output(*(np.concatenate(arrays, 1) for arrays in each))


@dataclass(frozen=True)
class Step:
    """Rows to append to a state, and queries to answer after that."""

    state: State
    X: Matrix
    """(m, P)"""
    y: Vector
    """(m,)"""
    forecast: NDArray[np.bool_]
    """(m,), rows that are queries as well, to be predicted from the rows before them."""
    queries: tuple[Queries, ...] = ()

    @property
    def tokens(self) -> int:
        """Number of tokens, without a start token."""
        return len(self.y) + int(self.forecast.sum()) + sum(queries.tokens for queries in self.queries)

    def rows(self, part: slice) -> Step:
        """Return the step with some of its rows and no queries."""
        return replace(self, X=self.X[part], y=self.y[part], forecast=self.forecast[part], queries=())


@dataclass(frozen=True)
class Result:
    """The state after a step, and its predictions."""

    state: State
    forecasts: Output
    """(1, f), for the rows with ``forecast``."""
    answers: tuple[Output, ...]
    """One for each of the queries."""


def parts_of(step: Step, kind: str) -> list[Step]:
    """Cut a step into parts, each of which fits into a forward pass; the state of all is that of the step."""
    most = max(2, CELLS_AT_ONCE[kind] // step.state.frame.columns)
    masked = max(2, min(most, SCORES_AT_ONCE[kind] // (step.state.tokens + len(step.y) + 1)))
    rows = masked // 2 if step.forecast.any() else masked
    parts = [step.rows(slice(i, i + rows)) for i in range(0, len(step.y), rows)]
    for queries in step.queries:
        sizes = len(queries.sizes)
        at_once = max(1, (most if sizes == 1 else masked) // sizes)
        for i in range(0, len(queries.X), at_once):
            some = replace(queries, X=queries.X[i : i + at_once])
            if not parts or parts[-1].tokens + some.tokens > masked:
                parts.append(step.rows(slice(0, 0)))
            parts[-1] = replace(parts[-1], queries=(*parts[-1].queries, some))
    return parts


def whole(step: Step, parts: Sequence[Result]) -> Result:
    """Join the results of all parts of a step."""
    answers = (answer for part in parts for answer in part.answers)
    found = []
    for queries in step.queries:
        some = [next(answers)]
        while sum(answer.means.shape[1] for answer in some) < len(queries.X):
            some.append(next(answers))
        found.append(Output.joined(some))
    return Result(parts[-1].state, Output.joined([part.forecasts for part in parts]), tuple(found))
