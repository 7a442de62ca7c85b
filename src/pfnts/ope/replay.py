"""A policy let loose on a log: it learns only where it would have done what was done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.contexts import Table
from pfnts.ope.log import Codes, Log, Matrix
from pfnts.policies import Policy

Progress = Callable[[int, int], None]
"""Told the rounds replayed and the matches among them."""

_PROGRESS_INTERVAL = 0.1
_LONGEST_STRETCH = 512


@dataclass(frozen=True)
class Replay:
    """What a policy would have done, round by round."""

    propensities: Matrix
    """(T, K) probability with which the policy would have taken each action of the log."""
    proposals: Codes
    """(T,) action that it drew."""
    matched: NDArray[np.bool_]
    """(T,) whether that was the logged one, so that the policy saw the reward."""
    seconds: float
    """Wall-clock time of all rounds together."""

    @property
    def matches(self) -> int:
        """Number of rewards that the policy has seen."""
        return int(self.matched.sum())


def replay(
    policy: Policy, log: Log, *, rng: Generator, prefetch: int = 256, progress: Progress | None = None
) -> Replay:
    """Show a policy the logged contexts in turn; it is updated only on a match (Li et al. 2011).

    Where logging probabilities are constant, the matched rounds are a sample of what the policy would have
    met on its own. The propensities are recorded in every round, matched or not; estimators use them all.

    Parameters
    ----------
    policy
        A policy whose arms are those of the log, in any order; it is changed by what it learns. One that has
        learned before is shown the columns that it knows.
    log
        What was done.
    rng
        The policy's randomness.
    prefetch
        How many contexts the policy is shown ahead at most; changes the time, not the outcome. 0 shows none.
    progress
        Called with the rounds replayed and the matches, at most ten times a second and once at the end.

    Examples
    --------
    >>> from pfnts.policies import Uniform
    >>> log = Log(
    ...     contexts=np.zeros((100, 1)), features=("age",), arms=("a", "b"), actions=np.arange(100) % 2,
    ...     rewards=np.ones(100), propensities=np.full(100, 0.5),
    ... )
    >>> done = replay(Uniform(arms=["b", "a"]), log, rng=np.random.default_rng(0))
    >>> done.propensities[0], 30 < done.matches < 70
    (array([0.5, 0.5]), True)
    """
    if set(policy.arms) != set(log.arms):
        got = f"{list(log.arms)}, got {list(policy.arms)}"
        raise ValueError(f"policy must have the arms of the log, {got}; make it with arms=log.arms")
    if prefetch < 0:
        raise ValueError(f"prefetch must be 0 (never) or a positive number of rounds, got {prefetch}")
    contexts = _shown(policy, log)
    columns = np.array([policy.arms.index(arm) for arm in log.arms])
    places = np.argsort(columns)  # the log's action for each of the policy's arms
    propensities = np.empty((log.rounds, log.n_arms))
    proposals = np.empty(log.rounds, dtype=np.int64)
    known, rewards = columns[log.actions], np.repeat(log.rewards[:, None], log.n_arms, axis=1)
    start = reported = time.perf_counter()
    t, announced, stretch = 0, 0, 1
    while t < log.rounds:
        if prefetch and t >= announced:
            announced = min(t + prefetch, log.rounds)
            policy.prefetch(_part(contexts, t, announced))
        rounds = slice(t, min(t + stretch, announced if prefetch else log.rounds))
        seen = _part(contexts, t, rounds.stop)
        index, shares = policy.play(seen, rewards[rounds], rng=rng, only=known[rounds])
        played = slice(t, t + len(index))
        propensities[played], proposals[played] = shares[:, columns], places[index]
        t, stretch = t + len(index), min(_LONGEST_STRETCH, 2 * len(index))
        now = time.perf_counter()
        if progress is not None and (t == log.rounds or now - reported > _PROGRESS_INTERVAL):
            progress(t, int((proposals[:t] == log.actions[:t]).sum()))
            reported = now
    return Replay(propensities, proposals, proposals == log.actions, now - start)


def _shown(policy: Policy, log: Log) -> Matrix | Table:
    """What a policy sees of the log: its features, or the columns that the policy knows already."""
    if policy.schema is None or log.table is None:
        return log.contexts
    names = [column.name for column in policy.schema.columns]
    if missing := [name for name in names if name not in log.table]:
        there = list(log.table.names)
        raise ValueError(f"policy must find its columns in the log, which has {there}, not {missing}")
    return log.table.select(names)


def _part(contexts: Matrix | Table, start: int, stop: int) -> Matrix | Table:
    return contexts.take(np.arange(start, stop)) if isinstance(contexts, Table) else contexts[start:stop]
