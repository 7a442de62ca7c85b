"""``pfnts scenarios``."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

from pfnts import environments
from pfnts.cli.console import terminal


def scenarios() -> None:
    """List the bandit problems that can be simulated."""
    table = Table(
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        caption="context: not needed where one arm is best at every context",
    )
    table.add_column("name", no_wrap=True)
    table.add_column("arms", justify="right", no_wrap=True)
    table.add_column("features", justify="right", no_wrap=True)
    table.add_column("context", no_wrap=True)
    table.add_column("what it is", overflow="fold")
    for scenario in map(environments.describe, environments.names()):
        table.add_row(
            scenario.name,
            str(scenario.n_arms),
            str(scenario.n_features),
            {True: "needed", False: "no", None: ""}[scenario.needs_context],
            scenario.description,
        )
    terminal.print(table)
