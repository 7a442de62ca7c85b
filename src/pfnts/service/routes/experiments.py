"""Experiments: begin, change, look at, export, erase."""

from __future__ import annotations

import asyncio
import json
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi import Path as PathParameter
from pydantic import TypeAdapter, ValidationError
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pfnts.service import administration as administer
from pfnts.service import export as exports
from pfnts.service.clock import iso
from pfnts.service.decisions import check_choice, lookup
from pfnts.service.drafts import posterior_of
from pfnts.service.engine import Engine
from pfnts.service.errors import Busy, Conflict, Invalid
from pfnts.service.estimates import estimates
from pfnts.service.experiment import ExperimentState
from pfnts.service.live import LiveExperiment
from pfnts.service.problems import responses
from pfnts.service.report import report
from pfnts.service.routes.access import ExperimentName, TheEngine, key_of, needs
from pfnts.service.schemas import (
    Arm,
    Candidate,
    Context,
    DecisionRequest,
    Experiment,
    ExperimentChange,
    ImportRequest,
    Label,
    Unit,
)
from pfnts.service.store import Store

router = APIRouter(prefix="/v1/experiments", tags=["experiments"], responses=responses(404, 409))
Json = dict[str, Any]
_CONTEXT: TypeAdapter[Any] = TypeAdapter(Context)
_CANDIDATES: TypeAdapter[Any] = TypeAdapter(list[Candidate])
_MOST_STREAMS = 32
_MOST_EXPORTS = 4
_LONGEST_EXPORT = 600.0
"""Seconds after which nobody can be reading it any more."""
_PULSE = 0.25
"""Seconds between looks at the log for a stream."""


@router.post(
    "", status_code=201, dependencies=[needs("admin")], responses={200: {"description": "It was there"}}
)
async def create_experiment(wanted: Experiment, engine: TheEngine, response: Response) -> Json:
    """Begin an experiment."""
    found, new = await administer.create(engine, wanted)
    response.status_code = 201 if new else 200
    return found


@router.get("")
async def list_experiments(engine: TheEngine, request: Request) -> Json:
    """All experiments that the key may see."""
    engine.check_loaded()
    key = key_of(request)
    found = [
        administer.describe(engine, live)
        for name, live in engine.experiments.items()
        if key is None or key.experiment in (None, name)
    ]
    return {"experiments": found}


@router.get("/{experiment}", dependencies=[needs("reader")])
async def get_experiment(experiment: ExperimentName, engine: TheEngine) -> Json:
    """One experiment as it stands."""
    return administer.describe(engine, await lookup(engine, experiment))


@router.patch("/{experiment}", dependencies=[needs("admin")])
async def change_experiment(experiment: ExperimentName, wanted: ExperimentChange, engine: TheEngine) -> Json:
    """Change mode, baseline arm or holdout."""
    return await administer.change(engine, experiment, wanted)


@router.post("/{experiment}/arms", status_code=201, dependencies=[needs("admin")])
async def add_arm(experiment: ExperimentName, arm: Arm, engine: TheEngine) -> Json:
    """Add an arm."""
    return await administer.add_arm(engine, experiment, arm)


@router.delete("/{experiment}/arms/{arm:path}", dependencies=[needs("admin")])
async def remove_arm(
    experiment: ExperimentName, arm: Annotated[Label, PathParameter()], engine: TheEngine
) -> Json:
    """Take an arm out of the choice for good."""
    return await administer.remove_arm(engine, experiment, arm)


@router.post("/{experiment}/imports", dependencies=[needs("admin")])
async def import_rows(experiment: ExperimentName, wanted: ImportRequest, engine: TheEngine) -> Json:
    """Take in rows of another log as a warm start."""
    return await administer.import_rows(engine, experiment, wanted)


@router.delete("/{experiment}/units/{unit:path}", dependencies=[needs("admin")])
async def erase_unit(
    experiment: ExperimentName, unit: Annotated[Unit, PathParameter()], engine: TheEngine
) -> Json:
    """Forget the contexts of a person."""
    return await administer.erase_unit(engine, experiment, unit)


@router.get("/{experiment}/report", dependencies=[needs("reader")])
async def get_report(experiment: ExperimentName, engine: TheEngine) -> Json:
    """Rewards, traffic, the model, the lift over the holdout, the last decisions."""
    live = await lookup(engine, experiment)
    found = await asyncio.to_thread(report, engine, live)
    return found | await asyncio.to_thread(estimates, engine.store, live)


@router.get("/{experiment}/posterior", dependencies=[needs("reader")])
async def get_posterior(
    experiment: ExperimentName,
    context: Annotated[str, Query(max_length=20_000)],
    engine: TheEngine,
    candidates: Annotated[str | None, Query(max_length=20_000)] = None,
) -> Json:
    """What the model makes of a context (JSON), without deciding anything; of candidates (JSON), if any."""
    live = await lookup(engine, experiment)
    wanted = DecisionRequest(
        context=_parsed(context, _CONTEXT, "context"),
        candidates=None if candidates is None else _parsed(candidates, _CANDIDATES, "candidates"),
    )
    check_choice(live, wanted)
    return await asyncio.to_thread(_tried, engine, live, wanted)


@router.get("/{experiment}/explain", dependencies=[needs("reader")])
async def get_explanation(
    experiment: ExperimentName, context: Annotated[str, Query(max_length=20_000)], engine: TheEngine
) -> Json:
    """Why an arm at a context (JSON): posteriors, nearest rows for and against, the columns that matter."""
    live = await lookup(engine, experiment)
    return await asyncio.to_thread(_explained, live, _parsed(context, _CONTEXT, "context"))


def _parsed(text: str, kind: TypeAdapter[Any], field: str) -> Any:
    try:
        return kind.validate_python(json.loads(text))
    except (ValueError, ValidationError, RecursionError) as error:
        raise Invalid(f"{field} must be given as JSON: {str(error)[:300]}", field=field) from error


def _explained(live: LiveExperiment, context: Any) -> Json:
    version = live.version
    if version is None:
        raise Conflict("there is no model before the first decision or import")
    if live.state.brings:
        raise Conflict("explanations are about arms, of which the experiment has none")
    with version.lock:
        try:
            return version.policy.explain(context, rows=3).to_dict() | {"position": version.position}
        except ValueError as error:
            raise Invalid(str(error), field="context") from error
        except TypeError as error:  # a policy without a posterior
            raise Conflict(str(error)) from error


def _tried(engine: Engine, live: LiveExperiment, wanted: DecisionRequest) -> Json:
    version = live.version
    if version is None:
        raise Conflict("there is no model before the first decision or import")
    with version.lock:
        try:
            decision, _ = version.policy.propose(
                wanted.context,
                rng=np.random.default_rng(0),
                id=f"tried {uuid.uuid4().hex}",
                candidates=wanted.offered,
            )
        except ValueError as error:
            raise Invalid(str(error), field="context") from error
    names = [str(arm) for arm in decision.arms]
    if wanted.candidates is not None:
        names = [candidate.id for candidate in wanted.candidates]
    return {
        "propensities": dict(zip(names, decision.propensities.tolist(), strict=True)),
        "reason": decision.reason,
        "posterior": None if decision.posterior is None else posterior_of(decision, names=names),
        "model": engine.describe_model(live) | {"position": version.position},
    }


@router.get(
    "/{experiment}/export",
    dependencies=[needs("reader")],
    response_class=Response,
    responses={
        200: {"description": "A table", "content": {"text/csv": {}, "application/vnd.apache.parquet": {}}}
    },
)
async def export(
    experiment: ExperimentName,
    engine: TheEngine,
    format: Literal["csv", "parquet"] = "csv",
    group: exports.Group = "policy",
) -> Response:
    """One row per decision that has its reward, as `pfnts ope` reads it."""
    live = await lookup(engine, experiment)
    if engine.exports >= _MOST_EXPORTS:
        raise Busy(f"at most {_MOST_EXPORTS} exports are made at a time; try again in a second")
    headers = {"Content-Disposition": f'attachment; filename="{experiment}.{format}"'}
    if format == "csv":
        return _Counted(
            engine, "exports", exports.csv_lines(engine.store, live.state, group=group), "text/csv", headers
        )
    engine.exports += 1
    try:
        content = await asyncio.to_thread(_parquet, engine.store, live.state, group)
    except ImportError as error:
        raise Invalid(str(error), field="format") from error
    finally:
        engine.exports -= 1
    return Response(content, media_type="application/vnd.apache.parquet", headers=headers)


def _parquet(store: Store, state: ExperimentState, group: exports.Group) -> bytes:
    with tempfile.NamedTemporaryFile(suffix=".parquet", delete=False) as file:
        path = Path(file.name)
    try:
        exports.write_parquet(store, state, path, group=group)
        return path.read_bytes()
    finally:
        path.unlink()


@router.get(
    "/{experiment}/events",
    dependencies=[needs("reader")],
    response_class=StreamingResponse,
    responses={200: {"description": "Server-sent events", "content": {"text/event-stream": {}}}},
)
async def stream_events(
    experiment: ExperimentName,
    engine: TheEngine,
    after: Annotated[int, Query(ge=-1, le=2**62)] = -1,
    follow: bool = True,
    last_event_id: Annotated[int, Header(ge=-1, le=2**62)] = -1,
) -> StreamingResponse:
    """The log past a position, and whatever comes, as server-sent events; it can be taken up again."""
    live = await lookup(engine, experiment)
    after = max(after, last_event_id)
    if engine.streams >= _MOST_STREAMS:
        raise Busy(f"at most {_MOST_STREAMS} streams are served at a time")
    events = _events(engine, live, after, follow=follow)
    return _Counted(engine, "streams", events, "text/event-stream", {"X-Accel-Buffering": "no"})


class _Counted(StreamingResponse):
    """Counts itself from the answer on, not from its first part on: many may be asked for at once."""

    def __init__(
        self,
        engine: Engine,
        kind: Literal["streams", "exports"],
        parts: AsyncIterator[str] | Iterator[str],
        media_type: str,
        headers: dict[str, str],
    ) -> None:
        super().__init__(parts, media_type=media_type, headers=headers)
        self._engine, self._kind = engine, kind
        self._count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        longest = _LONGEST_EXPORT if self._kind == "exports" else None
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(longest):
                    await super().__call__(scope, receive, send)
        finally:
            self._count(-1)

    def _count(self, more: int) -> None:
        setattr(self._engine, self._kind, getattr(self._engine, self._kind) + more)


async def _events(engine: Engine, live: LiveExperiment, after: int, *, follow: bool) -> AsyncIterator[str]:
    quiet = 0.0
    yield ": the log from here on\n\n"
    while not engine.draining:
        if live.state.position > after:
            quiet, news = 0.0, []
            for record in await asyncio.to_thread(engine.store.read, live.name, after, limit=500):
                after = record.position
                data = {
                    "position": record.position,
                    "kind": record.kind,
                    "id": record.id,
                    "time": iso(record.time),
                    "unit": record.unit,
                    "context": record.context,
                    "candidates": record.candidates,
                    "data": record.data,
                }
                news.append(f"id: {after}\nevent: {record.kind}\ndata: {json.dumps(data)}\n\n")
            yield "".join(news)
            continue
        if not follow:
            return
        await asyncio.sleep(_PULSE)
        quiet += _PULSE
        if quiet >= 15:
            quiet = 0.0
            yield ": still here\n\n"
