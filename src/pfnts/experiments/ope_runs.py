"""Replays of policies on a log and on resampled logs, kept on disk, and what they are worth."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pfnts import policies
from pfnts.experiments.spec import PolicySpec
from pfnts.experiments.store import CorruptRunError
from pfnts.ope import (
    Bootstrap,
    Log,
    Replay,
    WeightDiagnostics,
    cross_fitted,
    dr,
    replay,
    snips,
    weight_diagnostics,
    weights,
    with_identity,
)
from pfnts.ope.bootstrap import policy_rng, replicate
from pfnts.ope.identity import Identity
from pfnts.ope.log import Matrix, Vector

_FORMAT = 1
_CONTEXT_FREE = ("ts", "uniform")
_SLOW_WITH_COLUMNS = ("bf-ts",)
_ONE_HOT_LIMIT = 1000
ESTIMATORS = ("snips", "dr")


@dataclass(frozen=True)
class ReplaySpec:
    """One replay: a policy on one of the logs.

    Examples
    --------
    >>> spec = ReplaySpec("0123abcd", PolicySpec("uniform"), identity="none", number=0, seed=42)
    >>> spec.describe()["policy"]
    {'name': 'uniform', 'options': {}}
    """

    log: str
    """Fingerprint of the log."""
    policy: PolicySpec
    """Who decides."""
    identity: Identity
    """How contexts say whose they are."""
    number: int
    """0 for the log itself, from 1 on for resampled ones."""
    seed: int
    """Seed of the evaluation."""

    def describe(self) -> dict[str, Any]:
        """Everything above as plain JSON values."""
        return {
            "log": self.log,
            "policy": {"name": self.policy.name, "options": dict(self.policy.options)},
            "identity": self.identity,
            "number": self.number,
            "seed": self.seed,
        }

    def key(self) -> str:
        """Hash what decides the outcome: the above, all settings, the version, weights, own files."""
        producer = {
            "pfnts": version("pfnts"),
            "format": _FORMAT,
            "settings": self.policy.settings(),
            "backbone": self.policy.backbone(),
        }
        sources = self.policy.sources()
        if sources is not None:
            producer["sources"] = sources
        # By name only: the options are among the settings, where one that equals its default is none.
        description = {**self.describe(), "policy": self.policy.name}
        text = json.dumps({**description, "producer": producer}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class ReplayStore:
    """A folder of finished replays, one file each; a file appears all at once or not at all.

    Parameters
    ----------
    root
        The folder; made when the first replay is saved.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def path(self, spec: ReplaySpec) -> Path:
        """Where the replay is, or would be."""
        return self.root / f"{spec.policy.name}_{spec.number}_{spec.key()}.npz"

    def __contains__(self, spec: ReplaySpec) -> bool:
        return self.path(spec).is_file()

    def load(self, spec: ReplaySpec) -> Replay:
        """Read a finished replay."""
        path = self.path(spec)
        try:
            with np.load(path, allow_pickle=False) as file:
                return Replay(
                    propensities=file["propensities"],
                    proposals=file["proposals"],
                    matched=file["matched"],
                    seconds=float(file["seconds"]),
                )
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise CorruptRunError(
                f"{path} must hold a finished replay, got {error!r}; delete it to run it anew"
            ) from error

    def save(self, spec: ReplaySpec, done: Replay) -> None:
        """Add a finished replay."""
        self.root.mkdir(parents=True, exist_ok=True)
        # Beside its final place, because a rename is atomic only within one file system.
        handle, temporary = tempfile.mkstemp(prefix=".unfinished-", suffix=".npz", dir=self.root)
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez_compressed(
                    file,
                    about=np.array(json.dumps(spec.describe())),
                    propensities=done.propensities,
                    proposals=done.proposals,
                    matched=done.matched,
                    seconds=np.array(done.seconds),
                )
            os.replace(temporary, self.path(spec))
        finally:
            Path(temporary).unlink(missing_ok=True)


@dataclass(frozen=True)
class PolicyValue:
    """What a policy is worth on a log, with what is needed to doubt it."""

    policy: PolicySpec
    """Whose value."""
    identity: Identity
    """How its contexts said whose they were."""
    curves: Mapping[str, tuple[Vector, ...]]
    """For "snips" and "dr" the value curves (T,): of the log itself, then of the resampled logs."""
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
        return self._reduced(estimator, lambda curve: float(curve[-1]))

    def average(self, estimator: str) -> Bootstrap:
        """Mean height of the value curve."""
        return self._reduced(estimator, lambda curve: float(np.nanmean(curve)))

    def at(self, estimator: str, share: float) -> Bootstrap:
        """Value after a share of the rounds."""
        return self._reduced(estimator, lambda curve: float(curve[max(int(share * len(curve)) - 1, 0)]))

    def _reduced(self, estimator: str, reduce: Callable[[Vector], float]) -> Bootstrap:
        own, *others = map(reduce, self.curves[estimator])
        return Bootstrap(own, np.array(others, dtype=np.float64))


Listener = Callable[[ReplaySpec, int, int], None]
"""Told which replay is under way, its rounds done and its matches so far."""


def chosen_identity(log: Log, policy: PolicySpec) -> Identity:
    """How a policy is told whose context it is, when nobody says: compactly if every column costs much time.

    Examples
    --------
    >>> from pfnts.ope import simulated_drinkless
    >>> log = simulated_drinkless(rng=np.random.default_rng(0), people=5, days=2)
    >>> chosen_identity(log, PolicySpec("lin-ts")), chosen_identity(log, PolicySpec("uniform"))
    ('one-hot', 'none')
    """
    if log.clusters is None or policy.name in _CONTEXT_FREE:
        return "none"
    backbone = policy.backbone()
    compact = policy.name in _SLOW_WITH_COLUMNS or (
        backbone is not None and not backbone.startswith("linear")
    )
    return "code" if compact or log.n_groups > _ONE_HOT_LIMIT else "one-hot"


def plan_replays(
    log: Log,
    specs: Sequence[PolicySpec],
    *,
    replicates: Mapping[PolicySpec, int],
    identity: Identity | None = None,
    seed: int,
) -> list[ReplaySpec]:
    """List the replays: every policy on the log itself first, then on resampled log 1, 2, and so on."""
    fingerprint = log.fingerprint()
    chosen = {spec: identity or chosen_identity(log, spec) for spec in specs}
    return [
        ReplaySpec(fingerprint, spec, identity=chosen[spec], number=number, seed=seed)
        for number in range(max(replicates.values(), default=0) + 1)
        for spec in specs
        if number <= replicates[spec]
    ]


def replay_all(
    log: Log,
    planned: Sequence[ReplaySpec],
    *,
    store: ReplayStore | None = None,
    listener: Listener | None = None,
) -> Iterator[tuple[ReplaySpec, Replay]]:
    """Yield every replay in turn: read from the store where it is finished, run and saved where it is not."""
    for spec in planned:
        if store is not None and spec in store:
            yield spec, store.load(spec)
            continue
        shown = with_identity(replicate(log, spec.number, seed=spec.seed), spec.identity)
        policy = policies.make(spec.policy.name, arms=log.arms, **dict(spec.policy.options))
        done = replay(
            policy,
            shown,
            rng=policy_rng(spec.number, seed=spec.seed),
            progress=None if listener is None else _progress(spec, listener),
        )
        if store is not None:
            store.save(spec, done)
        yield spec, done


def values(log: Log, replays: Sequence[tuple[ReplaySpec, Replay]]) -> list[PolicyValue]:
    """Estimate each policy's value from its replays, in the order of the policies' first ones.

    Parameters
    ----------
    log
        What was done.
    replays
        Finished replays, that of the log itself before those of resampled logs.
    """
    predicted: dict[int, Matrix] = {}
    logs: dict[int, Log] = {}
    by_policy: dict[PolicySpec, list[tuple[ReplaySpec, Replay]]] = {}
    for spec, done in replays:
        by_policy.setdefault(spec.policy, []).append((spec, done))
        if spec.number not in logs:
            logs[spec.number] = replicate(log, spec.number, seed=spec.seed)
            # One outcome model for all policies; people it has not seen have no use for an identity.
            predicted[spec.number] = cross_fitted(logs[spec.number])
    found = []
    for policy, members in by_policy.items():
        curves: dict[str, list[Vector]] = {name: [] for name in ESTIMATORS}
        for spec, done in members:
            on = logs[spec.number]
            curves["snips"].append(snips(on, done.propensities).curve)
            curves["dr"].append(dr(on, done.propensities, predictions=predicted[spec.number]).curve)
        spec, own = members[0]
        found.append(
            PolicyValue(
                policy=policy,
                identity=spec.identity,
                curves={name: tuple(listed) for name, listed in curves.items()},
                weights=weights(log, own.propensities),
                diagnostics=weight_diagnostics(log, own.propensities),
                matches=own.matches,
                seconds=own.seconds,
            )
        )
    return found


def _progress(spec: ReplaySpec, listener: Listener) -> Callable[[int, int], None]:
    return lambda rounds, matches: listener(spec, rounds, matches)
