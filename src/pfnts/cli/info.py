"""``pfnts info``."""

from __future__ import annotations

import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version

from rich.table import Table

from pfnts import backbones, policies
from pfnts.cli.console import terminal


def info() -> None:
    """Show what is installed: versions, device, backbones, policies and extras."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_row("pfnts", version("pfnts"))
    table.add_row("python", platform.python_version())
    table.add_row("torch", version("torch"))
    table.add_row("device", device())
    table.add_row("policies", ", ".join(policies.names()))
    for name in backbones.names():
        table.add_row(f"backbone {name}", availability(name))
    for extra, missing in extras().items():
        remedy = f'lacks {", ".join(missing)}; pip install "pfnts[{extra}]"'
        table.add_row(f"extra {extra}", remedy if missing else "installed")
    terminal.print(table)


def device() -> str:
    """Name the fastest device at hand; a policy uses the CPU unless told otherwise."""
    import torch

    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return f"cpu ({torch.get_num_threads()} threads)"


def availability(backbone: str) -> str:
    """Say whether a backbone loads here, and why not."""
    # To look must not download anything.
    options = {"download": False} if backbone == "tabicl" else {}
    try:
        backbones.load(backbone, **options)
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
