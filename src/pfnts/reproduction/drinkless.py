"""The Drink Less trial: the paper's off-policy evaluation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from pfnts.experiments import Job, PolicySpec, Run, RunStore
from pfnts.experiments.ope_report import lead_table, report_parts, value_table, weight_table
from pfnts.experiments.replays import PolicyValue, ReplaySpec, plan_replays
from pfnts.experiments.report.page import Part, Text
from pfnts.experiments.report.tables import Table, csv_text
from pfnts.experiments.store import CorruptRunError, read_record, read_result
from pfnts.ope import Log

CONTESTANTS = tuple(map(PolicySpec, ("pfn-ts", "lin-ts", "rf-ts", "xgboost-ts", "bf-ts")))
REPLICATES, QUICK_REPLICATES, QUICK_PEOPLE = 30, 2, 40
_ABOUT = (
    "The paper shows its estimates as pictures without numbers: by SNIPS its PFN-TS comes first at the end, "
    "behind BFTS on shorter horizons; DR tracks SNIPS; no weight exceeds 10/3; and the leads over the best "
    "other policy are boxes over 30 resampled logs. All four are below."
)


def trial_plan(log: Log, *, quick: bool, names: Sequence[str], seed: int) -> list[ReplaySpec]:
    """List the replays of the policies named."""
    policies = [policy for policy in CONTESTANTS if policy.name in names]
    replicates = dict.fromkeys(policies, QUICK_REPLICATES if quick else REPLICATES)
    return plan_replays(log, policies, replicates=replicates, seed=seed)


def replays_at_hand(jobs: Sequence[Job], store: RunStore) -> list[Run]:
    """Read the replays of the policies that have all of theirs in the store.

    Settings, weights and trial must be those of the jobs; another version of the source may have made them.
    """
    found: dict[str, tuple[str, Run]] = {}
    wanted = {_decided_by(job.spec.describe(), job.producer): job for job in jobs}
    for folder in store.folders():
        with suppress(CorruptRunError):
            about = read_record(folder)
            key, finished = _decided_by(about, about["producer"]), str(about.get("finished", ""))
            if key in wanted and finished >= found.get(key, ("",))[0]:
                spec = wanted[key].spec
                found[key] = finished, Run(spec, read_result(folder, about, spec.result))
    lacking = {policy_name(job) for key, job in wanted.items() if key not in found}
    return [found[key][1] for key, job in wanted.items() if policy_name(job) not in lacking]


def policy_name(job: Job) -> str:
    """Name whose replay it is."""
    return str(job.spec.describe()["policy"]["name"])


def _decided_by(description: Mapping[str, Any], producer: Mapping[str, Any]) -> str:
    said = [description.get(name) for name in ("kind", "identity", "number", "seed")]
    made = [producer.get(name) for name in ("settings", "backbone", "data")]
    return json.dumps([description.get("policy", {}).get("name"), *said, *made], sort_keys=True)


def trial_parts(log: Log, found: Sequence[PolicyValue]) -> list[Part]:
    """What the page says about the trial: values, weights and leads under one heading."""
    blocks = [block for part in report_parts(log, found) for block in part.blocks]
    return [Part("Drink Less trial", (Text(_ABOUT), *blocks), "Drink Less")]


def trial_tables(found: Sequence[PolicyValue]) -> tuple[list[Table], str]:
    """The same as tables, and every value with its interval as CSV."""
    names = ("policy", "estimator", "replicates", "value", "low", "high", "backbone")
    ends = [(value.policy, name, value.final(name)) for value in found for name in value.curves]
    rows = [
        (policy.label, name, len(end.replicates), end.value, *end.interval(), policy.backbone())
        for policy, name, end in ends
    ]
    numbers = csv_text([dict(zip(names, row, strict=True)) for row in rows], names, digits=6)
    return [value_table(found), weight_table(found), lead_table(found)], numbers
