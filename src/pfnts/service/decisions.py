"""A decision from request to answer: propose, store, answer; or the fallback when time is up."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pfnts.contexts import Schema
from pfnts.events import Decided
from pfnts.service import drafts
from pfnts.service.engine import Engine
from pfnts.service.errors import Conflict, Invalid, NotFound, Unavailable
from pfnts.service.inference import Job, Proposal
from pfnts.service.live import LiveExperiment
from pfnts.service.schemas import DecisionRequest
from pfnts.service.store import Draft, Record, StoreUnavailableError

T = TypeVar("T")


@dataclass(frozen=True)
class _Asked:
    live: LiveExperiment
    request: DecisionRequest
    id: str


async def decide(engine: Engine, name: str, request: DecisionRequest) -> dict[str, Any]:
    """Decide, or give the stored answer if the id was there before with the same request.

    The event is in the store before the answer leaves; if the store does not take it, nobody gets an arm.
    """
    begun = time.monotonic()
    live = await lookup(engine, name)
    asked = _Asked(live, request, request.decision_id or uuid.uuid4().hex)
    if asked.id in live.state.decisions:
        return await _repeated(engine, asked)
    check_choice(live, request)
    await _check_columns(engine, live, request)
    draft = await _draft(engine, asked)
    [record] = await write(engine, [draft])
    if record is None:
        return await _repeated(engine, asked)
    engine.metrics.count("pfnts_decisions_total", experiment=name, reason=record.data["event"]["reason"])
    engine.metrics.observe(name, time.monotonic() - begun)
    return drafts.answer(record)


async def lookup(engine: Engine, name: str) -> LiveExperiment:
    """Look an experiment up, in the store if need be."""
    try:
        return engine.experiment(name)
    except NotFound:
        await _unblocked(engine.discover, name)
        return engine.experiment(name)


async def find(engine: Engine, name: str, kind: str, id: str) -> Record | None:
    """Look a record up in the store."""
    return await _unblocked(engine.store.find, name, kind, id)


async def _unblocked(work: Callable[..., T], *arguments: Any) -> T:
    """Ask the store beside the event loop: it may be slow, or gone."""
    try:
        return await asyncio.to_thread(work, *arguments)
    except StoreUnavailableError as error:
        raise Unavailable(str(error)) from error


async def write(engine: Engine, entries: list[Draft]) -> list[Record | None]:
    """Append entries and wait until they are stored."""
    try:
        return await asyncio.wrap_future(engine.writer.submit(entries))
    except StoreUnavailableError as error:
        raise Unavailable(str(error)) from error


async def _draft(engine: Engine, asked: _Asked) -> Draft:
    """The entry of a decision, by whoever has to take it."""
    live, state = asked.live, asked.live.state
    if engine.seal.held_out(state, asked.request, asked.id):
        return _baseline(engine, asked, reason="holdout", group="holdout")
    if state.mode == "log_only":
        return _baseline(engine, asked, reason="baseline", group="baseline")
    proposal = await _proposal(engine, asked)
    if state.mode == "shadow":
        shadow = None if proposal is None else proposal.event
        return _baseline(engine, asked, reason="baseline", group="baseline", shadow=shadow)
    if proposal is None:
        return _baseline(engine, asked, reason="fallback", group="policy")
    version = proposal.version
    model = engine.describe_model(live) | {"position": version.position, "fingerprint": version.fingerprint}
    return drafts.decided(
        state,
        asked.request,
        proposal.event,
        time=engine.clock.now(),
        seal=engine.seal,
        model=model,
        decision=proposal.decision,
    )


async def _proposal(engine: Engine, asked: _Asked) -> Proposal | None:
    """What the model proposes; None if it does not within the time there is."""
    job = Job(asked.live, asked.request, asked.id, engine.seal.rng(asked.live.name, asked.id))
    engine.inference.submit(job)
    waiting = asyncio.wrap_future(job.future)
    done, _ = await asyncio.wait({waiting}, timeout=engine.limits.timeout)
    if not done and job.future.cancel():
        return None
    return await waiting


def _baseline(
    engine: Engine, asked: _Asked, *, reason: str, group: str, shadow: Decided | None = None
) -> Draft:
    state = asked.live.state
    rng = engine.seal.rng(asked.live.name, asked.id)
    event = drafts.fallback(state, asked.request, asked.id, reason=reason, rng=rng)
    return drafts.decided(
        state,
        asked.request,
        event,
        time=engine.clock.now(),
        seal=engine.seal,
        model=engine.describe_model(asked.live),
        group=group,
        shadow=shadow,
    )


async def _repeated(engine: Engine, asked: _Asked) -> dict[str, Any]:
    """The stored answer, if the request is the one it was given to."""
    record = await find(engine, asked.live.name, "decided", asked.id)
    if record is None:
        raise Unavailable("the decision was not stored; ask again")
    if record.data["request"] != engine.seal.request(asked.live.name, asked.request):
        stored = {
            "unit": record.unit,
            "context": record.context,
            "eligible": record.data["event"]["eligible"],
            "candidates": _candidates(record),
        }
        raise Conflict(
            f"decision_id must be new for a new request, {asked.id!r} was asked with another one",
            stored=stored | {"answer": drafts.answer(record)},
            received=asked.request.model_dump(mode="json", exclude={"decision_id"}),
        )
    return drafts.answer(record)


def _candidates(record: Record) -> list[dict[str, Any]] | None:
    names = record.data.get("candidates")
    if names is None:
        return None
    if record.candidates is None:  # they were erased
        return [{"id": id} for id in names]
    return [{"id": id, "features": features} for id, features in zip(names, record.candidates, strict=True)]


def check_choice(live: LiveExperiment, request: DecisionRequest) -> None:
    """Complain about a request that leaves nothing to choose, or has a choice that the experiment has not."""
    if live.state.brings:
        ids = [candidate.id for candidate in request.candidates or ()]
        if not ids or len(set(ids)) < len(ids):
            raise Invalid(
                f"candidates must be given, with distinct ids, since {live.name!r} has no arms of its own, "
                f"got {'two of one id' if ids else 'none'}",
                field="candidates",
            )
        if request.eligible is not None:
            raise Invalid(
                "eligible must be left out where there are candidates; leave out those that are not",
                field="eligible",
            )
        return
    if request.candidates is not None:
        raise Invalid(
            f"candidates must be left out, {live.name!r} has arms of its own; choose among them by eligible",
            field="candidates",
        )
    arms = live.state.arms
    unknown = [arm for arm in request.eligible or () if arm not in arms and arm not in live.state.removed]
    if unknown:
        raise Invalid(
            f"eligible must name arms of the experiment, which are {arms}, got {unknown}", field="eligible"
        )
    drafts.eligible_arms(arms, request)


async def _check_columns(engine: Engine, live: LiveExperiment, request: DecisionRequest) -> None:
    """Check context and candidates against the schemas; the first ones of all bring these about."""
    if live.state.schema is None:
        await fix_schema(engine, live, request.context, request.offered)
    assert live.state.schema is not None
    check_columns(live.state.schema, request.context, "context")
    if request.offered is not None:
        assert live.state.arm_schema is not None
        check_columns(live.state.arm_schema, request.offered, "candidates")


def check_columns(schema: Schema, values: Any, field: str) -> None:
    """Complain about a context, or features, that do not fit a schema."""
    try:
        schema.encode(values)
    except ValueError as error:
        # The rules are those of contexts, and so are their words; a column's own name stays as it is.
        words = str(error) if field == "context" else str(error).replace("context", "features", 1)
        raise Invalid(words, field=field) from error


async def fix_schema(
    engine: Engine, live: LiveExperiment, context: Any, offered: list[Any] | None = None
) -> None:
    """Write down what the columns are, as inferred from the first context; all after it must have them."""
    schema = live.state.declared or _inferred(context, "context")
    check_columns(schema, context, "context")
    data = {"schema": schema.to_json()}
    if live.state.brings:
        data["arm_schema"] = (live.state.arm_schema or _inferred(offered, "candidates")).to_json()
    await write(engine, [Draft(live.name, "schema", "schema", engine.clock.now(), data)])
    await _unblocked(live.follow)
    await wait_for_model(live)


def _inferred(values: Any, field: str) -> Schema:
    try:
        return Schema.infer(values)
    except ValueError as error:
        raise Invalid(str(error), field=field) from error


async def wait_for_model(live: LiveExperiment, *, seconds: float = 2.0) -> None:
    """Wait until a model can be asked, which is soon after the columns are known."""
    end = time.monotonic() + seconds
    while live.version is None and live.broken is None and time.monotonic() < end:
        await asyncio.sleep(0.005)
