"""One table, written as markdown, LaTeX or CSV; the page has a template for it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "†": r"$^\dagger$",
    "—": "---",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A text, and what the page adds to it."""

    text: str
    """As it is read."""
    value: float | None = None
    """By which its column is sorted; the text itself when left out."""
    bold: bool = False
    """Whether it is the best of its column."""
    mark: str = ""
    """What follows it: a reference to a note."""
    aside: str = ""
    """What stands below it, small, on the page."""
    colour: int | None = None
    """Colour of the curve it names."""
    bar: float | None = None
    """Length of a bar below it, from -1 (to the left) to 1."""
    span: tuple[float, float, float, float] | None = None
    """Instead of a text: from, to, the mark between and a height to compare with, each in 0 to 100."""


Row = Sequence[str | Cell]
"""Of a table in the making."""


@dataclass(frozen=True)
class Table:
    """Rows of cells with a caption and notes.

    Examples
    --------
    >>> table = Table.of("Regret", ("policy", "linear"), [("ts", Cell("1.0 ± 0.1", bold=True))])
    >>> print(markdown(table))
    **Regret**
    <BLANKLINE>
    | policy | linear |
    |---|---:|
    | ts | **1.0 ± 0.1** |
    <BLANKLINE>
    """

    caption: str
    """One line above it."""
    header: tuple[str, ...]
    """Names of the columns."""
    rows: tuple[tuple[Cell, ...], ...]
    """What is compared."""
    footer: tuple[tuple[Cell, ...], ...] = ()
    """Rows that stand apart, below, and are never sorted."""
    notes: tuple[str, ...] = ()
    """Sentences below it."""
    titles: tuple[str, ...] = ()
    """Longer explanations of the columns, shown on the page when pointed at."""
    text_columns: int = 1
    """How many of the first columns hold words."""
    heading: str | None = None
    """What stands above it on a page whose headings say the rest; the caption when left out."""

    @classmethod
    def of(
        cls, caption: str, header: Sequence[str], rows: Iterable[Row], *, words: int = 1, **others: Any
    ) -> Table:
        """Make one of texts, sorted by the numbers that they begin with, and of cells; see the fields."""
        cells = tuple(tuple(map(_cell, row)) for row in rows)
        return cls(caption, tuple(header), cells, text_columns=words, **others)


def markdown(table: Table) -> str:
    """Write a table as markdown."""
    ruler = ["---"] * table.text_columns + ["---:"] * (len(table.header) - table.text_columns)
    lines = [f"**{markdown_text(table.caption)}**", "", _line(table.header), f"|{'|'.join(ruler)}|"]
    for row in (*table.rows, *table.footer):
        lines.append(_line([_join(f"**{c.text}**" if c.bold else c.text, c.mark) for c in row]))
    notes = [markdown_text(" ".join(table.notes)), ""] if table.notes else []
    return "\n".join([*lines, "", *notes])


def latex(table: Table) -> str:
    """Write a table as LaTeX; it needs the packages booktabs and graphicx."""
    columns = "l" * table.text_columns + "r" * (len(table.header) - table.text_columns)
    # Made smaller where it is too wide, never larger.
    smaller = r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%"
    lines = [
        rf"\caption{{{' '.join(map(_tex, (table.caption + '.', *table.notes)))}}}",
        *(r"\centering", smaller, rf"\begin{{tabular}}{{{columns}}}", r"\toprule"),
        *(_tex_row([Cell(name) for name in table.header]), r"\midrule", *map(_tex_row, table.rows)),
        *((r"\midrule", *map(_tex_row, table.footer)) if table.footer else ()),
        *(r"\bottomrule", r"\end{tabular}}"),
    ]
    return "\n  ".join([r"\begin{table}[t]", *lines]) + "\n" + r"\end{table}" + "\n"


def csv_text(rows: Iterable[Mapping[str, object]], names: Sequence[str], *, digits: int = 4) -> str:
    """Write the columns named as CSV: floats with so many decimals, nothing for what is unknown.

    Examples
    --------
    >>> csv_text([{"a": 1, "b": 2.0, "c": math.nan, "d": 3}], "abc")
    'a,b,c\\n1,2.0000,\\n'
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_plain(row.get(name), digits) for name in names] for row in rows)
    return buffer.getvalue()


def number(value: float, *, like: float | None = None) -> str:
    """One decimal, none from a thousand on; as many as ``like`` has, where it is given.

    Examples
    --------
    >>> number(26214.66), number(90.21), number(149.03, like=26214.66)
    ('26,215', '90.2', '149')
    """
    size = abs(value if like is None else like)
    # What would be rounded up to a thousand is printed like one.
    return f"{value:,.0f}" if size >= 999.95 else f"{value:,.1f}"


def spread(mean: float, error: float | None) -> str:
    """Mean and, where there is one, standard error.

    Examples
    --------
    >>> spread(233.0, 94.1), spread(233.0, math.nan)
    ('233.0 ± 94.1', '233.0')
    """
    if error is None or math.isnan(error):
        return number(mean)
    return f"{number(mean)} ± {number(error, like=mean)}"


def _cell(given: str | Cell) -> Cell:
    if isinstance(given, Cell):
        return given
    try:
        return Cell(given, float(given.split(" ")[0].replace(",", "")))
    except ValueError:
        return Cell(given)


def _plain(value: object, digits: int) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.{digits}f}"
    return "" if value is None else value


def markdown_text(text: str) -> str:
    """Keep a text on one line of markdown, and HTML in it a text.

    Examples
    --------
    >>> markdown_text("a<b>\\nc")
    'a&lt;b&gt; c'
    """
    return escape(" ".join(text.split()), quote=False)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(markdown_text(cell).replace("|", "\\|") for cell in cells) + " |"


def _tex_row(row: Sequence[Cell]) -> str:
    texts = [rf"\textbf{{{_tex(cell.text)}}}" if cell.bold else _tex(cell.text) for cell in row]
    return " & ".join(_join(text, cell.mark) for text, cell in zip(texts, row, strict=True)) + r" \\"


def _join(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _tex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))
