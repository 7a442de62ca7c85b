"""Writes reference.md: every public name with the first sentence of its docstring."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

PACKAGES = (
    "pfnts",
    "pfnts.contexts",
    "pfnts.posterior",
    "pfnts.scores",
    "pfnts.backbones",
    "pfnts.encodings",
    "pfnts.policies",
    "pfnts.environments",
    "pfnts.simulation",
    "pfnts.ope",
    "pfnts.experiments",
)
PAGE = Path(__file__).parent / "reference.md"


def page() -> str:
    sections = [
        "# Reference\n",
        "Every public name. Its docstring has the parameters and an example: `help(pfnts.PFNTS)`.\n"
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
    text = inspect.getdoc(value) if callable(value) else None
    paragraph = " ".join((text or "").split("\n\n")[0].split())
    return paragraph.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
