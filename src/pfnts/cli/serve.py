"""``pfnts serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfnts.cli.console import plain_errors, say

Data = Annotated[Path, typer.Option(help="Folder of the SQLite store.")]
Database = Annotated[
    str | None,
    typer.Option(help="postgresql://... instead, shared by any number of services.", envvar="PFNTS_DATABASE"),
]


def serve(
    data: Data = Path("pfnts-data"),
    database: Database = None,
    host: Annotated[str, typer.Option(help="Address to listen on; others need a key first.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds after which a decision is the baseline arm.")
    ] = 0.5,
    queue: Annotated[int, typer.Option(min=1, help="Decisions that may wait; beyond them 429.")] = 256,
) -> None:
    """Serve decisions over HTTP.

    Decisions, rewards and everything else are kept in DATA (or in the database) before they are answered.
    A page that shows what goes on is at the address itself.
    """
    with plain_errors(ValueError, ImportError, OSError, RuntimeError):
        from pfnts.service.engine import Limits
        from pfnts.service.server import Settings
        from pfnts.service.server import serve as run

        def started(number: int) -> None:
            where = f"[{host}]" if ":" in host else host
            say(f"Serving on http://{where}:{number}. Ctrl-C stops.")

        settings = Settings(data, database, host, port, Limits(timeout=timeout, queue=queue))
        run(settings, started=started)
