"""The experiments of the PFN-TS paper, and ours beside them, as frozen descriptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product

from pfnts.experiments import PolicySpec, RunSpec, plan
from pfnts.reproduction.peers import PEERS
from pfnts.reproduction.published import OPENML, SYNTHETIC

QUICK_HORIZON, QUICK_REPLICATIONS = 500, 2

CONTEXT = ("wheel-0.5", "wheel-0.9", "wheel-0.99", "friedman-disjoint", "steps", "sines", "logistic")

SLOW = ("bf-ts", "neural-ts")
"""Policies that take hours where the others take minutes."""
CONTESTANTS = tuple(
    map(
        PolicySpec,
        ("pfn-ts", "bf-ts", "lin-ts", "lin-ucb", "neural-ts", "rf-ts", "xgboost-ts", "ts", "uniform"),
    )
)

# The two on which the paper shows its ablations before the appendix has all of them.
_SELECTED = ("friedman", "friedman-sparse-disjoint")


@dataclass(frozen=True)
class Suite:
    """An experiment: scenarios by policies by replications.

    Examples
    --------
    >>> suite = Suite("tiny", "A tiny one", scenarios=("linear",), policies=(PolicySpec("uniform"),))
    >>> len(suite.specs()), len(suite.quick().specs())
    (5, 2)
    """

    name: str
    """The word by which it is found."""
    title: str
    """What it compares, in a few words."""
    scenarios: tuple[str, ...]
    """What is played."""
    policies: tuple[PolicySpec, ...]
    """Who plays."""
    selected: tuple[str, ...] = ()
    """Scenarios that are enough for a first look; all of them when left out."""
    horizon: int = 10_000
    """Rounds of a run."""
    replications: int = 5
    """Independent runs of each policy on each scenario."""
    seed: int = 42
    """Seed from which those of the replications are spawned."""

    def quick(self) -> Suite:
        """Describe a first look at the same: fewer rounds, replications and perhaps scenarios."""
        return replace(
            self,
            scenarios=self.selected or self.scenarios,
            horizon=QUICK_HORIZON,
            replications=QUICK_REPLICATIONS,
        )

    def specs(self) -> list[RunSpec]:
        """List its runs."""
        return plan(
            scenarios=self.scenarios,
            policies=self.policies,
            horizon=self.horizon,
            replications=self.replications,
            seed=self.seed,
        )


def _ablation(
    name: str, *, scenarios: tuple[str, ...] = SYNTHETIC, **options: tuple[str | float, ...]
) -> Suite:
    """Vary options of PFN-TS; the defaults stand without them, so that the run is that of the tables."""
    variants = tuple(
        PolicySpec.of("pfn-ts", **dict(zip(options, values, strict=True)))
        for values in product(*options.values())
    )
    return Suite(
        f"ablation-{name}",
        f"PFN-TS by {name}",
        scenarios=scenarios,
        policies=(PolicySpec("pfn-ts"), *variants),
        selected=_SELECTED,
    )


_RULE_SCENARIOS = (
    *SYNTHETIC,
    "openml-adult",
    "openml-magic-telescope",
    "openml-mushroom",
    "openml-shuttle",
)

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite("synthetic", "The paper's synthetic benchmarks", scenarios=SYNTHETIC, policies=CONTESTANTS),
        Suite("openml", "The paper's OpenML benchmarks", scenarios=OPENML, policies=CONTESTANTS),
        Suite("context", "Tasks on which the context matters", scenarios=CONTEXT, policies=CONTESTANTS),
        Suite(
            "peers", "Public libraries", scenarios=(*SYNTHETIC, *OPENML), policies=PEERS, selected=_SELECTED
        ),
        _ablation("encoding", encoding=("disjoint", "joint")),
        _ablation("base", estimator=("subclt", "subclt(base=1.5)", "subclt(base=3)")),
        _ablation("rule", scenarios=_RULE_SCENARIOS, estimator=("predictive",)),
        _ablation("exploration", scenarios=_RULE_SCENARIOS, exploration=(0.0, 0.25, 1.0)),
        _ablation("estimator", estimator=("subclt", "shrunk")),
        _ablation("refresh", refresh=(1.2, 2.0)),
    )
}
"""By name. Ablations of encoding, base and rule are the paper's; the others are ours."""


def missing(made: Collection[RunSpec]) -> list[str]:
    """Say which runs of the suites are not among these; of the first look where nothing is longer.

    Examples
    --------
    >>> made = SUITES["context"].specs()
    >>> next(text for text in missing(made[1:]) if text.startswith("Tasks"))
    'Tasks on which the context matters, runs missing: pfn-ts (1 on wheel-0.5).'
    """
    quick = all(spec.horizon <= QUICK_HORIZON for spec in made)
    said = []
    for suite in (suite.quick() if quick else suite for suite in SUITES.values()):
        lacking: dict[PolicySpec, Counter[str]] = {}
        for spec in suite.specs():
            if spec not in made:
                lacking.setdefault(spec.policy, Counter())[spec.scenario] += 1
        alike: dict[str, list[str]] = {}
        for policy, counts in lacking.items():
            alike.setdefault(_where(counts, suite), []).append(policy.label)
        if len(alike.get("all", [])) == len(suite.policies):
            said.append(f"{suite.title}: nothing yet.")
        elif alike:
            listed = "; ".join(f"{', '.join(names)} ({where})" for where, names in alike.items())
            said.append(f"{suite.title}, runs missing: {listed}.")
    return said


def _where(lacking: Counter[str], suite: Suite) -> str:
    if lacking.total() == suite.replications * len(suite.scenarios):
        return "all"
    counts: dict[int, list[str]] = {}
    for scenario, count in lacking.items():
        counts.setdefault(count, []).append(scenario.removeprefix("openml-"))
    if len(lacking) == len(suite.scenarios) and len(counts) == 1:
        return f"{next(iter(counts))} on every task"
    return ", and ".join(f"{count} on {', '.join(where)}" for count, where in counts.items())
