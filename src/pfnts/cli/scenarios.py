"""``pfnts scenarios``."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

from pfnts import environments
from pfnts.cli.console import console
from pfnts.experiments.published import HORIZON, REGRET


def scenarios() -> None:
    """List the bandit problems that can be simulated."""
    table = Table(
        box=SIMPLE_HEAD,
        caption=f"context: not needed where one arm is best at every context; "
        f"paper: final regret of the paper's PFN-TS after {HORIZON:,} rounds",
    )
    table.add_column("name", no_wrap=True)
    table.add_column("arms", justify="right")
    table.add_column("features", justify="right")
    table.add_column("context")
    table.add_column("what it is")
    table.add_column("paper", justify="right")
    for scenario in map(environments.describe, environments.names()):
        published = REGRET["pfn-ts"].get(scenario.name)
        table.add_row(
            scenario.name,
            str(scenario.n_arms),
            str(scenario.n_features),
            {True: "needed", False: "not needed", None: ""}[scenario.needs_context],
            scenario.description,
            "" if published is None else f"{published:,.1f}",
        )
    console.print(table)
