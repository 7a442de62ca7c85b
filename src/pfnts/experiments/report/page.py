"""The page that every HTML report is put on: one file, no network, light and dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pfnts.experiments.charts import COLOURS, DARK_COLOURS, Chart
from pfnts.experiments.report.tables import Table
from pfnts.files import write_file


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str
    """As it is read."""
    style: str = ""
    """Class of the paragraph: "note", "verdict"."""


@dataclass(frozen=True)
class Bars:
    """A row of bars, such as a histogram."""

    name: str
    """What is counted."""
    colour: int
    """Of the bars."""
    bars: tuple[tuple[float, str], ...]
    """Height in 0 to 100 and what it stands for, from left to right."""
    ends: tuple[str, str]
    """What stands below the first and the last."""


@dataclass(frozen=True)
class Details:
    """Blocks that are shown when they are asked for."""

    summary: str
    """What they are."""
    blocks: tuple[Block, ...]
    """What is shown."""


Block = Text | Table | Chart | Bars | Details


@dataclass(frozen=True)
class Part:
    """A heading with what stands below it."""

    title: str
    """The heading."""
    blocks: tuple[Block, ...]
    """What stands below it."""
    short: str = ""
    """Its name in the bar at the top; the heading when left out."""

    @property
    def anchor(self) -> str:
        """The fragment of an address that leads to it."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def write_page(path: Path, *, title: str, lead: str, parts: Sequence[Part]) -> Path:
    """Write a page that needs no other file: a heading, a sentence or two below it, and the parts."""
    boards: list[dict[str, Any]] = []

    def placed(chart: Chart) -> int:
        """A chart is drawn by the script, from its place in this list."""
        boards.append(chart.payload())
        return len(boards) - 1

    assets = {"style": _text("page.css"), "script": _text("page.js")}
    drawn = {"palette": list(zip(COLOURS, DARK_COLOURS, strict=True)), "placed": placed, "boards": boards}
    template = _environment().get_template("page.html.j2")
    page = template.render(title=title, lead=lead, parts=parts, **assets, **drawn)
    return write_file(path, page.lstrip())


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('a page needs jinja2; install it with: pip install "pfnts[bench]"') from error
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A number that JSON does not know must not reach the page.
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


def _text(name: str) -> str:
    return files("pfnts.experiments.report").joinpath(name).read_text(encoding="utf-8")
