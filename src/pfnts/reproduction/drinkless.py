"""The Drink Less trial: the paper's off-policy evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from pfnts.experiments import PolicySpec
from pfnts.experiments.ope_report import lead_table, report_parts, value_table, weight_table
from pfnts.experiments.replays import PolicyValue, ReplaySpec, plan_replays
from pfnts.experiments.report.page import Part, Text
from pfnts.experiments.report.tables import Table, csv_text
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


def trial_parts(log: Log, found: Sequence[PolicyValue]) -> list[Part]:
    """What the page says about the trial: values, weights and leads under one heading."""
    blocks = [block for part in report_parts(log, found) for block in part.blocks]
    return [Part("Drink Less trial", (Text(_ABOUT), *blocks), "Drink Less")]


def trial_tables(found: Sequence[PolicyValue]) -> tuple[list[Table], str]:
    """The same as tables, and every value with its interval as CSV."""
    names = ("policy", "estimator", "replicates", "value", "low", "high")
    ends = [(value.policy.label, name, value.final(name)) for value in found for name in value.curves]
    rows = [(label, name, len(end.replicates), end.value, *end.interval()) for label, name, end in ends]
    numbers = csv_text([dict(zip(names, row, strict=True)) for row in rows], names, digits=6)
    return [value_table(found), weight_table(found), lead_table(found)], numbers
