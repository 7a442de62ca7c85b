"""What an experiment has come to, for the page and for programs."""

from __future__ import annotations

import math
import time
from typing import Any

from pfnts.service.clock import iso
from pfnts.service.engine import Engine
from pfnts.service.experiment import ExperimentState
from pfnts.service.live import LiveExperiment
from pfnts.service.series import Cell
from pfnts.service.store import Record

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
            "arms": [_arm(state, arm, steps, total) for arm in (*state.arms, *sorted(state.removed))],
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


def _arm(state: ExperimentState, arm: str, steps: list[dict[str, Any]], total: int) -> dict[str, Any]:
    whole = Cell()
    for step in steps:
        if arm in step["arms"]:
            whole.add(Cell(**step["arms"][arm]))
    return {
        "id": arm,
        "live": arm in state.arms,
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


def _decision(record: Record, state: ExperimentState) -> dict[str, Any]:
    made = state.decisions[record.id]
    event = record.data["event"]
    return {
        "decision_id": record.id,
        "time": iso(record.time),
        "unit": record.unit,
        "context": record.context,
        "arm": event["arm"],
        "reason": event["reason"],
        "propensities": dict(event["propensities"]),
        "posterior": record.data.get("posterior"),
        "shadow": record.data.get("shadow"),
        "settled": made.settled,
        "reward": made.value,
        "position": record.data["model"]["position"],
    }
