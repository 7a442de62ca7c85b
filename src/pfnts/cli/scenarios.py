"""``pfnts scenarios``."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table

from pfnts import environments
from pfnts.cli.console import terminal


def scenarios() -> None:
    """List the bandit problems that can be simulated."""
    caption = "context: not needed where one arm is best at every context"
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=caption)
    for heading in ("name", "arms", "features", "context"):
        table.add_column(
            heading, justify="right" if heading in ("arms", "features") else "left", no_wrap=True
        )
    table.add_column("what it is", overflow="fold")
    for each in map(environments.describe, environments.names()):
        needed = {True: "needed", False: "no", None: ""}[each.needs_context]
        table.add_row(each.name, str(each.n_arms), str(each.n_features), needed, each.description)
    terminal.print(table)
