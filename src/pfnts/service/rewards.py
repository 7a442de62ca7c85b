"""A reward from request to answer."""

from __future__ import annotations

from typing import Any

from pfnts.service.clock import iso
from pfnts.service.decisions import find, lookup, write
from pfnts.service.drafts import settlement
from pfnts.service.engine import Engine
from pfnts.service.errors import Invalid, NotFound
from pfnts.service.live import LiveExperiment
from pfnts.service.schemas import RewardRequest
from pfnts.service.store import Draft, Record


async def reward(engine: Engine, name: str, decision: str, request: RewardRequest) -> dict[str, Any]:
    """Settle a decision by its reward: the first in time counts, and counts once.

    Returns a status: "learned"; "pending" where the mode keeps it from the model for now; "duplicate" if the
    decision had its reward; "late" if its time was over, which is kept in the log and teaches nothing.
    """
    live = await lookup(engine, name)
    rule = live.state.settings.reward
    if not rule.min <= request.value <= rule.max:
        raise Invalid(
            f"value must be from {rule.min:g} to {rule.max:g}, got {request.value:g}", field="value"
        )
    deadline = await _deadline(engine, live, decision)
    status, record = await _settle(engine, live, decision, request, deadline)
    engine.metrics.count("pfnts_rewards_total", experiment=name, status=status)
    value = None if record is None else record.data["value"]
    return {"decision_id": decision, "status": status, "value": value, "reward_deadline": iso(deadline)}


async def _settle(
    engine: Engine, live: LiveExperiment, decision: str, request: RewardRequest, deadline: float
) -> tuple[str, Record | None]:
    now = engine.clock.now()
    if now <= deadline:
        draft = settlement(
            live.name, decision, time=now, value=request.value, by="reward", reward_id=request.reward_id
        )
        [record] = await write(engine, [draft])
        if record is not None:
            return ("learned" if live.state.learns else "pending"), record
        settled = await find(engine, live.name, "settled", decision)
        if settled is not None and settled.data["by"] == "reward":
            return "duplicate", settled
    else:
        settled = await find(engine, live.name, "settled", decision)
        if settled is not None and settled.data["by"] == "reward":
            return "duplicate", settled
    data = {"value": request.value, "reward_id": request.reward_id}
    await write(engine, [Draft(live.name, "late", decision, now, data, needs=decision)])
    return "late", settled


async def _deadline(engine: Engine, live: LiveExperiment, decision: str) -> float:
    made = live.state.decisions.get(decision)
    if made is not None:
        return made.deadline
    record = await find(engine, live.name, "decided", decision)
    if record is None:
        raise NotFound(
            f"there is no decision {decision!r} in {live.name!r}; hand its reward in once it was decided"
        )
    return float(record.data["deadline"])
