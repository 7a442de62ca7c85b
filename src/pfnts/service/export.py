"""Logs for others: one row per settled decision, in the form that ``pfnts ope`` reads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pfnts.service.clock import iso
from pfnts.service.experiment import ExperimentState
from pfnts.service.store import Record, Store

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
    names, arms, features = columns(state), _arms(state), _features(state)  # arms may come while it goes on
    after = -1
    while records := store.read(state.name, after, limit=_PAGE):
        after = records[-1].position
        for record in records:
            made = state.decisions.get(record.id) if record.kind == "decided" else None
            if made is None or made.value is None or record.context is None:
                continue
            if group in ("all", made.group):
                yield dict(zip(names, _values(record, made.value, arms, features), strict=True))
        if after >= state.position:
            break


def columns(state: ExperimentState) -> list[str]:
    """Names of the columns: what happened, a propensity for each arm there ever was, the context."""
    head = ["decision_id", "time", "unit", "arm", "reward", "propensity", "reason"]
    return [*head, *(f"p.{arm}" for arm in _arms(state)), *(f"context.{name}" for name in _features(state))]


def command(state: ExperimentState, file: str) -> str:
    """The call of ``pfnts ope`` that reads the file."""
    context = "".join(f" --context 'context.{name}'" for name in _features(state))
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


def write_parquet(store: Store, state: ExperimentState, path: Path, *, group: Group = "policy") -> None:
    """Write the rows to a Parquet file."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            'a Parquet file needs pandas and pyarrow; install them with: pip install "pfnts[bench]"'
        ) from error
    pd.DataFrame(list(rows(store, state, group=group)), columns=columns(state)).to_parquet(path, index=False)


def _arms(state: ExperimentState) -> list[str]:
    return [*state.arms, *sorted(state.removed)]


def _features(state: ExperimentState) -> list[str]:
    return [] if state.schema is None else [column.name for column in state.schema.columns]


def _values(record: Record, value: float, arms: list[str], features: list[str]) -> Iterator[Any]:
    event, context = record.data["event"], record.context
    shares = dict(event["propensities"])
    # Decisions about nobody are independent of all others.
    unit = record.unit if record.unit is not None else f"decision {record.id}"
    yield from (record.id, iso(record.time), unit, event["arm"], value, shares[event["arm"]], event["reason"])
    yield from (shares.get(arm, 0.0) for arm in arms)
    assert context is not None
    if isinstance(context, list):
        yield from context
    else:
        yield from (context[name] for name in features)
