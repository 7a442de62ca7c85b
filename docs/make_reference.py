"""Writes reference.md: every public name with the first sentence of its docstring."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import get_args

PACKAGES = (
    "pfnts",
    "pfnts.contexts",
    "pfnts.events",
    "pfnts.posterior",
    "pfnts.scores",
    "pfnts.backbones",
    "pfnts.layouts",
    "pfnts.explain",
    "pfnts.imports",
    "pfnts.policies",
    "pfnts.environments",
    "pfnts.simulation",
    "pfnts.ope",
    "pfnts.experiments",
    "pfnts.service",
    "pfnts.reproduction",
)
PAGE = Path(__file__).parent / "reference.md"


def page() -> str:
    sections = [
        "# Reference\n",
        "Find a public name here, and its parameters and an example in its docstring: `help(pfnts.PFNTS)`.\n"
        "This page is written by `python docs/make_reference.py`.\n",
    ]
    for name in PACKAGES:
        package = import_module(name)
        rows = [f"| `{public}` | {summary(getattr(package, public))} |" for public in sorted(package.__all__)]
        sections.append(
            "\n".join([f"## {name}\n", f"{package.__doc__}\n", "| name | |", "|---|---|", *rows, ""])
        )
    return "\n".join(sections)


def summary(value: object) -> str:
    if isinstance(value, str):
        return "The installed version, a text."
    if kinds := get_args(value):
        return f"One of {', '.join(f'`{kind.__name__}`' for kind in kinds)}."
    text = inspect.getdoc(value)
    paragraph = " ".join((text or "").split("\n\n")[0].split())
    return paragraph.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
