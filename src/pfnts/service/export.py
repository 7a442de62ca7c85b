"""Logs for others: one row per settled decision, in the form that ``pfnts ope`` reads."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pfnts.contexts import Schema
from pfnts.service.clock import iso
from pfnts.service.experiment import ExperimentState, served
from pfnts.service.store import Record, Store
from pfnts.service.store.base import Context

Group = Literal["policy", "holdout", "baseline", "all"]
_PAGE = 1000


def rows(store: Store, state: ExperimentState, *, group: Group = "policy") -> Iterator[dict[str, Any]]:
    """Settled decisions in the order in which they were taken; erased ones are left out.

    Parameters
    ----------
    store
        Where the log is.
    state
        What is known of the experiment.
    group
        Whose decisions: those of the policy, of the holdout, of the baseline by the mode, or all.
    """
    names, arms = columns(state), _arms(state)  # arms may come while it goes on
    features, offered = _names(state.schema), _names(state.arm_schema if state.brings else None)
    after = -1
    while records := store.read(state.name, after, limit=_PAGE):
        after = records[-1].position
        for record in records:
            made = state.decisions.get(record.id) if record.kind == "decided" else None
            if made is None or made.value is None or record.context is None:
                continue
            if group in ("all", made.group):
                values = (
                    *_happened(record, made.value, arms),
                    *_known(record.context, features),
                    *_chosen(record, offered),
                )
                yield dict(zip(names, values, strict=True))
        if after >= state.position:
            break


def columns(state: ExperimentState) -> list[str]:
    """Names of the columns: what happened, a propensity for each arm there ever was, the context.

    Where decisions bring candidates: the features of the one that was chosen, in the place of propensities.
    """
    return [
        *("decision_id", "time", "unit", "arm", "reward", "propensity", "reason"),
        *(f"p.{arm}" for arm in _arms(state)),
        *(f"context.{name}" for name in _names(state.schema)),
        *(f"arm.{name}" for name in _names(state.arm_schema if state.brings else None)),
    ]


def command(state: ExperimentState, file: str) -> str:
    """The call of ``pfnts ope`` that reads the file."""
    context = "".join(f" --context {shlex.quote(f'context.{name}')}" for name in _names(state.schema))
    roles = "--action arm --reward reward --propensity propensity --cluster unit --time time"
    return f"pfnts ope {file} {roles}{context}"


def csv_lines(store: Store, state: ExperimentState, *, group: Group = "policy") -> Iterator[str]:
    """The rows as CSV, a piece at a time."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns(state), lineterminator="\n")
    writer.writeheader()
    for number, row in enumerate(rows(store, state, group=group)):
        writer.writerow(row)
        if number % 200 == 199:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def write_parquet(
    store: Store, state: ExperimentState, file: Path | BinaryIO, *, group: Group = "policy"
) -> None:
    """Write the rows to a Parquet file."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            'a Parquet file needs pandas and pyarrow; install them with: pip install "pfnts[bench]"'
        ) from error
    pd.DataFrame(list(rows(store, state, group=group)), columns=columns(state)).to_parquet(file, index=False)


def _arms(state: ExperimentState) -> list[str]:
    return [*state.arms, *sorted(state.removed)]


def _names(schema: Schema | None) -> list[str]:
    return [] if schema is None else [column.name for column in schema.columns]


def _happened(record: Record, value: float, arms: list[str]) -> Iterator[Any]:
    arm, shares = served(record.data)
    # Decisions about nobody are independent of all others.
    unit = record.unit if record.unit is not None else f"decision {record.id}"
    yield from (record.id, iso(record.time), unit, arm, value, shares[arm], record.data["event"]["reason"])
    yield from (shares.get(arm, 0.0) for arm in arms)


def _known(values: Context, names: list[str]) -> Iterator[Any]:
    yield from values if isinstance(values, list) else (values[name] for name in names)


def _chosen(record: Record, names: list[str]) -> Iterator[Any]:
    if record.candidates is not None:
        yield from _known(record.candidates[record.data["event"]["arm"]], names)
