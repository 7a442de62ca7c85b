"""Decisions and rewards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from pfnts.service.decisions import decide
from pfnts.service.errors import Refusal
from pfnts.service.problems import responses
from pfnts.service.rewards import reward
from pfnts.service.routes.access import DecisionId, ExperimentName, TheEngine, needs
from pfnts.service.schemas import DecisionBatch, DecisionRequest, RewardBatch, RewardRequest

router = APIRouter(
    prefix="/v1/experiments/{experiment}",
    tags=["decisions"],
    dependencies=[needs("writer")],
    responses=responses(404, 409),
)


class ModelVersion(BaseModel):
    """Which model answered."""

    position: int
    """Position of the log that it stood on."""
    fingerprint: str
    """Hash of the log up to there."""
    version: str
    """Version of the package."""


class DecisionAnswer(BaseModel):
    """An arm, and how it came about."""

    decision_id: str
    arm: str
    propensities: dict[str, float]
    """Probability with which each arm was chosen."""
    reason: str
    model: ModelVersion
    reward_deadline: str


class RewardAnswer(BaseModel):
    """What became of a reward."""

    decision_id: str
    status: str
    """learned, pending, duplicate or late"""
    value: float | None
    """The reward that counts."""
    reward_deadline: str


class BatchAnswer(BaseModel):
    """An answer or a problem for each item, in their order."""

    items: list[dict[str, Any]]


@router.post("/decisions", response_model=DecisionAnswer)
async def make_decision(experiment: ExperimentName, request: DecisionRequest, engine: TheEngine) -> Any:
    """Choose an arm. Asking again with the same id and body gives the same answer."""
    return await decide(engine, experiment, request)


@router.post("/decisions:batch", response_model=BatchAnswer)
async def make_decisions(experiment: ExperimentName, batch: DecisionBatch, engine: TheEngine) -> Any:
    """Choose arms for several contexts; each item succeeds or fails by itself."""
    return await _each(decide(engine, experiment, item) for item in batch.items)


@router.post("/decisions/{decision}/rewards", response_model=RewardAnswer)
async def hand_in_reward(
    experiment: ExperimentName, decision: DecisionId, request: RewardRequest, engine: TheEngine
) -> Any:
    """Hand in what a decision paid; as often as you like, it counts once."""
    return await reward(engine, experiment, decision, request)


@router.post("/rewards:batch", response_model=BatchAnswer)
async def hand_in_rewards(experiment: ExperimentName, batch: RewardBatch, engine: TheEngine) -> Any:
    """Hand in several rewards; each item succeeds or fails by itself."""
    return await _each(
        reward(
            engine,
            experiment,
            item.decision_id,
            RewardRequest(value=item.value, reward_id=item.reward_id),
        )
        for item in batch.items
    )


async def _each(work: Iterable[Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    async def one(item: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        try:
            return {"status_code": 200, **await item}
        except Refusal as refusal:
            return {"status_code": refusal.status, "title": refusal.title, "detail": refusal.detail}

    return {"items": await asyncio.gather(*map(one, work))}
