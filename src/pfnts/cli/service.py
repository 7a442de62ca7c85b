"""``pfnts serve``, and the commands that look at the store of a service beside it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from pfnts.cli.console import plain_errors, say, terminal
from pfnts.cli.options import option
from pfnts.files import make_folder, replacing

if TYPE_CHECKING:
    from pfnts.service.store import Store

keys = typer.Typer(no_args_is_help=True, help="Manage the keys of the decision service.")
service = typer.Typer(no_args_is_help=True, help="Look after the store of the decision service.")

Data = Annotated[Path, option("Folder that holds the SQLite store.")]
Database = Annotated[
    str | None,
    option(
        "PostgreSQL database to use instead, as postgresql://user@host/name; several services may share it.",
        envvar="PFNTS_DATABASE",
    ),
]


@contextmanager
def opened(data: Path, database: str | None, *, create: bool = False) -> Iterator[Store]:
    """The store of a service, to look at beside it."""
    from pfnts.service.store import open_store

    with (
        plain_errors(RuntimeError),
        closing(open_store(data, database, serving=False, create=create)) as store,
    ):
        yield store


def serve(
    data: Data = Path("pfnts-data"),
    database: Database = None,
    host: Annotated[
        str, option("Address to listen on. Any but this machine's own requires a key: see pfnts keys add.")
    ] = "127.0.0.1",
    port: Annotated[int, option("Port to listen on; 0 picks a free one.", min=0, max=65535)] = 8000,
    timeout: Annotated[
        float, option("Seconds to wait for the model before the baseline arm is served instead.", min=0.001)
    ] = 0.5,
    queue: Annotated[
        int, option("Decisions that may wait for the model; further ones are answered with 429.", min=1)
    ] = 256,
) -> None:
    """Serve decisions over HTTP.

    Every decision and every reward is on disk before it is acknowledged, in the folder DATA or in the
    database. Open the address in a browser to see how your experiments are doing. The guide is
    docs/service.md.
    """
    from pfnts.service.engine import Limits
    from pfnts.service.server import Settings
    from pfnts.service.server import serve as run

    def started(number: int) -> None:
        where = f"[{host}]" if ":" in host else host
        say(f"Serving on http://{where}:{number}. Ctrl-C stops.")

    with plain_errors(RuntimeError):
        run(Settings(data, database, host, port, Limits(timeout=timeout, queue=queue)), started=started)


@keys.command()
def add(
    name: Annotated[str, typer.Argument(help="Who will use the key.")],
    role: Annotated[
        str, option("What it allows: reader, writer (decisions and rewards too) or admin.")
    ] = "writer",
    experiment: Annotated[str | None, option("Limit the key to one experiment.")] = None,
    data: Data = Path("pfnts-data"),
    database: Database = None,
) -> None:
    """Create a key and print it. Copy it now: only a hash of it is stored."""
    from pfnts.service.keys import new_key

    text, key = new_key(name, role, experiment=experiment, time=time.time())  # type: ignore[arg-type]
    with opened(data, database, create=True) as store:
        store.add_key(key)
    typer.echo(text)


@keys.command("list")
def show(data: Data = Path("pfnts-data"), database: Database = None) -> None:
    """List all keys, revoked ones included."""
    with opened(data, database) as store:
        found = store.keys()
    table = Table("id", "name", "role", "experiment", "made", "revoked")
    for key in found:
        days = map(_day, (key.created, key.revoked))
        table.add_row(key.id, key.name, key.role, key.experiment or "all", *days)
    terminal.print(table)


@keys.command()
def revoke(
    id: Annotated[str, typer.Argument(help="Id of the key, as in pfnts keys list.")],
    data: Data = Path("pfnts-data"),
    database: Database = None,
) -> None:
    """Revoke a key. Running services stop accepting it within a second."""
    with opened(data, database) as store:
        known = store.revoke_key(id, time.time())
    if not known:
        raise ValueError(f"id must be that of a valid key, got {id!r}; see pfnts keys list")
    say(f"Revoked {id}.")


def export(
    experiment: Annotated[str, typer.Argument(help="Name of the experiment.")],
    out: Annotated[
        Path | None, option("File to write, .csv or .parquet; EXPERIMENT.csv unless you say otherwise.")
    ] = None,
    group: Annotated[str, option("Whose decisions to write: policy, holdout, baseline or all.")] = "policy",
    data: Data = Path("pfnts-data"),
    database: Database = None,
) -> None:
    """Write an experiment's decisions and rewards to a file that **pfnts ope** reads."""
    from pfnts.service import export as exports
    from pfnts.service.live import LiveExperiment

    path = out or Path(f"{experiment}.csv")
    if group not in ("policy", "holdout", "baseline", "all"):
        raise ValueError(f"--group must be policy, holdout, baseline or all, got {group!r}")
    with opened(data, database) as store:
        known = store.experiments()
        if experiment not in known:
            raise ValueError(f"experiment must be one of {list(known)}, got {experiment!r}")
        state = LiveExperiment(experiment, store).state
        make_folder(path.parent)
        with replacing(path) as file:
            if path.suffix in (".parquet", ".pq"):
                exports.write_parquet(store, state, file, group=group)  # type: ignore[arg-type]
            else:
                lines = exports.csv_lines(store, state, group=group)  # type: ignore[arg-type]
                file.writelines(line.encode() for line in lines)
    say(f"Written to {path}. Evaluate policies on it with:")
    say(exports.command(state, shlex.quote(str(path))))


@service.callback()
def commands() -> None:
    """Look after the store of the decision service."""


@service.command()
def check(data: Data = Path("pfnts-data"), database: Database = None) -> None:
    """Check that every log is complete and matches its decisions' fingerprints; exit status 1 if not."""
    from pfnts.service.check import check as run

    with opened(data, database) as store:
        findings = list(run(store))
    for finding in findings:
        verdict = "consistent" if finding.problem is None else f"NOT consistent: {finding.problem}"
        say(f"{finding.experiment}: {finding.records:,} records, {finding.decisions:,} decisions, {verdict}")
    if not findings:
        say("There is no experiment in the store.")
    if any(finding.problem is not None for finding in findings):
        raise typer.Exit(1)


def _day(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
