"""Small tables under the names of the real ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

# Rows, numeric columns, categorical columns and classes: enough to tell the eight apart.
SHAPES = {
    "adult": (300, 2, 3, 2),
    "covertype": (10_300, 3, 0, 7),
    "eeg_eye_state": (200, 4, 0, 2),
    "gas_drift": (250, 6, 0, 6),
    "magic_telescope": (300, 3, 0, 2),
    "mushroom": (200, 0, 5, 2),
    "page_blocks": (240, 4, 0, 5),
    "shuttle": (400, 3, 0, 7),
}


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small table for every OpenML scenario, the classes in turn."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    for name, (rows, numbers, categories, classes) in SHAPES.items():
        columns = [[f"{value:.4f}" for value in rng.normal(50, 9, rows)] for _ in range(numbers)]
        columns += [list(rng.choice(["a", "b", "c", "?"], rows)) for _ in range(categories)]
        columns.append([str(1 + i % classes) for i in range(rows)])
        header = ",".join([*(f"v{j}" for j in range(numbers + categories)), "class"])
        lines = [header, *map(",".join, zip(*columns, strict=True))]
        with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
            file.write("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def data(tables: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of small tables, as PFNTS_DATA names it."""
    monkeypatch.setenv("PFNTS_DATA", str(tables))
    return tables
