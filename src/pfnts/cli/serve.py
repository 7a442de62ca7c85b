"""``pfnts serve``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pfnts.cli.console import plain_errors, say

if TYPE_CHECKING:
    from pfnts.service.store import Store

Data = Annotated[Path, typer.Option(help="Folder that holds the SQLite store.")]
Database = Annotated[
    str | None,
    typer.Option(
        help="PostgreSQL database to use instead, as postgresql://user@host/name; several services may "
        "share it.",
        envvar="PFNTS_DATABASE",
    ),
]


def opened(data: Path, database: str | None, *, create: bool = False) -> closing[Store]:
    """The store of a service, to look at beside it."""
    from pfnts.service.store import open_store

    return closing(open_store(data, database, serving=False, create=create))


def serve(
    data: Data = Path("pfnts-data"),
    database: Database = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. Any but this machine's own requires a key: see pfnts keys add."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")
    ] = 8000,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.001, help="Seconds to wait for the model before the baseline arm is served instead."
        ),
    ] = 0.5,
    queue: Annotated[
        int,
        typer.Option(
            min=1, help="Decisions that may wait for the model; further ones are answered with 429."
        ),
    ] = 256,
) -> None:
    """Serve decisions over HTTP.

    Every decision and every reward is on disk before it is acknowledged, in the folder DATA or in the
    database. Open the address in a browser to see how your experiments are doing. The guide is
    docs/service.md.
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
