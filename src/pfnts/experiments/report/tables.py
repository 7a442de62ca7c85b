"""One table, written as markdown, LaTeX or HTML."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "†": r"$^\dagger$",
    "—": "---",
}  # fmt: skip

_LONG = 20


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
    """Length of a bar behind it, from -1 (to the left) to 1."""


@dataclass(frozen=True)
class Table:
    """Rows of cells with a caption and notes.

    Examples
    --------
    >>> table = Table("Regret", ("policy", "linear"), ((Cell("ts"), Cell("1.0 ± 0.1", bold=True)),))
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


def markdown(table: Table) -> str:
    """Write a table as markdown."""
    ruler = ["---"] * table.text_columns + ["---:"] * (len(table.header) - table.text_columns)
    lines = [
        f"**{table.caption}**",
        "",
        _line(table.header),
        "|" + "|".join(ruler) + "|",
        *(
            _line([_join(f"**{cell.text}**" if cell.bold else cell.text, cell.mark) for cell in row])
            for row in (*table.rows, *table.footer)
        ),
        "",
    ]
    if table.notes:
        lines += [" ".join(table.notes), ""]
    return "\n".join(lines)


def latex(table: Table) -> str:
    """Write a table as LaTeX; it needs the packages booktabs and graphicx."""
    columns = "l" * table.text_columns + "r" * (len(table.header) - table.text_columns)
    lines = [
        r"\begin{table}[t]",
        rf"  \caption{{{' '.join(map(_tex, (table.caption + '.', *table.notes)))}}}",
        r"  \centering",
        # Made smaller where it is too wide, never larger.
        r"  \resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
        rf"  \begin{{tabular}}{{{columns}}}",
        r"  \toprule",
        "  " + " & ".join(map(_tex, table.header)) + r" \\",
        r"  \midrule",
        *("  " + _tex_row(row) for row in table.rows),
        *([r"  \midrule"] if table.footer else []),
        *("  " + _tex_row(row) for row in table.footer),
        r"  \bottomrule",
        r"  \end{tabular}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def html(table: Table) -> str:
    """Write a table as HTML whose columns can be sorted by the page's script."""
    titles = table.titles or ("",) * len(table.header)
    head = "".join(
        f'<th scope="col"{" class=num" if i >= table.text_columns else ""}>'
        f'<button type="button"{_attribute("title", title)}>{_unbroken(name)}</button></th>'
        for i, (name, title) in enumerate(zip(table.header, titles, strict=True))
    )
    body = "".join(_html_row(table, row) for row in table.rows)
    foot = "".join(_html_row(table, row) for row in table.footer)
    notes = f"<p class=note>{escape(' '.join(table.notes))}</p>" if table.notes else ""
    above = table.caption if table.heading is None else table.heading
    caption = f"<p class=caption>{escape(above)}</p>" if above else ""
    return (
        f"{caption}"
        f'<div class=scroll tabindex=0 role=region aria-label="{escape(table.caption)}">'
        f"<table class=sortable><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody>{f'<tfoot>{foot}</tfoot>' if foot else ''}</table></div>{notes}"
    )


def csv_text(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write rows as CSV: floats with four decimals, nothing for what is unknown.

    Examples
    --------
    >>> csv_text(("a", "b", "c"), [(1, 2.0, math.nan)])
    'a,b,c\\n1,2.0000,\\n'
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([[_plain(value) for value in row] for row in rows])
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


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4f}"
    return "" if value is None else value


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _tex_row(row: Sequence[Cell]) -> str:
    texts = [rf"\textbf{{{_tex(cell.text)}}}" if cell.bold else _tex(cell.text) for cell in row]
    marked = [_join(text, cell.mark) for text, cell in zip(texts, row, strict=True)]
    return " & ".join(marked) + r" \\"


def _join(*texts: str) -> str:
    return " ".join(filter(None, texts))


def _tex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _html_row(table: Table, row: Sequence[Cell]) -> str:
    return "<tr>" + "".join(_html_cell(cell, i, table.text_columns) for i, cell in enumerate(row)) + "</tr>"


def _html_cell(cell: Cell, column: int, text_columns: int) -> str:
    mean, plus_minus, error = cell.text.partition(" ± ")
    text = escape(mean) + (f" <span class=se>± {escape(error)}</span>" if plus_minus else "")
    if cell.bold:
        text = f"<b>{text}</b>"
    if cell.colour is not None:
        text = f'<i class=swatch style="--c:var(--c{cell.colour})"></i>{text}'
    if cell.aside or cell.mark:
        text += f"<small>{escape(_join(cell.mark, cell.aside))}</small>"
    if cell.bar is not None:
        start, length = 50 + 50 * min(cell.bar, 0), 50 * abs(cell.bar)
        side = "better" if cell.bar < 0 else "worse"
        text += f'<i class="bar {side}" style="--from:{start:.1f}%;--long:{length:.1f}%"></i>'
    # Plain decimals, so that whatever reads the page reads the numbers.
    value = "" if cell.value is None or math.isnan(cell.value) else f"{cell.value:.6f}"
    # Short names are never broken, long ones may be.
    wrap = " class=long" if len(cell.text) > _LONG else ""
    tag = f'th scope="row"{wrap}' if column == 0 else "td"
    numeric = column >= text_columns
    attributes = f"{' class=num' if numeric else ''}{_attribute('data-value', value) if numeric else ''}"
    return f"<{tag}{attributes}>{text}</{tag[:2]}>"


def _unbroken(name: str) -> str:
    return escape(name).replace(" †", "&nbsp;†")


def _attribute(name: str, value: str) -> str:
    return f' {name}="{escape(value)}"' if value else ""
