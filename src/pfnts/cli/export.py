"""``pfnts export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfnts.cli.console import plain_errors, say
from pfnts.cli.serve import Data, Database, opened


def export(
    experiment: Annotated[str, typer.Argument(help="Name of the experiment.")],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, .csv or .parquet; EXPERIMENT.csv unless you say otherwise."),
    ] = None,
    group: Annotated[
        str, typer.Option(help="Whose decisions to write: policy, holdout, baseline or all.")
    ] = "policy",
    data: Data = Path("pfnts-data"),
    database: Database = None,
) -> None:
    """Write an experiment's decisions and rewards to a file that **pfnts ope** reads."""
    path = out or Path(f"{experiment}.csv")
    with plain_errors(ValueError, ImportError, OSError, RuntimeError):
        from pfnts.service import export as exports
        from pfnts.service.live import LiveExperiment

        if group not in ("policy", "holdout", "baseline", "all"):
            raise ValueError(f"--group must be policy, holdout, baseline or all, got {group!r}")
        with opened(data, database) as store:
            known = store.experiments()
            if experiment not in known:
                raise ValueError(f"experiment must be one of {list(known)}, got {experiment!r}")
            state = LiveExperiment(experiment, store).state
            if path.suffix in (".parquet", ".pq"):
                exports.write_parquet(store, state, path, group=group)  # type: ignore[arg-type]
            else:
                with path.open("w", encoding="utf-8", newline="") as file:
                    file.writelines(exports.csv_lines(store, state, group=group))  # type: ignore[arg-type]
    say(f"Written to {path}. Evaluate policies on it with:")
    say(exports.command(state, str(path)))
