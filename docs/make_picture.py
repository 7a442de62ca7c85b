"""Draws regret.png, the picture in README.md; makes the runs that are not yet in runs/picture.

Nothing is picked: these are all synthetic scenarios of the package in which the context decides, in the order
in which `pfnts scenarios` lists them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pfnts.cli.demo import RIVALS, name
from pfnts.cli.progress import finish_all
from pfnts.environments import describe, names
from pfnts.environments.synthetic import SyntheticScenario
from pfnts.experiments import PolicySpec, Run, RunStore, plan, prepare
from pfnts.experiments.figures import save

SCENARIOS = [
    scenario
    for scenario in names()
    if isinstance(describe(scenario), SyntheticScenario) and describe(scenario).needs_context
]
HORIZON, REPLICATIONS = 1_000, 3
FIRST = 50
"""Round from which curves are drawn: before it, the share of a few rounds is mostly luck."""
STYLES = {"pfn-ts": ("#0b7a99", "-"), "lin-ts": ("#d98200", "-"), "ts": ("#7a4fa3", "--")}
FOLDER = Path(__file__).parent


def main() -> None:
    contestants = [PolicySpec(policy) for policy in ("pfn-ts", *RIVALS)]
    specs = plan(
        scenarios=SCENARIOS, policies=contestants, horizon=HORIZON, replications=REPLICATIONS, seed=42
    )
    store = RunStore(FOLDER.parent / "runs" / "picture")
    runs, _ = finish_all(prepare(specs), store=store)
    draw(runs, FOLDER / "regret.png")
    for scenario in SCENARIOS:
        shares = {policy: share_of_chance(runs, scenario, policy)[:, -1].mean() for policy in STYLES}
        print(
            f"{scenario:26}"
            + "".join(f"{name(PolicySpec(p)):>16} {share:4.0%}" for p, share in shares.items())
        )


def share_of_chance(runs: list[Run], scenario: str, policy: str) -> np.ndarray:
    """Regret so far over that of chance in the same replication: (replications, rounds from `FIRST` on)."""
    found = {
        (run.spec.policy.name, run.spec.replication): run.result.cumulative_regret[FIRST - 1 :]
        for run in runs
        if run.spec.scenario == scenario
    }
    return np.stack([found[policy, i] / found["uniform", i] for i in range(REPLICATIONS)])


def draw(runs: list[Run], path: Path) -> None:
    figure = Figure(figsize=(11.0, 4.9), layout="constrained")
    axes = figure.subplots(2, (len(SCENARIOS) + 1) // 2, sharex=True, sharey=True)
    rounds = np.arange(FIRST, HORIZON + 1)
    for panel, scenario in zip(axes.flat, SCENARIOS, strict=False):
        panel.axhline(100, color="#888888", linewidth=1.2, linestyle=":", label="chance")
        for policy, (colour, line) in STYLES.items():
            shares = 100 * share_of_chance(runs, scenario, policy)
            label = name(PolicySpec(policy))
            panel.plot(rounds, shares.mean(axis=0), color=colour, linestyle=line, linewidth=1.8, label=label)
            panel.fill_between(
                rounds, shares.min(axis=0), shares.max(axis=0), color=colour, alpha=0.13, linewidth=0
            )
        panel.set_title(scenario, fontsize=10)
        panel.set(ylim=(0, 130), yticks=[0, 50, 100], xlim=(0, HORIZON), xticks=[0, HORIZON // 2, HORIZON])
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=10)
    for panel in axes.flat[len(SCENARIOS) :]:
        panel.set_axis_off()
    figure.supylabel("reward lost so far, in % of what chance lost", fontsize=11)
    figure.supxlabel("round", fontsize=11)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(
        handles[1:] + handles[:1], labels[1:] + labels[:1], loc="outside upper center", ncols=4, fontsize=11
    )
    save(figure, path)


if __name__ == "__main__":
    main()
