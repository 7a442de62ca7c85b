"""Files that are tables, files that are not, and which of their columns describe a row."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from pfnts.contexts import Column, Schema, files, read_file


def test_cells_stay_texts_and_their_kind_is_told_by_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a, b,c,d,e\n1,true, x,2026-03-01,007\n\nNA,FALSE,?,,08\n", encoding="utf-8-sig")
    table = read_file(path)
    assert table.names == ("a", "b", "c", "d", "e")
    assert table["e"] == ["007", "08"]
    kinds = [column.kind for column in Schema.infer(table).columns]
    assert kinds == ["numeric", "boolean", "categorical", "date", "numeric"]
    declared = Schema.of({"a": "numeric", "b": "boolean", "c": ["x"], "d": "date", "e": ["007", "08"]})
    assert declared.encode(table)[0].tolist() == [1, 1, 1, 20513, 1, 0]


@pytest.mark.parametrize("rows", [0, 1, 7, 25])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_plain_tables_are_read_as_by_the_csv_reader(
    rows: int, separator: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CHUNK", 10)
    lines = [["a", "b", "c"], *([f"{i}", "", f"x{i % 3}"] for i in range(rows))]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(map(separator.join, lines)) + end)
    table = read_file(path)
    monkeypatch.setattr(files, "_plain_columns", lambda *_: None)
    assert read_file(path) == table
    assert table.names == ("a", "b", "c")
    assert table.n_rows == rows


def test_numbers_that_repeat_are_read_like_others() -> None:
    once = [f"{i / 7:.3f}" for i in range(50)]
    for texts in (once, once * 40, ["1"] * 2000 + once):
        assert Column("a", "numeric").encode(texts)[:, 0].tolist() == [float(text) for text in texts]
    with pytest.raises(ValueError, match=r"row 2001: context column 'a' must be numeric, got 'x'"):
        Column("a", "numeric").encode(["1"] * 2000 + ["x"])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "t.csv: column names must be there and be distinct, the first line is empty"),
        ("t.csv", b"a,b,a\n1,2,3\n", r"t.csv: column names .* the header repeats \['a'\]"),
        ("t.csv", b"a,b\n1,2\n\n3\n", "t.csv: row 2 must have the header's 2 cells, got 1"),
        ("t.csv", b"a,b\n1,2,3\n", "t.csv: row 1 must have the header's 2 cells, got 3"),
        ("t.csv", b"a,b\n\xff,2\n", "t.csv: file must be a CSV table in UTF-8, reading it failed"),
        ("t.csv", b'a,b\n"1,2\n', "t.csv: file must be a CSV table in UTF-8, reading it failed"),
        ("t.csv.gz", b"a,b\n1,2\n", "t.csv.gz: file must be a CSV table in UTF-8, reading it failed"),
        (
            "t.csv.gz",
            gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9],
            "t.csv.gz: file must be a CSV table in UTF-8",
        ),
        ("t.parquet", b"a,b\n1,2\n", "t.parquet: file must be a Parquet table, reading it failed"),
    ],
)
def test_what_is_no_table_is_refused(name: str, content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=words):
        read_file(tmp_path / name)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separator_is_told_by_the_header(separator: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a, b": [1.5, -2.25], "c;d": ["x;y", "z"], "e\tf": ["p,q", "r"]})
    path = tmp_path / "t.csv"
    frame.to_csv(path, sep=separator, index=False)
    table = read_file(path)
    assert table.names == ("a, b", "c;d", "e\tf")
    assert Schema.infer(table).columns[0].kind == "numeric"
    assert table["c;d"] == ["x;y", "z"]
    assert table["e\tf"] == ["p,q", "r"]


def test_decimal_commas_are_read_where_semicolons_separate(tmp_path: Path) -> None:
    lines = [
        "net;code;version;share",
        "1.234,5;1,2;1.549;0,25",
        "NA;3,x;1.550;?",
        "-0,75;4;1.551;1",
        "12;5;2;0",
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    table = read_file(path)
    expected = pd.read_csv(path, sep=";", decimal=",", thousands=".", na_values="?")
    for name in ("net", "share"):
        read_here = [float(cell) if cell not in ("NA", "?") else float("nan") for cell in table[name]]
        assert read_here == pytest.approx(expected[name].tolist(), nan_ok=True)
    assert table["code"] == ["1,2", "3,x", "4", "5"]  # not all are numbers
    assert table["version"] == [
        "1.549",
        "1.550",
        "1.551",
        "2",
    ]  # no comma in any of them


def test_decimal_commas_are_no_numbers_where_commas_separate(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n"1,5",2\n"2,5",3\n')
    assert read_file(path)["a"] == ["1,5", "2,5"]


def test_error_about_another_encoding_says_how_to_mend_it(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;preis\n1;2\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"iconv -f windows-1252 -t utf-8 t\.csv > utf8\.csv"):
        read_file(path)


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"t.csv: file must exist, there is none at"):
        read_file(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="is a folder"):
        read_file(tmp_path)


def test_parquet_is_read_by_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1, 2], "b": ["x", None]}).to_parquet(path)
    expected = read_file(path)
    installed = files.find_spec
    monkeypatch.setattr(files, "find_spec", lambda name: None if name == "pyarrow" else installed(name))
    other = read_file(path)
    assert [list(column) for column in other.columns] == [list(column) for column in expected.columns]
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'needs pyarrow; install it with: pip install "pfnts\[bench\]"'):
        read_file(path)
