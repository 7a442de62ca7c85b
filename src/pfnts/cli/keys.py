"""``pfnts keys``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from pfnts.cli.console import plain_errors, say, terminal
from pfnts.cli.serve import Data, Database, opened

keys = typer.Typer(no_args_is_help=True, help="Manage the keys of the decision service.")


@keys.command()
def add(
    name: Annotated[str, typer.Argument(help="Who will use the key.")],
    role: Annotated[
        str, typer.Option(help="What it allows: reader, writer (decisions and rewards too) or admin.")
    ] = "writer",
    experiment: Annotated[str | None, typer.Option(help="Limit the key to one experiment.")] = None,
    data: Data = Path("pfnts-data"),
    database: Database = None,
) -> None:
    """Create a key and print it. Copy it now: only a hash of it is stored."""
    with plain_errors(ValueError, ImportError, RuntimeError):
        from pfnts.service.keys import new_key

        text, key = new_key(name, role, experiment=experiment, time=time.time())  # type: ignore[arg-type]
        with opened(data, database, create=True) as store:
            store.add_key(key)
    typer.echo(text)


@keys.command("list")
def show(data: Data = Path("pfnts-data"), database: Database = None) -> None:
    """List all keys, revoked ones included."""
    with plain_errors(ValueError, ImportError, RuntimeError), opened(data, database) as store:
        found = store.keys()
    table = Table("id", "name", "role", "experiment", "made", "revoked")
    for key in found:
        table.add_row(
            key.id, key.name, key.role, key.experiment or "all", _day(key.created), _day(key.revoked)
        )
    terminal.print(table)


@keys.command()
def revoke(
    id: Annotated[str, typer.Argument(help="Id of the key, as in pfnts keys list.")],
    data: Data = Path("pfnts-data"),
    database: Database = None,
) -> None:
    """Revoke a key. Running services stop accepting it within a second."""
    with plain_errors(ValueError, ImportError, RuntimeError):
        with opened(data, database) as store:
            known = store.revoke_key(id, time.time())
        if not known:
            raise ValueError(f"id must be that of a valid key, got {id!r}; see pfnts keys list")
    say(f"Revoked {id}.")


def _day(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
