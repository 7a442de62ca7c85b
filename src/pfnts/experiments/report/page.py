"""The page that every HTML report is put on: one file, no network, light and dark."""

from __future__ import annotations

import base64
import io
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from pfnts.experiments.figures import COLOURS, DARK_COLOURS, DASHES, FIRST_ROUND

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MEDIA = {".svg": "image/svg+xml", ".png": "image/png"}


@dataclass(frozen=True)
class Part:
    """A heading with what stands below it."""

    title: str
    """The heading."""
    body: str
    """HTML."""
    short: str = ""
    """Its name in the bar at the top; the heading when left out."""

    @property
    def anchor(self) -> str:
        """The fragment of an address that leads to it."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def write_page(
    path: str | os.PathLike[str],
    *,
    title: str,
    lead: str,
    parts: Sequence[Part],
    boards: Sequence[Mapping[str, Any]],
) -> Path:
    """Write a page that needs no other file.

    Parameters
    ----------
    path
        Where it goes.
    title
        Its heading, as text.
    lead
        One or two sentences below, as text.
    parts
        What it says.
    boards
        Interactive curves, see `board`; a part shows number i by `board_place`.
    """
    links = "".join(f'<a href="#{part.anchor}">{escape(part.short or part.title)}</a>' for part in parts)
    body = "\n".join(
        f'<section id="{part.anchor}"><h2>{escape(part.title)}</h2>\n{part.body}</section>' for part in parts
    )
    contents = {
        "title": escape(title),
        "lead": escape(lead),
        "style": palette() + _text("page.css"),
        "script": _text("page.js"),
        "nav": f'<nav aria-label="Contents">{links}</nav>' if len(parts) > 1 else "",
        "body": body,
        "data": safe_json({"boards": list(boards)}),
    }
    # All at once, so that braces within one of them are left alone.
    page = re.sub(r"\{\{(\w+)\}\}", lambda match: contents[match[1]], _text("page.html"))
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")
    return path


def safe_json(value: object) -> str:
    """Write JSON that cannot end the script element it stands in; NaN becomes null.

    Examples
    --------
    >>> safe_json({"a": "</script>"})
    '{"a":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def palette() -> str:
    """The colours of the policies as variables."""
    pairs = zip(COLOURS, DARK_COLOURS, strict=True)
    lines = [f"  --c{i}: light-dark({light}, {dark});" for i, (light, dark) in enumerate(pairs)]
    return "\n".join([":root {", *lines, "}", ""])


def board(
    *,
    labels: Sequence[tuple[str, int]],
    panels: Sequence[Mapping[str, Any]],
    ylabel: str,
    regret: bool,
) -> dict[str, Any]:
    """Describe panels with one legend.

    Parameters
    ----------
    labels
        Names of the curves, with their colours.
    panels
        See `curve_panel`.
    ylabel
        What is drawn over rounds.
    regret
        Whether it is regret, which grows from 0 and is read on logarithmic axes; values have linear ones.
    """
    series = [
        {"label": label, "colour": colour % len(COLOURS), "dash": DASHES[colour % len(DASHES)]}
        for label, colour in labels
    ]
    return {
        "series": series,
        "panels": list(panels),
        "ylabel": ylabel,
        "heading": ylabel.capitalize() + (", mean and standard deviation" if regret else ", with 95 % bands"),
        "log": regret,
        "values": not regret,
        "first": FIRST_ROUND,
    }


def curve_panel(
    title: str,
    rounds: ArrayLike,
    lines: Sequence[Mapping[str, Any]],
    *,
    tag: str = "",
    fixed: float | None = None,
) -> dict[str, Any]:
    """Describe one panel: ``lines`` from `line`, at ``rounds``; ``fixed`` is a height to compare with."""
    return {
        "title": title,
        "tag": tag,
        "x": np.asarray(rounds).tolist(),
        "lines": list(lines),
        "fixed": None if fixed is None else _digits([fixed])[0],
    }


def line(
    series: int,
    heights: ArrayLike,
    *,
    spread: ArrayLike | None = None,
    edges: ArrayLike | None = None,
) -> dict[str, Any]:
    """Describe the curve of one of the series; its band reaches ``spread`` to either side, or ``edges``."""
    described: dict[str, Any] = {"s": series, "y": _digits(heights)}
    if spread is not None and np.isfinite(np.asarray(spread, dtype=float)).any():
        described["sd"] = _digits(spread, 3)
    if edges is not None:
        low, high = np.asarray(edges)
        described |= {"low": _digits(low), "high": _digits(high)}
    return described


def board_place(number: int, *, instead: str) -> str:
    """Where the page draws a board; ``instead`` is read where scripts are off."""
    return f"<div data-board={number}></div><noscript><p>{escape(instead)}</p></noscript>"


def drawing(figure: Figure, *, name: str, caption: str) -> str:
    """Put a matplotlib figure on the page, in the page's own ink and font."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Names of pieces are unique in a file, and have to be unique on the page.
    text = re.sub(r'(\bid="|xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r"#000000\b", "currentColor", text)
    text = re.sub(r"<text([^>]*) style=\"", r'<text fill="currentColor"\1 style="', text)
    return f"<figure>{text}<figcaption>{escape(caption)}</figcaption></figure>"


def image(path: Path, *, caption: str) -> str:
    """Put a picture from a file on the page."""
    encoded = base64.b64encode(path.read_bytes()).decode()
    source = f"data:{_MEDIA[path.suffix]};base64,{encoded}"
    return f'<figure class=image><img alt="{escape(caption)}" src="{source}"></figure>'


def _digits(values: ArrayLike, digits: int = 5) -> list[float | int | None]:
    # A curve on a screen has no more; the file is a third of what it would be.
    rounded = [
        float(f"{value:.{digits}g}") if np.isfinite(value) else None
        for value in np.asarray(values, dtype=float)
    ]
    return [int(v) if v is not None and v.is_integer() else v for v in rounded]


def _text(name: str) -> str:
    return files("pfnts.experiments.report").joinpath(name).read_text(encoding="utf-8")
