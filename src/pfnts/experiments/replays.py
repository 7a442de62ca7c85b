"""Replays of policies on a log and on resampled logs, and what the policies are worth by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from pfnts.experiments.jobs import Progress, Spec
from pfnts.experiments.spec import PolicySpec
from pfnts.experiments.store import Run
from pfnts.experiments.threads import one_thread
from pfnts.ope import Bootstrap, Log, Replay, cross_fitted, replay, with_identity
from pfnts.ope.bootstrap import policy_rng, replicate
from pfnts.ope.estimators import WeightDiagnostics, dr, snips, weight_diagnostics, weights
from pfnts.ope.gaps import MEASURES
from pfnts.ope.identity import Identity
from pfnts.ope.log import Matrix, Vector

_CONTEXT_FREE = ("ts", "uniform")
_SLOW_WITH_COLUMNS = ("bf-ts",)
_ONE_HOT_LIMIT = 1000
ESTIMATORS = ("snips", "dr")


@dataclass(frozen=True)
class ReplaySpec(Spec):
    """One replay: a policy on one of the logs."""

    kind = "replay"
    noun = "replay"
    measure = "matches"
    result = Replay

    policy: PolicySpec
    """Who decides."""
    identity: Identity
    """How contexts say whose they are."""
    number: int
    """0 for the log itself, from 1 on for resampled ones."""
    seed: int
    """Seed of the evaluation."""
    rounds: int
    """Rounds of the log itself; a resampled one has about as many."""

    @property
    def title(self) -> str:
        """Policy and log in a few words."""
        which = "the log" if self.number == 0 else f"resampled log {self.number}"
        return f"{self.policy.label} on {which}"

    @property
    def steps(self) -> int:
        """Rounds."""
        return self.rounds

    def describe(self) -> dict[str, Any]:
        """Everything above as plain JSON values."""
        described = {**super().describe(), "policy": self.policy.describe()}
        del described["rounds"]  # the log says it
        return described

    def decided_by(self, inputs: Log) -> dict[str, Any]:
        """Settings, weights and log behind the replay."""
        return self.policy.decided_by() | {"data": inputs.fingerprint()}

    def device(self, asked: str) -> str:
        """Where the policy computes, when ``asked`` is where it may."""
        return self.policy.device(asked)

    def perform(self, inputs: Log, *, device: str, progress: Progress) -> Replay:
        """Let a fresh policy replay the log, in one thread."""
        shown = with_identity(replicate(inputs, self.number, seed=self.seed), self.identity)
        policy = self.policy.build(arms=inputs.arms, device=device)
        with one_thread():
            return replay(policy, shown, rng=policy_rng(self.number, seed=self.seed), progress=progress)


@dataclass(frozen=True)
class PolicyValue:
    """What a policy is worth on a log, with what is needed to doubt it."""

    policy: PolicySpec
    """Whose value."""
    identity: Identity
    """How its contexts said whose they were."""
    curves: Mapping[str, tuple[Vector, ...]]
    """For "snips" and "dr" the value curves (T,): of the log itself, then of the resampled logs; all NaN
    where there is no estimate."""
    weights: Vector
    """(T,) importance weights on the log itself."""
    diagnostics: WeightDiagnostics
    """Of those weights."""
    matches: int
    """Rewards that the policy has learned from, on the log itself."""
    seconds: float
    """Time of the replay of the log itself."""

    def final(self, estimator: str) -> Bootstrap:
        """Value at the end."""
        return Bootstrap.of(map(MEASURES["final"], self.curves[estimator]))

    def average(self, estimator: str) -> Bootstrap:
        """Mean height of the value curve."""
        return Bootstrap.of(map(MEASURES["area"], self.curves[estimator]))

    def at(self, estimator: str, share: float) -> Bootstrap:
        """Value after a share of the rounds."""
        return Bootstrap.of(curve[max(int(share * len(curve)) - 1, 0)] for curve in self.curves[estimator])


def chosen_identity(log: Log, policy: PolicySpec) -> Identity:
    """How a policy is told whose context it is when nobody says: compactly where every column costs time."""
    if log.clusters is None or policy.name in _CONTEXT_FREE or policy.path is not None:
        return "none"
    slow = policy.name in _SLOW_WITH_COLUMNS or not (policy.backbone() or "linear").startswith("linear")
    return "code" if slow or log.n_groups > _ONE_HOT_LIMIT else "one-hot"


def plan_replays(
    log: Log,
    specs: Sequence[PolicySpec],
    *,
    replicates: Mapping[PolicySpec, int],
    identity: Identity | None = None,
    seed: int,
) -> list[ReplaySpec]:
    """List the replays: every policy on the log itself first, then on resampled log 1, 2, and so on."""
    chosen = {spec: identity or chosen_identity(log, spec) for spec in specs}
    each = product(range(max(replicates.values(), default=0) + 1), specs)
    asked = ((spec, number) for number, spec in each if number <= replicates[spec])
    return [ReplaySpec(spec, chosen[spec], number, seed, log.rounds) for spec, number in asked]


def values(log: Log, replays: Sequence[Run]) -> list[PolicyValue]:
    """Estimate each policy's value from its replays, that of the log itself before those of resampled logs.

    A log of one person has no doubly robust estimate, since nobody is left to predict them by, and one on
    which a policy would never have done what was done has none by SNIPS. On the log itself it is NaN then,
    and a resampled log has no part in it.
    """

    @cache
    def met(number: int, seed: int) -> tuple[Log, Matrix | None]:
        on = replicate(log, number, seed=seed)
        people = np.unique(on.groups if on.origins is None else on.origins)
        # One outcome model for all policies; people it has not seen have no use for an identity.
        return on, cross_fitted(on) if len(people) > 1 else None

    def curves(done: Run) -> tuple[Vector, Vector]:
        on, predictions = met(done.spec.number, done.spec.seed)
        propensities, unknown = done.result.propensities, np.full(on.rounds, np.nan)
        by_snips = snips(on, propensities).curve if on.probabilities_of(propensities).any() else unknown
        if predictions is None:
            return by_snips, unknown
        return by_snips, dr(on, propensities, predictions=predictions).curve

    groups: dict[PolicySpec, list[Run]] = {}
    for done in replays:
        groups.setdefault(done.spec.policy, []).append(done)
    found = []
    for policy, runs in groups.items():
        own, identity = runs[0].result, runs[0].spec.identity
        drawn = dict(zip(ESTIMATORS, zip(*map(curves, runs), strict=True), strict=True))
        doubt = weights(log, own.propensities), weight_diagnostics(log, own.propensities)
        found.append(PolicyValue(policy, identity, drawn, *doubt, own.matches, own.seconds))
    return found
