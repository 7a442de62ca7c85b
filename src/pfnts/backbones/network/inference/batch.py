"""Predict for many histories, and append to them, in shared forward passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pfnts.backbones.base import Append, Matrix, Prediction, PredictiveSequence, Question, Vector
from pfnts.backbones.checks import check_appends, check_levels, check_question
from pfnts.backbones.network.inference.forward import run
from pfnts.backbones.network.inference.frame import basis_of
from pfnts.backbones.network.inference.sequence import EmbeddedSequence
from pfnts.backbones.network.inference.state import State
from pfnts.backbones.network.inference.step import Output, Queries, Result, Step
from pfnts.backbones.network.network import CausalPFN


@dataclass(frozen=True, eq=False)
class Job:
    """Rows and predictions needed from a history in one of its frames."""

    sequence: EmbeddedSequence
    basis: int
    size: int
    """Number of rows that its state has to hold."""
    queries: tuple[Queries, ...] = ()
    forecast: tuple[int, ...] = ()
    """Numbers of rows that the state does not hold yet."""

    def step(self) -> Step:
        """Return the rows that wait, with the queries."""
        state = self.sequence.state(self.basis)
        X, y = self.sequence.rows(state.size, max(state.size, self.size))
        wanted = np.zeros(len(y), dtype=bool)
        wanted[np.array(self.forecast, dtype=int) - state.size] = True
        return Step(state, X, y, wanted, self.queries)


def predict(questions: Sequence[Question]) -> list[Prediction]:
    """Answer questions; rows that wait pass through the network together with the queries."""
    asked = [_Asked.of(question) for question in questions]
    wanted: dict[tuple[EmbeddedSequence, int], list[tuple[_Asked, Queries]]] = {}
    for one in asked:
        for basis, queries in one.by_basis().items():
            wanted.setdefault((one.sequence, basis), []).append((one, queries))
    jobs = [
        Job(sequence, basis, max(max(q.sizes) for _, q in each), tuple(q for _, q in each))
        for (sequence, basis), each in wanted.items()
    ]
    # Where rows are appended to the current frame, the state of the next is extended as well.
    current = [job for job in jobs if job.basis == basis_of(job.sequence.size)]
    growing = [job.sequence for job in current if job.sequence.held(job.basis) < job.size]
    results = run_jobs([*jobs, *(Job(s, *due) for s in growing if (due := s.due()) is not None)])
    for job, each in zip(jobs, wanted.values(), strict=True):
        for (one, queries), output in zip(each, results[job].answers, strict=True):
            one.answers.update({size: (output, row) for row, size in enumerate(queries.sizes)})
    return [one.prediction() for one in asked]


def append(appends: Sequence[Append], levels: Sequence[float] = ()) -> list[Prediction | None]:
    """Append rows; those that ask for it are forecast as they pass through the network."""
    checked, level = check_appends(appends), check_levels(levels)
    sequences = [_own(one.sequence) for one in checked]
    longer = [old.appended(one.X, one.y) for old, one in zip(sequences, checked, strict=True)]
    jobs: list[list[Job]] = []
    for one, before, sequence in zip(checked, sequences, longer, strict=True):
        rows: dict[int, list[int]] = {}
        for row in () if one.forecast is None else (before.size + np.flatnonzero(one.forecast)).tolist():
            rows.setdefault(basis_of(row), []).append(row)
        jobs.append([Job(sequence, basis, t[-1] + 1, forecast=tuple(t)) for basis, t in rows.items()])
    results = run_jobs([job for each in jobs for job in each])
    for sequence, other in zip(sequences, longer, strict=True):
        sequence.become(other)
    forecasts = [[results[job].forecasts for job in each] for each in jobs]
    return [_forecast(Output.joined(parts), level) if parts else None for parts in forecasts]


def _forecast(output: Output, levels: Vector) -> Prediction:
    return Prediction(output.means, interpolated(output.quantiles[0], levels), output.mean_sd[0])


def prefill(sequences: Sequence[PredictiveSequence]) -> None:
    """Extend the states that the next prediction will need by all rows that wait."""
    own = [_own(sequence) for sequence in dict.fromkeys(sequences)]
    run_jobs([Job(sequence, basis_of(sequence.size), sequence.size) for sequence in own])


def run_jobs(jobs: Sequence[Job]) -> dict[Job, Result]:
    """Run jobs, those of one network together, and keep the states."""
    steps = {job: job.step() for job in jobs}
    by_network: dict[CausalPFN, list[Job]] = {}
    for job, step in steps.items():
        if step.tokens:
            by_network.setdefault(job.sequence.network, []).append(job)
    results: dict[Job, Result] = {}
    for network, own in by_network.items():
        results |= zip(own, run(network, [steps[job] for job in own]), strict=True)
    states: dict[EmbeddedSequence, dict[int, State]] = {}
    for job, step in steps.items():
        state = results[job].state if job in results else step.state
        states.setdefault(job.sequence, {})[job.basis] = state
    for sequence, by_basis in states.items():
        sequence.keep(by_basis)
    return results


@dataclass(frozen=True, eq=False)
class _Asked:
    """A question with its arguments as arrays, and its answers."""

    sequence: EmbeddedSequence
    X: Matrix
    sizes: tuple[int, ...]
    levels: Vector
    answers: dict[int, tuple[Output, int]] = field(default_factory=dict)
    """By size, with the place of the size in the output."""

    @staticmethod
    def of(question: Question) -> _Asked:
        sequence = _own(question.sequence)
        X, sizes, levels = check_question(
            question.queries, question.sizes, question.levels, columns=sequence.columns, held=sequence.size
        )
        return _Asked(sequence, X, tuple(sizes.tolist()), levels)

    def by_basis(self) -> dict[int, Queries]:
        """Return the queries in each frame."""
        sizes: dict[int, list[int]] = {}
        for size in dict.fromkeys(self.sizes) if len(self.X) else ():
            sizes.setdefault(basis_of(size), []).append(size)
        return {basis: Queries(self.X, tuple(some)) for basis, some in sizes.items()}

    def prediction(self) -> Prediction:
        """Return the prediction, after all answers have come."""
        if not self.answers:
            return Prediction(
                np.empty((len(self.sizes), len(self.X))), np.empty((len(self.levels), len(self.X)))
            )
        means = [output.means[row] for output, row in (self.answers[size] for size in self.sizes)]
        last, row = self.answers[self.sizes[-1]]
        return Prediction(np.stack(means), interpolated(last.quantiles[row], self.levels), last.mean_sd[row])


def interpolated(quantiles: Matrix, levels: Vector) -> Matrix:
    """Return quantiles (len(levels), q) from those at evenly spaced levels (q, Q), in any order.

    Examples
    --------
    >>> interpolated(np.array([[3.0, 1.0, 2.0]]), np.array([0.25, 0.5, 0.6]))
    array([[1. ],
           [2. ],
           [2.4]])
    """
    ordered = np.sort(quantiles)
    count = ordered.shape[1]
    at = np.clip(levels * (count + 1) - 1, 0, count - 1)
    below = np.minimum(at.astype(int), count - 2)
    found: Matrix = (ordered[:, below] + (at - below) * (ordered[:, below + 1] - ordered[:, below])).T
    return found


def _own(sequence: PredictiveSequence) -> EmbeddedSequence:
    if not isinstance(sequence, EmbeddedSequence):
        raise ValueError(f"sequences must be of this backbone, got a {type(sequence).__name__}")
    return sequence
