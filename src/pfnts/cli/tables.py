"""Tables of OpenML that cannot be had: said before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from pfnts.cli.console import console
from pfnts.experiments import RunSpec, RunStore
from pfnts.experiments.reproduce import missing_tables


def obtainable(specs: Sequence[RunSpec], store: RunStore, *, data: Path | None) -> list[RunSpec]:
    """Leave out the runs that would need a missing table, with a note on each such scenario."""
    missing = missing_tables([spec for spec in specs if spec not in store], data=data)
    left = [spec for spec in specs if spec.scenario not in missing or spec in store]
    if specs and not left:
        raise ValueError(next(iter(missing.values())))
    for scenario, reason in missing.items():
        console.print(
            f"[yellow]Note:[/] {scenario} is left out: {escape(reason)}", soft_wrap=True, highlight=False
        )
    return left
