"""Tables in CSV and Parquet files, and which of their columns describe a row."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Literal

from pfnts.contexts.inference import IdColumnError, infer_column
from pfnts.contexts.schema import Schema
from pfnts.contexts.table import Table, read
from pfnts.contexts.values import is_missing

_CHUNK = 10_000
"""Lines of a CSV file that are turned into columns at a time."""
_SEPARATORS = (",", ";", "\t")
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?")
_ID_NAME = re.compile(r"(?:^|[\W_])(?i:id|uuid|guid)$|[a-z](?:Id|ID)$|^(?i:index)?$|^Unnamed: 0$")


def read_file(path: str | os.PathLike[str]) -> Table:
    """Read a CSV file (also compressed, ``.gz``) or a Parquet file (``.parquet``, ``.pq``).

    A CSV file is UTF-8 with column names in its first line, separated by commas, semicolons or tabs. Where
    it is semicolons, a column may have decimal commas (``1.234,5``), as spreadsheets write them in much of
    Europe. Cells stay texts: what they stand for is told by the schema, or by all of a column's cells
    together where there is none.

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


def describing(
    table: Table, names: Iterable[str] | None = None, *, dates: bool = True
) -> tuple[Schema, dict[str, str]]:
    """Infer a closed schema of the columns that describe a row, and say why others are left out.

    Ids are left out: texts that hardly repeat, and numbers in a column that is called so.

    Parameters
    ----------
    table
        The whole table.
    names
        Candidates; all columns when left out.
    dates
        Whether dates describe a row.

    Examples
    --------
    >>> table = Table.of({"user_id": [7, 7, 9], "paid": [1, 0, 1], "seen": ["2026-03-01"] * 3})
    >>> schema, left_out = describing(table, dates=False)
    >>> schema.features, left_out
    (('paid',), {'user_id': 'an id', 'seen': 'a date'})
    """
    columns, left_out = [], {}
    for name in table.names if names is None else names:
        try:
            column = infer_column(name, table[name], nominal=name in table.nominal, written=table.written)
        except IdColumnError:
            left_out[name] = "an id"
            continue
        if column.kind == "numeric" and _ID_NAME.search(name):
            left_out[name] = "an id"
        elif column.kind == "date" and not dates:
            left_out[name] = "a date"
        else:
            columns.append(column)
    if not columns:
        raise ValueError(f"table must have a column that describes its rows, left out are {left_out}")
    return Schema(tuple(columns)).closed(), left_out


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
    """Tell what separates columns: what makes most names of the first line; commas where that is the same."""
    return max(_SEPARATORS, key=lambda each: len(next(csv.reader([header], delimiter=each), [])))


def _with_points(cells: list[str]) -> list[str]:
    """Write decimal points in a column whose cells are all numbers, some of them with decimal commas."""
    present = [cell.strip() for cell in cells if not is_missing(cell)]
    if not any("," in cell for cell in present) or not all(map(_DECIMAL_COMMA.fullmatch, present)):
        return cells
    return [cell if is_missing(cell) else cell.replace(".", "").replace(",", ".") for cell in cells]


def _plain_columns(text: str, separator: str) -> tuple[list[str], list[list[str]]] | None:
    """Names and columns of a table without quotes, spaces and empty or uneven lines; None for any other.

    That is most of the large ones. To cut whole chunks of lines takes a third of the time of a CSV reader.
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
    """Turn lines into columns, some at a time: a list for every line of a large file would be slow."""
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
