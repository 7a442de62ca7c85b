"""Finished runs sorted into the tables they belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import rankdata

from pfnts import environments, policies
from pfnts.experiments.outcomes import FinalRegret, Outcome, mean_and_error, summarize
from pfnts.experiments.spec import PolicySpec

# Below this share of what a random choice of one arm costs, the best single arm counts as free.
_FREE = 1e-3
SYNTHETIC, OPENML, OTHER = "Synthetic tasks", "OpenML tasks", "Tasks of your own"


@dataclass(frozen=True)
class Section:
    """Policies by scenarios, one table and one page of curves."""

    title: str
    """What the scenarios, or the variants, have in common."""
    horizon: int
    """Rounds asked for; a scenario with less data has fewer."""
    scenarios: tuple[str, ...]
    """Columns."""
    policies: tuple[PolicySpec, ...]
    """Rows."""
    outcomes: Mapping[tuple[str, PolicySpec], tuple[Outcome, ...]]
    """Runs of each cell that has any, by replication."""
    axis: tuple[str, ...] = ()
    """Options in which the policies differ, if they are variants of one."""

    @cached_property
    def cells(self) -> dict[tuple[str, PolicySpec], FinalRegret]:
        """Mean final regret of each cell that has runs."""
        return {place: summarize(members)[0] for place, members in self.outcomes.items()}

    @property
    def replications(self) -> int:
        """Runs of a complete cell."""
        return max(row.replications for row in self.cells.values())

    def comparable(self, policies: Sequence[PolicySpec]) -> tuple[list[PolicySpec], list[str]]:
        """Policies and scenarios of which every pair has runs.

        Either all policies, on the scenarios that they share, or all scenarios, with the policies that have
        runs on each: whichever is more, so that a policy run here and there does not end the comparison.
        """
        whole = [p for p in policies if all((name, p) in self.cells for name in self.scenarios)]
        shared = [name for name in self.scenarios if all((name, p) in self.cells for p in policies)]
        if len(whole) * len(self.scenarios) > len(policies) * len(shared):
            return whole, list(self.scenarios)
        return list(policies), shared

    @cached_property
    def ranks(self) -> dict[PolicySpec, float]:
        """Rank by mean regret, averaged over the scenarios, of what is comparable; empty without any."""
        policies, scenarios = self.comparable(self.policies)
        return average_ranks({p: [self.cells[name, p].mean for name in scenarios] for p in policies})

    def best(self, scenario: str) -> float:
        """Lowest mean regret on the scenario."""
        return min(row.mean for (name, _), row in self.cells.items() if name == scenario)

    def rounds(self, scenario: str) -> int:
        """Rounds that the scenario really has."""
        return max(outcome.rounds for outcome in self._all(scenario).values())

    def best_fixed(self, scenario: str) -> tuple[float, float]:
        """Mean and standard error of the regret of the best single arm in hindsight."""
        return mean_and_error([outcome.best_fixed for outcome in self._all(scenario).values()])

    def needs_no_context(self, scenario: str) -> bool:
        """Whether one arm, pulled all the time, loses next to nothing."""
        fixed = np.concatenate([outcome.fixed for outcome in self._all(scenario).values()])
        return self.best_fixed(scenario)[0] <= _FREE * float(fixed.mean())

    def _all(self, scenario: str) -> dict[tuple[int, int], Outcome]:
        # Every policy meets the same environment, so one run of each replication says it all.
        found = (each for (name, _), some in self.outcomes.items() if name == scenario for each in some)
        return {(outcome.spec.seed, outcome.spec.replication): outcome for outcome in found}


def average_ranks(means: Mapping[PolicySpec, Sequence[float]]) -> dict[PolicySpec, float]:
    """Rank policies (1 is lowest, ties share) on every scenario, and average; empty without scenarios."""
    values = np.array(list(means.values()))
    if not values.size:
        return {}
    return dict(zip(means, rankdata(values, axis=0).mean(axis=1).tolist(), strict=True))


def family(scenario: str) -> str:
    """The heading under which a scenario is listed."""
    if scenario not in environments.names():
        return OTHER
    return OPENML if scenario.startswith("openml-") else SYNTHETIC


def organize(
    outcomes: Iterable[Outcome],
    *,
    titles: Sequence[str] = (SYNTHETIC, OPENML, OTHER),
    family: Callable[[str], str] = family,
) -> list[Section]:
    """Put runs into sections: by horizon and, in the order of the titles, by family of scenarios.

    A policy that was run as it comes and with options is compared with others as it comes; with options it is
    a variant, and stands in a section for those options, after all families.
    """

    def order(outcome: Outcome) -> tuple[object, ...]:
        spec = outcome.spec
        return spec.scenario, _policy_order(spec.policy), spec.seed, spec.replication

    listed = sorted(outcomes, key=order)
    plain = {(o.spec.horizon, o.spec.policy.name) for o in listed if not o.spec.policy.options}
    compared: dict[tuple[int, int], list[Outcome]] = {}
    varied: dict[tuple[int, str, tuple[str, ...]], list[Outcome]] = {}
    for outcome in listed:
        spec, policy = outcome.spec, outcome.spec.policy
        if policy.options and (spec.horizon, policy.name) in plain:
            axis = tuple(option for option, _ in policy.options)
            varied.setdefault((-spec.horizon, policy.name, axis), []).append(outcome)
        else:
            place = -spec.horizon, titles.index(family(spec.scenario))
            compared.setdefault(place, []).append(outcome)
    sections = [section_of(titles[place[1]], compared[place]) for place in sorted(compared)]
    for (horizon, name, axis), variants in sorted(varied.items(), key=lambda item: item[0][0]):
        where = {(-horizon, o.spec.scenario, PolicySpec(name)) for o in variants}
        default = [o for o in listed if (o.spec.horizon, o.spec.scenario, o.spec.policy) in where]
        sections.append(section_of(f"{name} by {' and '.join(axis)}", [*default, *variants], axis=axis))
    return sections


def section_of(title: str, outcomes: Sequence[Outcome], *, axis: tuple[str, ...] = ()) -> Section:
    """Put runs, at least one, into one section, whatever they are."""
    groups: dict[tuple[str, PolicySpec], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.spec.scenario, outcome.spec.policy), []).append(outcome)
    known, horizon = environments.names(), max(outcome.spec.horizon for outcome in outcomes)
    scenarios = sorted({name for name, _ in groups}, key=lambda name: (_place(name, known), name))
    who = sorted({policy for _, policy in groups}, key=_policy_order)
    cells = {place: tuple(members) for place, members in groups.items()}
    return Section(title, horizon, tuple(scenarios), tuple(who), cells, axis)


def _policy_order(policy: PolicySpec) -> tuple[object, ...]:
    # Options may be of any type; as they are written, they can be compared.
    return (_place(policy.name, policies.names()), len(policy.options), policy.label)


def _place(name: str, known: Sequence[str]) -> int:
    """Where a name is listed; those of the user's own come last."""
    return known.index(name) if name in known else len(known)
