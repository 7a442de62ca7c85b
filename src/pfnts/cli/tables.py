"""Tables of OpenML that cannot be had: said before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pfnts.cli.console import say
from pfnts.environments import MissingDatasetError
from pfnts.experiments import Job, RunSpec, job


def obtainable(specs: Sequence[RunSpec], *, data: Path | None, device: str) -> list[Job]:
    """Work out the jobs but for those that need a missing table, with a note on each such scenario."""
    jobs: list[Job] = []
    missing: dict[str, str] = {}
    for spec in dict.fromkeys(specs):
        if spec.scenario not in missing:
            try:
                jobs.append(job(spec, inputs=data, device=device))
            except MissingDatasetError as error:
                missing[spec.scenario] = str(error)
    if specs and not jobs:
        raise ValueError(next(iter(missing.values())))
    for scenario, reason in missing.items():
        say(f"Note: {scenario} is left out: {reason}", style="yellow")
    return jobs
