"""What an experiment has come to, for the page and for programs."""

from __future__ import annotations

import math
import time
from typing import Any

from pfnts.service.clock import iso
from pfnts.service.engine import Engine
from pfnts.service.experiment import CANDIDATES, ExperimentState, served
from pfnts.service.live import LiveExperiment
from pfnts.service.series import Cell
from pfnts.service.store import Record
from pfnts.service.store.base import Context

_Z = 1.959963984540054


def report(engine: Engine, live: LiveExperiment) -> dict[str, Any]:
    """Numbers of an experiment as this process knows them."""
    with live.lock:
        state = live.state
        steps = state.series.steps()
        total = sum(cell["decisions"] for step in steps for cell in step["arms"].values())
        return {
            "name": state.name,
            "time": iso(engine.clock.now()),
            "mode": state.mode,
            "baseline_arm": state.baseline,
            "holdout": state.holdout,
            "reward": {"min": state.settings.reward.min, "max": state.settings.reward.max},
            "decisions": len(state.decisions),
            "rewards": {
                "learned": state.counts["reward"],
                "default": state.counts["default"],
                "missing": state.counts["missing"],
                "late": state.counts["late"],
                "pending": len(state.decisions) - state.counts["settled"],
            },
            "reasons": dict(state.reasons),
            "brings_candidates": state.brings,
            "arms": [_arm(state, arm, steps, total) for arm in _shown(state)],
            "groups": {name: _mean(cell, state) for name, cell in state.groups.items()},
            "series": {"width": state.series.width, "steps": steps},
            "model": {
                **engine.describe_model(live),
                "lag": live.lag,
                "age": time.monotonic() - live.refreshed,
                "policy": state.settings.policy.model_dump(),
            },
            "position": state.position,
            "requests": engine.metrics.by("pfnts_requests_total", "status"),
            "latency": engine.metrics.latency(state.name),
            "replica": engine.replica,
            "leads": engine.epoch is not None,
            "recent": [_decision(record, state) for record in reversed(state.recent)],
        }


def _shown(state: ExperimentState) -> list[str]:
    return [CANDIDATES] if state.brings else [*state.arms, *sorted(state.removed)]


def _arm(state: ExperimentState, arm: str, steps: list[dict[str, Any]], total: int) -> dict[str, Any]:
    whole = Cell()
    for step in steps:
        if arm in step["arms"]:
            whole.add(Cell(**step["arms"][arm]))
    return {
        "id": arm,
        "number": 0 if state.brings else state.ever.index(arm),
        "features": state.features.get(arm),
        "live": arm in state.arms or state.brings,
        "decisions": whole.decisions,
        "share": whole.decisions / total if total else 0.0,
        **_mean(whole, state),
    }


def _mean(cell: Cell, state: ExperimentState) -> dict[str, Any]:
    """Mean reward with a 95 % interval by the normal approximation; None where there are too few."""
    rule = state.settings.reward
    if not cell.rewards:
        return {"rewards": 0, "mean": None, "low": None, "high": None}
    mean = cell.total / cell.rewards
    found = {"rewards": cell.rewards, "mean": mean, "low": None, "high": None}
    if cell.rewards > 1:
        variance = max(cell.squares - cell.rewards * mean**2, 0.0) / (cell.rewards - 1)
        reach = _Z * math.sqrt(variance / cell.rewards)
        # Rewards that are all alike say nothing about how much they vary.
        ends = {"low": max(mean - reach, rule.min), "high": min(mean + reach, rule.max)}
        found |= ends if variance > 0 else {}
    return found


def _features(record: Record, state: ExperimentState, arm: str) -> Context | None:
    """What is known of the arm, or of the candidate, that was served."""
    if record.candidates is not None:
        place: int = record.data["event"]["arm"]
        return record.candidates[place]
    return state.features.get(arm)


def _decision(record: Record, state: ExperimentState) -> dict[str, Any]:
    made = state.decisions[record.id]
    arm, propensities = served(record.data)
    shadow = record.data.get("shadow")
    if shadow is not None:
        chosen, chances = served(record.data, "shadow")
        shadow = shadow | {"arm": chosen, "propensities": chances}
    return {
        "decision_id": record.id,
        "time": iso(record.time),
        "unit": record.unit,
        "context": record.context,
        "features": _features(record, state, arm),
        "arm": arm,
        "reason": record.data["event"]["reason"],
        "propensities": propensities,
        "posterior": record.data.get("posterior"),
        "shadow": shadow,
        "settled": made.settled,
        "reward": made.value,
        "position": record.data["model"]["position"],
    }
