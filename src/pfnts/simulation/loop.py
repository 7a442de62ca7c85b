"""The round loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.environments import Environment
from pfnts.policies import Policy
from pfnts.simulation.trajectory import Trajectory

Progress = Callable[[int, float], None]
"""Told the number of rounds done and the regret so far."""

_PROGRESS_INTERVAL = 0.1
_LONGEST_STRETCH = 512


class Chosen(Protocol):
    """What a simulation reads from a decision."""

    @property
    def arm(self) -> object:
        """The arm's label, given back to ``update``."""
        ...

    @property
    def index(self) -> int:
        """The arm's column in the environment."""
        ...

    @property
    def propensities(self) -> NDArray[np.float64] | None:
        """(K,) probability of every arm, or None where the policy does not say."""
        ...


class Decider(Protocol):
    """The least that a simulation asks of a policy that is no `pfnts.Policy`."""

    def decide(self, context: NDArray[np.float64], *, rng: Generator) -> Chosen:
        """Choose an arm for one context (P,)."""
        ...

    def update(self, context: NDArray[np.float64], *, arm: object, reward: float) -> object:
        """Learn from one reward."""
        ...


def simulate(
    policy: Policy | Decider,
    environment: Environment,
    *,
    rng: Generator,
    horizon: int | None = None,
    prefetch: int = 2048,
    progress: Progress | None = None,
) -> Trajectory:
    """Let a policy decide round after round, telling it each reward at once.

    Rounds between two refreshes of the policy's model are decided together, with the outcome of one by one.

    Parameters
    ----------
    policy
        A policy, or anything with ``decide`` and ``update``; it is changed by what it learns.
    environment
        Where contexts and rewards come from.
    rng
        The policy's randomness.
    horizon
        Number of rounds; all of the environment when left out.
    prefetch
        How many upcoming contexts the policy is shown at a time. The decisions do not depend on it, only the
        time does. 0 shows none.
    progress
        Called with the rounds done and the regret so far, at most ten times a second and once at the end.

    Examples
    --------
    >>> from pfnts.environments import make
    >>> from pfnts.policies import make as make_policy
    >>> environment = make("friedman", horizon=500, rng=np.random.default_rng(0))
    >>> policy = make_policy("uniform", arms=environment.n_arms)
    >>> trajectory = simulate(policy, environment, rng=np.random.default_rng(1))
    >>> trajectory.propensities[0]
    array([0.5, 0.5])
    """
    rounds = environment.horizon if horizon is None else horizon
    if not 1 <= rounds <= environment.horizon:
        raise ValueError(
            f"horizon must be between 1 and the environment's {environment.horizon} rounds, got {horizon}"
        )
    if prefetch < 0:
        raise ValueError(f"prefetch must be 0 (never) or a positive number of rounds, got {prefetch}")
    first = len(environment.there(0))
    if isinstance(policy, Policy) and policy.n_arms != first:
        raise ValueError(
            f"policy must have the environment's {first} arms, got {policy.n_arms}; "
            "make it with arms=environment.n_arms, or environment.first_arms(features=...)"
        )
    if not isinstance(policy, Policy) and environment.available is not None:
        raise ValueError(f"policy must be a pfnts.Policy where arms come and go, got {policy!r}")
    contexts, rewards = environment.contexts, environment.rewards
    columns, change = np.array(environment.there(0)), _next_change(environment, 0)
    arms = np.empty(rounds, dtype=np.int64)
    received = np.empty(rounds)
    propensities = np.full((rounds, environment.n_arms), np.nan)

    means = environment.means
    if environment.available is not None:
        means = np.where(environment.available, means, -np.inf)
    start = time.perf_counter()
    reported = start
    t, announced, stretch = 0, 0, 1
    while t < rounds:
        if not isinstance(policy, Policy):
            index, shares = _one_round(policy, contexts[t], rewards[t], rng=rng)
        else:
            if prefetch and t >= announced:
                announced = min(t + prefetch, rounds)
                policy.prefetch(contexts[t:announced])
            if t == change:
                columns, change = _exchange(policy, environment, columns, t), _next_change(environment, t)
            # Rounds proposed in vain cost time, so not many more than were kept the last time.
            end = min(t + stretch, change, announced if prefetch else rounds)
            index, shares = policy.play(contexts[t:end], rewards[t:end][:, columns], rng=rng)
            stretch = min(_LONGEST_STRETCH, 2 * len(index))
        played = slice(t, t + len(index))
        arms[played] = columns[index]
        if environment.available is not None:
            propensities[played] = 0.0
        propensities[played, columns] = shares
        received[played] = rewards[played][np.arange(len(index)), arms[played]]
        t += len(index)
        if progress is not None and time.perf_counter() - reported > _PROGRESS_INTERVAL:
            progress(t, float(pseudo_regret(means[:t], arms[:t]).sum()))
            reported = time.perf_counter()
    seconds = time.perf_counter() - start

    regret = pseudo_regret(means[:rounds], arms)
    if progress is not None:
        progress(rounds, float(regret.sum()))
    return Trajectory(
        arms=arms,
        rewards=received,
        regret=regret,
        propensities=propensities,
        fixed=fixed_regret(means[:rounds]),
        seconds=seconds,
    )


def _next_change(environment: Environment, t: int) -> int:
    """First round after t in which other arms are there than in t; the horizon if none."""
    if environment.available is None:
        return environment.horizon
    others = (environment.available[t:] != environment.available[t]).any(axis=1)
    return t + int(others.argmax()) if others.any() else environment.horizon


def _exchange(
    policy: Policy, environment: Environment, columns: NDArray[np.int64], t: int
) -> NDArray[np.int64]:
    """Add the arms that come in round t, remove those that leave; give the columns of the policy's arms."""
    labels, features = environment.labels, environment.arm_features
    there = environment.there(t)
    come = [column for column in there if column not in columns]
    for column in come:
        known = features[column].tolist() if features is not None and policy.arm_schema is not None else None
        policy.add_arm(labels[column], known)
    stay = [column for column in columns.tolist() if column in there]
    for column in columns.tolist():
        if column not in there:
            policy.remove_arm(labels[column])
    return np.array([*stay, *come])


def _one_round(
    policy: Decider, context: NDArray[np.float64], rewards: NDArray[np.float64], *, rng: Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    decision = policy.decide(context, rng=rng)
    policy.update(context, arm=decision.arm, reward=float(rewards[decision.index]))
    shares = np.full(len(rewards), np.nan) if decision.propensities is None else decision.propensities
    return np.array([decision.index]), shares[None]


def pseudo_regret(means: NDArray[np.float64], arms: NDArray[np.int64]) -> NDArray[np.float64]:
    """Mean reward (T,) lost by pulling ``arms`` (T,) instead of the best by ``means`` (T, K)."""
    return np.asarray(means.max(axis=1) - means[np.arange(len(arms)), arms], dtype=np.float64)


def fixed_regret(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean reward (K,) lost by pulling one arm throughout, by ``means`` (T, K).

    In rounds in which it is not there (its mean is minus infinity), an arm of those that are is drawn.
    """
    there = np.isfinite(means)
    drawn = np.where(there, means, 0.0).sum(axis=1, keepdims=True) / there.sum(axis=1, keepdims=True)
    lost = means.max(axis=1, keepdims=True) - np.where(there, means, drawn)
    return np.asarray(lost.sum(axis=0), dtype=np.float64)
