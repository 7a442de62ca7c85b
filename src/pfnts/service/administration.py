"""Experiments, arms, imports, erasure: what is changed seldom and by few."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from pfnts import backbones
from pfnts.contexts import Schema
from pfnts.service.clock import iso
from pfnts.service.decisions import check_columns, fix_schema, lookup, wait_for_model, write
from pfnts.service.engine import Engine
from pfnts.service.errors import Conflict, Invalid, NotFound, Unavailable
from pfnts.service.experiment import ExperimentState
from pfnts.service.live import LiveExperiment
from pfnts.service.schemas import Arm, Experiment, ExperimentChange, ImportedRow, ImportRequest
from pfnts.service.store import Draft, Record, StoreUnavailableError

_TRIES = 5


def describe(engine: Engine, live: LiveExperiment) -> dict[str, Any]:
    """An experiment as it stands."""
    with live.lock:
        state = live.state
        settings = state.settings.model_dump(mode="json", by_alias=True)
        settings.pop("arms")
        known = state.features
        return settings | {
            "mode": state.mode,
            "baseline_arm": state.baseline,
            "holdout": state.holdout,
            "arms": [{"id": arm} | ({"features": known[arm]} if arm in known else {}) for arm in state.arms],
            "removed_arms": sorted(state.removed),
            "columns": None if state.schema is None else _columns(state.schema),
            "arm_columns": None if state.arm_schema is None else _columns(state.arm_schema),
            "created": iso(state.created),
            "position": state.position,
            "model": engine.describe_model(live),
            "lag": live.lag,
        }


def _columns(schema: Schema) -> list[dict[str, Any]]:
    return [
        {"name": column.name, "kind": column.kind, "categories": list(column.categories)}
        for column in schema.columns
    ]


async def create(engine: Engine, experiment: Experiment) -> tuple[dict[str, Any], bool]:
    """Begin an experiment; the same again is fine, another one of the same name is a conflict."""
    await asyncio.to_thread(_check, experiment)  # a policy is made, and weights may have to be read
    settings = experiment.model_dump(mode="json", by_alias=True)
    draft = Draft(
        experiment.name, "created", experiment.name, engine.clock.now(), {"settings": settings}, new=True
    )
    [record] = await write(engine, [draft])
    live = await lookup(engine, experiment.name)
    if record is None and live.state.settings != experiment:
        raise Conflict(
            f"name must be new, there is an experiment {experiment.name!r} with other settings", field="name"
        )
    if live.state.schema is not None:
        await wait_for_model(live, seconds=10.0)
    return describe(engine, live), record is not None


async def change(engine: Engine, name: str, wanted: ExperimentChange) -> dict[str, Any]:
    """Change mode, baseline arm or holdout."""
    live = await lookup(engine, name)

    def draft(state: ExperimentState) -> Draft:
        data = wanted.model_dump(exclude_none=True)
        if wanted.baseline_arm is not None and wanted.baseline_arm not in state.arms:
            raise Invalid(
                f"baseline_arm must be one of {state.arms}, got {wanted.baseline_arm!r}", field="baseline_arm"
            )
        return Draft(name, "changed", str(state.revision), engine.clock.now(), data, revision=state.revision)

    await _administer(engine, live, draft)
    return describe(engine, live)


async def add_arm(engine: Engine, name: str, wanted: Arm) -> dict[str, Any]:
    """Add an arm; its id was never used before, and it has features if the others have."""
    live = await lookup(engine, name)
    arm = wanted.id

    def draft(state: ExperimentState) -> Draft:
        _check_features(state, wanted)
        if arm in state.arms or arm in state.removed:
            was = "is there" if arm in state.arms else "was removed, and ids are not used again"
            raise Conflict(f"id must be new, {arm!r} {was}", field="id")
        if len(state.arms) >= 1000:
            raise Invalid("arms must be at most 1000", field="id")
        data = {} if wanted.features is None else {"features": wanted.features}
        return Draft(name, "arm_added", arm, engine.clock.now(), data, revision=state.revision)

    await _administer(engine, live, draft)
    return describe(engine, live)


def _check_features(state: ExperimentState, arm: Arm) -> None:
    if state.brings:
        raise Conflict(f"{state.name!r} has no arms: its decisions bring candidates", field="id")
    if (arm.features is None) == bool(state.features):
        raise Invalid(
            f"features must be given for all arms or for none, the others have "
            f"{'them' if state.features else 'none'}",
            field="features",
        )
    if arm.features is not None:
        assert state.arm_schema is not None
        check_columns(state.arm_schema, arm.features, "features")


async def remove_arm(engine: Engine, name: str, arm: str) -> dict[str, Any]:
    """Take an arm out of the choice; what it taught stays."""
    live = await lookup(engine, name)

    def draft(state: ExperimentState) -> Draft:
        if arm not in state.arms:
            raise NotFound(f"there is no arm {arm!r} in {name!r}, which has {state.arms}")
        if arm == state.baseline:
            raise Conflict(f"arm must not be the baseline arm, {arm!r} is; change baseline_arm first")
        return Draft(name, "arm_removed", arm, engine.clock.now(), {}, revision=state.revision)

    await _administer(engine, live, draft)
    return describe(engine, live)


async def import_rows(engine: Engine, name: str, wanted: ImportRequest) -> dict[str, Any]:
    """Take in rows of another log as a warm start: all of them, or none if one is wrong."""
    live = await lookup(engine, name)
    if live.state.schema is None:
        first = wanted.rows[0]
        try:
            _check_chosen(live.state, first)
            await fix_schema(engine, live, first.context, [first.features])
        except (ValueError, Invalid) as error:
            raise Invalid(f"row 1: {error}", field="rows") from error
    await asyncio.to_thread(_check_rows, live.state, wanted.rows)
    now = engine.clock.now()
    entries = [
        Draft(
            name,
            "observed",
            f"{wanted.import_id}/{number}",
            now,
            {"arm": row.arm, "value": row.value},
            unit=row.unit,
            context=row.context,
            candidates=None if row.features is None else [row.features],
        )
        for number, row in enumerate(wanted.rows)
    ]
    records = await write(engine, entries)
    taken = sum(record is not None for record in records)
    return {"import_id": wanted.import_id, "learned": taken, "duplicate": len(records) - taken}


def _check_rows(state: ExperimentState, rows: list[ImportedRow]) -> None:
    """Complain about the first row that does not fit."""
    rule, schema = state.settings.reward, state.schema
    assert schema is not None
    for number, row in enumerate(rows, 1):
        try:
            _check_chosen(state, row)
            if not rule.min <= row.value <= rule.max:
                raise ValueError(f"value must be from {rule.min:g} to {rule.max:g}, got {row.value:g}")
            schema.encode(row.context)
            if row.features is not None:
                assert state.arm_schema is not None
                check_columns(state.arm_schema, row.features, "features")
        except (ValueError, Invalid) as error:
            raise Invalid(f"row {number}: {error}", field="rows") from error


def _check_chosen(state: ExperimentState, row: ImportedRow) -> None:
    if state.brings and (row.features is None or row.arm is not None):
        raise ValueError(f"features must be given in the place of arm, {state.name!r} has no arms")
    if not state.brings and row.arm not in state.arms:
        raise ValueError(f"arm must be one of {state.arms}, got {row.arm!r}")
    if not state.brings and row.features is not None:
        raise ValueError("features must be left out, those of an arm are known")


async def erase_unit(engine: Engine, name: str, unit: str) -> dict[str, Any]:
    """Forget a person's contexts, in the store at once and in the model as soon as it is folded anew."""
    live = await lookup(engine, name)
    draft = Draft(name, "erased", uuid.uuid4().hex, engine.clock.now(), {})
    try:
        _, count = await asyncio.to_thread(engine.writer.erase, draft, unit)
    except StoreUnavailableError as error:
        raise Unavailable(str(error)) from error
    return {"erased": count, "position": live.state.position}


async def _administer(engine: Engine, live: LiveExperiment, draft: Any) -> Record:
    """Append what follows from the state, again if another change came in between."""
    for _ in range(_TRIES):
        with live.lock:
            entry = draft(live.state)
        [record] = await write(engine, [entry])
        if record is not None:
            return record
        await asyncio.to_thread(live.follow)
    raise Conflict(f"another change of {live.name!r} came in between; look and try again")


def _check(experiment: Experiment) -> None:
    """Complain about settings that contradict each other, or that no policy can be made of."""
    arms = [arm.id for arm in experiment.arms]
    if len(set(arms)) != len(arms):
        raise Invalid(f"arms must have distinct ids, got {arms}", field="arms")
    featured = [arm.features is not None for arm in experiment.arms]
    if len(set(featured)) > 1:
        raise Invalid("arms must all have features, or none of them", field="arms")
    if experiment.arm_columns is not None and not all(featured):
        raise Invalid("arm_schema must be left out where arms have no features", field="arm_schema")
    if experiment.baseline_arm is not None and experiment.baseline_arm not in arms:
        raise Invalid(
            f"baseline_arm must be one of {arms}, got {experiment.baseline_arm!r}", field="baseline_arm"
        )
    rule = experiment.reward
    if not rule.min < rule.max:
        raise Invalid(
            f"reward.min must be below reward.max, got {rule.min:g} and {rule.max:g}", field="reward"
        )
    if rule.default is not None and not rule.min <= rule.default <= rule.max:
        raise Invalid(
            f"reward.default must be from {rule.min:g} to {rule.max:g}, got {rule.default:g}", field="reward"
        )
    given = experiment.policy.settings
    # A name with dots would be imported: fine in one's own program, not in a service.
    if given.get("backbone", "linear") not in backbones.names():
        raise Invalid(
            f"backbone must be one of {backbones.names()}, got {given['backbone']!r}", field="policy"
        )
    if own := {"schema", "explore", "arms", "holdout", "baseline"} & given.keys():
        raise Invalid(f"{min(own)} must not stand among the policy's settings", field="policy")
    try:
        field = "schema"
        if experiment.columns is not None:
            Schema.of(experiment.columns)
        field = "arm_schema"
        if experiment.arm_columns is not None:
            Schema.of(experiment.arm_columns)
    except ValueError as error:
        raise Invalid(str(error), field=field) from error
    record = Record(
        experiment.name,
        0,
        "created",
        experiment.name,
        0.0,
        {"settings": experiment.model_dump(mode="json", by_alias=True)},
        "",
    )
    try:
        state = ExperimentState(record)
    except ValueError as error:
        raise Invalid(f"features must fit each other: {error}", field="arms") from error
    try:
        state.make_policy()
    except (ValueError, TypeError, ImportError) as error:
        raise Invalid(f"policy must be one that can be made: {error}", field="policy") from error
