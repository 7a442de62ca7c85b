"""What the latest decisions say about the policy, the holdout, and every arm by itself."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema
from pfnts.ope import Estimate, Log, snips
from pfnts.service.experiment import ExperimentState, Made
from pfnts.service.lift import lift
from pfnts.service.live import LiveExperiment
from pfnts.service.store import Record, Store

_ROWS = 5000
_FRESH = 10.0
_FEWEST = 20
"""Rewards of an arm, as if of equal weight, without which nothing is said about it."""
_Z = 1.959963984540054


@dataclass(frozen=True)
class _Row:
    record: Record
    made: Made
    reward: float
    context: Any

    @property
    def unit(self) -> str:
        return self.record.unit or f"decision {self.record.id}"


def estimates(store: Store, live: LiveExperiment) -> dict[str, Any]:
    """Lift and values of single arms from the latest decisions, computed every ten seconds at most.

    Returns
    -------
    "lift" over the holdout, None where nothing can be said; "single_arms": what a decision would have paid
    on average if everybody had got the same arm, by arm.
    """
    then, found = live.estimates
    if time.monotonic() - then > _FRESH:
        found = _estimates(store, live)
        live.estimates = time.monotonic(), found
    return found


def _estimates(store: Store, live: LiveExperiment) -> dict[str, Any]:
    state = live.state
    rows = []
    for record in store.last(live.name, "decided", limit=_ROWS):
        made = state.decisions.get(record.id)
        if made and made.value is not None and record.context is not None:
            rows.append(_Row(record, made, made.value, record.context))
    rule = state.settings.reward
    return {
        "lift": _lift(state, rows),
        "single_arms": single_arms(rows, state.arms, low=rule.min, high=rule.max),
    }


def _lift(state: ExperimentState, rows: list[_Row]) -> dict[str, float] | None:
    # Only while some units were held out and the others got the policy.
    rows = [row for row in rows if row.made.held_out]
    if not rows or state.schema is None:
        return None
    found = lift(
        _encoded(state.schema, [row.context for row in rows]),
        [row.reward for row in rows],
        [row.made.group == "policy" for row in rows],
        share=[row.made.held_out or 0.0 for row in rows],
        units=[row.unit for row in rows],
    )
    return None if found is None else asdict(found)


def single_arms(rows: list[_Row], arms: list[str], *, low: float, high: float) -> dict[str, dict[str, float]]:
    """Value of always taking an arm, with a 95 % interval, by the propensities of the policy's decisions.

    The plain mean of an arm is about those whom the policy gave it to, often those whom it suits. No reward
    is below ``low`` or above ``high``.
    """
    rows = [row for row in rows if row.made.group == "policy" and row.made.arm in arms]
    if not rows:
        return {}
    chances = [dict(row.record.data["event"]["propensities"])[row.made.arm] for row in rows]
    numbers = {unit: number for number, unit in enumerate(dict.fromkeys(row.unit for row in rows))}
    log = Log(
        contexts=np.empty((len(rows), 0)),
        features=(),
        arms=tuple(arms),
        actions=np.array([arms.index(row.made.arm) for row in rows]),
        rewards=np.array([row.reward for row in rows]),
        propensities=np.array(chances),
        clusters=np.array([numbers[row.unit] for row in rows]),
    )
    found = {}
    for number, arm in enumerate(arms):
        chosen = log.actions == number
        paid, weights = log.rewards[chosen], 1 / np.array(chances)[chosen]
        # A few decisions that were unlikely may outweigh all others: so many of equal weight say as much.
        worth = weights.sum() ** 2 / (weights**2).sum() if len(paid) else 0.0
        if worth >= _FEWEST and np.ptp(paid) > 0:  # rewards all alike do not say how much they vary
            estimate = snips(log, np.tile(np.eye(len(arms))[number], (log.rounds, 1)))
            below, above = estimate.interval(0.95)
            if np.isin(paid, (low, high)).all():
                below, above = _wilson(estimate, low, high, most=float(worth))
            found[arm] = {"mean": estimate.value, "low": max(below, low), "high": min(above, high)}
    return found


def _wilson(estimate: Estimate, low: float, high: float, *, most: float) -> tuple[float, float]:
    """Wilson's 95 % interval for rewards that are ``low`` or ``high``: it holds though one of them is rare.

    The number of rewards is that of independent ones of equal weight with the same standard error, at most
    ``most``.
    """
    p = (estimate.value - low) / (high - low)
    n = min(p * (1 - p) / (estimate.standard_error / (high - low)) ** 2, most)
    centre, share = p + _Z**2 / (2 * n), 1 / (1 + _Z**2 / n)
    reach = _Z * np.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    below, above = share * (centre - reach), share * (centre + reach)
    return low + below * (high - low), low + above * (high - low)


def _encoded(schema: Schema, contexts: list[Any]) -> NDArray[np.float64]:
    """Rows of contexts, each by name or by position."""
    rows = np.empty((len(contexts), schema.width))
    for kind in (dict, list):
        of_kind = [i for i, context in enumerate(contexts) if isinstance(context, kind)]
        if of_kind:
            rows[of_kind] = schema.encode([contexts[i] for i in of_kind])
    return rows
