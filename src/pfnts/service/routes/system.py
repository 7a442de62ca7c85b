"""Addresses for those who run the service."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, PlainTextResponse

from pfnts.service.engine import Engine
from pfnts.service.problems import responses
from pfnts.service.routes.access import TheEngine, needs

router = APIRouter(tags=["system"], responses=responses())
_OPEN: dict[str, Any] = {"security": []}  # to this machine; others need a key here, too


@router.get("/livez", openapi_extra=_OPEN)
async def live() -> dict[str, str]:
    """Whether the process is alive; if this fails, start it again."""
    return {"status": "ok"}


@router.get("/readyz", openapi_extra=_OPEN)
async def ready(engine: TheEngine) -> Any:
    """Whether requests should be sent here; if not, why."""
    reasons = engine.why_not_ready()
    body = {"status": "ready" if not reasons else "not ready", "reasons": reasons, "replica": engine.replica}
    if not reasons:
        return body
    content = {"title": "Unavailable", "status": 503, "detail": "; ".join(reasons), "reasons": reasons}
    return JSONResponse(content, 503, headers={"Retry-After": "1"}, media_type="application/problem+json")


@router.get("/metrics", response_class=PlainTextResponse, openapi_extra=_OPEN, dependencies=[needs("reader")])
async def metrics(engine: TheEngine) -> PlainTextResponse:
    """Counters and gauges in the text format of Prometheus; not with a key for one experiment only."""
    return PlainTextResponse(engine.metrics.text(_gauges(engine)), media_type="text/plain; version=0.0.4")


def _gauges(engine: Engine) -> Iterator[tuple[str, dict[str, str], float]]:
    yield "pfnts_ready", {}, int(not engine.why_not_ready())
    yield "pfnts_store_up", {}, int(engine.health.reason is None)
    yield "pfnts_leader", {}, int(engine.epoch is not None)
    yield "pfnts_queue_decisions", {}, engine.inference.waiting
    yield "pfnts_queue_writes", {}, engine.writer.waiting
    yield "pfnts_inference_batches", {}, engine.inference.batches
    yield "pfnts_inference_decisions", {}, engine.inference.asked
    yield "pfnts_streams", {}, engine.streams
    for name, found in engine.experiments.items():
        labels = {"experiment": name}
        state = found.state
        yield "pfnts_experiment_broken", labels, int(found.broken is not None)
        yield "pfnts_position", labels, state.position
        yield "pfnts_model_lag", labels, found.lag
        yield "pfnts_model_age_seconds", labels, time.monotonic() - found.refreshed
        yield "pfnts_rewards_pending", labels, len(state.decisions) - state.counts["settled"]
        yield "pfnts_rewards_missing", labels, state.counts["missing"]
        yield "pfnts_rewards_late", labels, state.counts["late"]
