"""Tables in CSV and Parquet files."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Literal

from pfnts.contexts.table import Table, read
from pfnts.contexts.values import is_missing

_CHUNK = 10_000
"""Lines of a CSV file that become columns at a time."""
_SEPARATORS = (",", ";", "\t")
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?")


def read_file(path: str | os.PathLike[str]) -> Table:
    """Read a CSV file (also compressed, ``.gz``) or a Parquet file (``.parquet``, ``.pq``).

    A CSV file is UTF-8 with column names in its first line, separated by commas, semicolons or tabs. With
    semicolons, a column may have decimal commas (``1.234,5``), as spreadsheets write them in much of Europe.
    Cells remain texts, to be read by a schema.

    Parameters
    ----------
    path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pets.csv"
    >>> _ = path.write_text("weight,coat\\n4,short\\nNA,long\\n")
    >>> table = read_file(path)
    >>> table.names, table.n_rows, table["weight"]
    (('weight', 'coat'), 2, ['4', 'NA'])
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path.name}: path must be a CSV or Parquet file, {path} is a folder")
    if not path.exists():
        raise ValueError(f"{path.name}: file must exist, there is none at {path}")
    return _parquet(path) if path.suffix in (".parquet", ".pq") else _csv(path)


def _csv(path: Path) -> Table:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig", newline="")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig", newline="")
        ) as file:
            separator = _separator(file.readline())
            file.seek(0)
            text = file.read()
            if (plain := _plain_columns(text, separator)) is not None:
                header, columns = plain
            else:
                lines = csv.reader(
                    io.StringIO(text, newline=""), strict=True, skipinitialspace=True, delimiter=separator
                )
                header = [name.strip() for name in next(lines, [])]
                columns = _columns((line for line in lines if line), len(header), path.name)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path.name}: file must be a CSV table in UTF-8, reading it failed: {error}; save it anew as "
            f'"CSV UTF-8", or: iconv -f windows-1252 -t utf-8 {path.name} > utf8.csv'
        ) from error
    except (OSError, EOFError, csv.Error, zlib.error) as error:
        raise ValueError(
            f"{path.name}: file must be a CSV table in UTF-8, reading it failed: {error}"
        ) from error
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated or not header:
        said = f"the header repeats {repeated}" if repeated else "the first line is empty"
        raise ValueError(f"{path.name}: column names must be there and be distinct, {said}")
    if separator == ";":
        columns = [_with_points(column) for column in columns]
    return Table.of(dict(zip(header, columns, strict=True)), written=True)


def _separator(header: str) -> str:
    """Return the separator that makes most names of the first line; a comma where several do."""
    return max(_SEPARATORS, key=lambda each: len(next(csv.reader([header], delimiter=each), [])))


def _with_points(cells: list[str]) -> list[str]:
    """Replace decimal commas by points in a column whose cells are all numbers."""
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    if not any("," in cell for cell in present) or not all(map(_DECIMAL_COMMA.fullmatch, present)):
        return cells
    return [cell if is_missing(cell) else cell.replace(".", "").replace(",", ".") for cell in cells]


def _plain_columns(text: str, separator: str) -> tuple[list[str], list[list[str]]] | None:
    """Read a table without quotes, spaces and empty or uneven lines; None for any other.

    Most large ones are of this form, and splitting whole chunks takes a third of the time of a CSV reader.
    """
    if any(mark in text for mark in '" \r'):
        return None
    header, *lines = text.removesuffix("\n").split("\n")
    width = header.count(separator) + 1
    if width == 1 or any(line.count(separator) != width - 1 for line in lines):
        return None
    columns: list[list[str]] = [[] for _ in range(width)]
    for start in range(0, len(lines), _CHUNK):
        cells = separator.join(lines[start : start + _CHUNK]).split(separator)
        for place, column in enumerate(columns):
            column.extend(cells[place::width])
    return [name.strip() for name in header.split(separator)], columns


def _columns(lines: Iterator[list[str]], width: int, name: str) -> list[list[str]]:
    """Transpose lines into columns, some at a time: a list for every line of a large file would be slow."""
    columns: list[list[str]] = [[] for _ in range(width)]
    done = 0
    while chunk := list(islice(lines, _CHUNK)):
        for i, line in enumerate(chunk, start=done + 1):
            if len(line) != width:
                raise ValueError(
                    f"{name}: row {i} must have the header's {width} cells, got {len(line)}; "
                    'put quotes around a cell that holds the separator: "1,5"'
                )
        for column, cells in zip(columns, zip(*chunk, strict=True), strict=True):
            column.extend(cells)
        done += len(chunk)
    return columns


def _parquet(path: Path) -> Table:
    import narwhals as nw

    backend: Literal["pyarrow", "polars"] = "pyarrow" if find_spec("pyarrow") else "polars"
    if not find_spec(backend):
        raise ImportError('a Parquet file needs pyarrow; install it with: pip install "pfnts[bench]"')
    try:
        return read(nw.read_parquet(path, backend=backend).to_native())
    except Exception as error:  # each backend has errors of its own
        raise ValueError(f"{path.name}: file must be a Parquet table, reading it failed: {error}") from error
