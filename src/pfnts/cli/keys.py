"""``pfnts keys``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from pfnts.cli.console import plain_errors, say, terminal
from pfnts.cli.serve import Data, Database

if TYPE_CHECKING:
    from pfnts.service.store import Store

keys = typer.Typer(no_args_is_help=True, help="Keys of the decision service.")


@keys.command()
def add(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    role: Annotated[str, typer.Option(help="reader, writer (decisions and rewards) or admin.")] = "writer",
    experiment: Annotated[str | None, typer.Option(help="The only experiment it is good for.")] = None,
    data: Data = Path("pfnts-data"),
    database: Database = None,
) -> None:
    """Make a key and print it, once: only its hash is kept."""
    with plain_errors(ValueError, ImportError, RuntimeError):
        from pfnts.service.keys import new_key

        text, key = new_key(name, role, experiment=experiment, time=time.time())  # type: ignore[arg-type]
        store = _opened(data, database)
        store.add_key(key)
        store.close()
    typer.echo(text)


@keys.command("list")
def show(data: Data = Path("pfnts-data"), database: Database = None) -> None:
    """List the keys."""
    with plain_errors(ValueError, ImportError, RuntimeError):
        store = _opened(data, database)
        found = store.keys()
        store.close()
    table = Table()
    for heading in ("id", "name", "role", "experiment", "made", "revoked"):
        table.add_column(heading)
    for key in found:
        table.add_row(
            key.id, key.name, key.role, key.experiment or "all", _day(key.created), _day(key.revoked)
        )
    terminal.print(table)


@keys.command()
def revoke(
    id: Annotated[str, typer.Argument(help="As listed.")],
    data: Data = Path("pfnts-data"),
    database: Database = None,
) -> None:
    """Revoke a key: within a second it opens nothing any more."""
    with plain_errors(ValueError, ImportError, RuntimeError):
        store = _opened(data, database)
        known = store.revoke_key(id, time.time())
        store.close()
        if not known:
            raise ValueError(f"id must be that of a valid key, got {id!r}; see pfnts keys list")
    say(f"Revoked {id}.")


def _opened(data: Path, database: str | None) -> Store:
    from pfnts.service.store import open_store

    return open_store(data, database, serving=False)


def _day(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
