"""The paper beside our runs, in the report and in tables of its own."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar

from pfnts.experiments import FinalRegret, PolicySpec, RunSpec
from pfnts.experiments.charts import styles_of
from pfnts.experiments.replays import PolicyValue
from pfnts.experiments.report.contents import Companion, rank_cell
from pfnts.experiments.report.page import Block, Details, Part
from pfnts.experiments.report.sections import Section, average_ranks
from pfnts.experiments.report.tables import Cell, Row, Table, csv_text, spread
from pfnts.ope import Log
from pfnts.reproduction.drinkless import trial_parts, trial_tables
from pfnts.reproduction.peers import LIBRARY_NAMES, measured, peer_table, peers_csv
from pfnts.reproduction.published import (
    DEVIATION,
    HORIZON,
    LIBRARIES,
    LIBRARY,
    OPENML,
    REGRET,
    SYNTHETIC,
    TUNED,
)
from pfnts.reproduction.suites import missing

# A bar is full where our regret is four times the paper's, or a quarter.
_FULL_BAR = math.log(4)


class Paper(Companion):
    """The figures that the paper prints, and those of public libraries."""

    name = "paper"
    titles = ("Synthetic tasks of the paper", "OpenML tasks", "More tasks")
    remarks: ClassVar[Mapping[str, str]] = {
        "Variants": "The paper shows its ablations as curves without numbers. Encoding: the adaptive rule, "
        "disjoint and joint. Base of the prefixes: the estimators subclt (2), subclt(base=1.5) and "
        "subclt(base=3). Decision rule: the estimator predictive is its PFN-PS, exploration=0.0 its greedy "
        "rule. The others are ours.",
        "Coverage of intervals": "The paper shows coverage against length as a picture without numbers, a "
        "mark for each number of rows.",
    }

    def __init__(self, trial: tuple[Log, Sequence[PolicyValue]] | None = None) -> None:
        self._trial = trial
        """The Drink Less trial, and the values of policies on it."""

    def family(self, scenario: str) -> str:
        """Which of the paper's tables a scenario is in, if in any."""
        return self.titles[0 if scenario in SYNTHETIC else 1 if scenario in OPENML else 2]

    def figure(self, policy: PolicySpec, scenario: str, horizon: int) -> float | None:
        """What the paper reports for the policy, as it comes, on the scenario."""
        if policy.options or horizon != HORIZON:
            return None
        return REGRET.get(policy.name, {}).get(scenario)

    def compared(self, sections: Sequence[Section]) -> list[Section]:
        """All but settings of public libraries, which stand in one table."""
        return [each for each in sections if not each.axis or each.policies[0].name not in LIBRARY_NAMES]

    def footer(self, section: Section) -> tuple[str, Mapping[str, float], str] | None:
        """The best of public libraries as it was found elsewhere."""
        known = any(scenario in LIBRARIES for scenario in section.scenarios)
        if not known or section.horizon != HORIZON or section.axis:
            return None
        note = f"{LIBRARY.capitalize()}: the lowest of thirteen settings (three seeds), picked for each task."
        return LIBRARY, LIBRARIES, note

    def missing(self, made: Collection[RunSpec], *, coverage: bool) -> list[str]:
        """What of the paper, and of ours beside it, is still to be run."""
        others = {"Coverage of intervals": coverage, "Drink Less trial": self._trial is not None}
        return [*missing(made), *(f"{name}: nothing yet." for name, there in others.items() if not there)]

    def parts(self, sections: Sequence[Section]) -> list[Part]:
        """Ranks, then every policy beside its figures in the paper; public libraries; the trial."""
        libraries = _peer_tables(sections)
        return [
            *self._beside_the_paper(sections),
            *([Part("Public libraries", tuple(libraries), "Libraries")] if libraries else []),
            *([] if self._trial is None else trial_parts(*self._trial)),
        ]

    def _beside_the_paper(self, sections: Sequence[Section]) -> list[Part]:
        by_policy = paper_tables(sections)
        if not by_policy:
            return []
        ranks = paper_ranks(sections)
        shown: list[Block] = [] if ranks is None else [ranks]
        for name, table in by_policy.items():
            first = name == next(iter(by_policy))
            shown.append(table if first else Details(name, (table,)))
        return [Part("Beside the paper", tuple(shown), "Paper")]

    def tables(self, sections: Sequence[Section]) -> dict[str, tuple[list[Table], str]]:
        """The same as files."""
        found = {} if self._trial is None else {"drinkless-values": trial_tables(self._trial[1])}
        if libraries := _peer_tables(sections):
            found["libraries"] = libraries, peers_csv(sections)
        by_policy = list(paper_tables(sections).values())
        if not by_policy:
            return found
        ranks = paper_ranks(sections)
        rows = [
            {
                **vars(ours),
                "policy": name,
                "paper": REGRET[name][task],
                "paper_deviation": DEVIATION[name][task],
            }
            for name, task, ours in _beside(sections)
        ]
        names = ("policy", "scenario", "replications", "mean", "standard_error", "paper", "paper_deviation")
        tables = by_policy if ranks is None else [ranks, *by_policy]
        return {"paper": (tables, csv_text(rows, names)), **found}


PAPER = Paper()


def _peer_tables(sections: Sequence[Section]) -> list[Table]:
    horizons = sorted({section.horizon for section in sections}, reverse=True)
    return [peer_table(rows, horizon) for horizon in horizons if (rows := measured(sections, horizon))]


def paper_tables(sections: Iterable[Section]) -> dict[str, Table]:
    """By policy, our regret beside the paper's, wherever it reports one."""
    rows: dict[str, list[Row]] = {}
    for name, scenario, ours in _beside(sections):
        theirs = REGRET[name][scenario]
        ratio = ours.mean / theirs
        bar = max(-1.0, min(1.0, math.log(max(ratio, 1e-9)) / _FULL_BAR))
        rows.setdefault(name, []).append(
            [
                scenario,
                Cell(spread(ours.mean, ours.standard_error), ours.mean, bold=ours.mean < theirs),
                Cell(spread(theirs, DEVIATION[name][scenario]), theirs, bold=theirs < ours.mean),
                Cell(f"{ratio:.2f}", ratio, bar=bar),
            ]
        )
    note = (
        "Ours: mean ± standard error. The paper's: mean over five replications ± what it prints "
        "behind that sign, which by its size is a standard deviation. Bold: the lower of the two."
    )
    caption = f"ours and the paper's: final regret, {HORIZON:,} rounds"
    header = ("scenario", "ours", "paper", "ours / paper")
    return {
        name: Table.of(f"{name}, {caption}", header, listed, notes=(note, *_pilots([name])))
        for name, listed in rows.items()
    }


def paper_ranks(sections: Iterable[Section]) -> Table | None:
    """Average rank among the policies and on the scenarios that both have, ours and the paper's."""
    columns: dict[str, dict[PolicySpec, float]] = {}
    for section in sections:
        listed = [policy for policy in section.policies if policy.name in REGRET and not policy.options]
        known, both = section.comparable(listed)
        shared = [scenario for scenario in both if all(scenario in REGRET[p.name] for p in known)]
        if section.horizon != HORIZON or section.axis or len(known) < 2 or not shared:
            continue
        tasks = f"{section.title.split()[0]} ({len(shared)})"
        ours = {policy: [section.cells[name, policy].mean for name in shared] for policy in known}
        theirs = {policy: [REGRET[policy.name][name] for name in shared] for policy in known}
        columns |= {f"{tasks}, ours": average_ranks(ours), f"{tasks}, paper": average_ranks(theirs)}
    if not columns:
        return None
    ranked = {policy for column in columns.values() for policy in column}
    listed = sorted(ranked, key=lambda policy: list(REGRET).index(policy.name))
    rows = [
        [
            Cell(policy.label, colour=styles_of([policy.name])[0]),
            *(rank_cell(column, policy) for column in columns.values()),
        ]
        for policy in listed
    ]
    note = "On as many scenarios as the brackets say, those that all these policies have; ties share."
    notes = (note, *_pilots(policy.name for policy in listed))
    return Table.of("Average rank among the paper's policies", ("policy", *columns), rows, notes=notes)


def _beside(sections: Iterable[Section]) -> list[tuple[str, str, FinalRegret]]:
    return sorted(
        (
            (row.policy.name, scenario, row)
            for section in sections
            if not section.axis
            for (scenario, policy), row in section.cells.items()
            if PAPER.figure(policy, scenario, section.horizon) is not None
        ),
        key=lambda pair: (list(REGRET).index(pair[0]), list(REGRET[pair[0]]).index(pair[1])),
    )


def _pilots(names: Iterable[str]) -> list[str]:
    """Say which policies the paper tuned and we did not."""
    tuned = [name for name in names if name in TUNED]
    if not tuned:
        return []
    return [f"The paper chose settings of {' and '.join(tuned)} by pilot runs; ours keep their defaults."]
