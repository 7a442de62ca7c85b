"""Tables with a class for every row, and the bandit problems they make: name the class, earn 1."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.environments.base import Environment, checked_horizon

Matrix = NDArray[np.float64]

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null")
"""Cells that hold no value."""
MOST_CLASSES = 100
"""Arms beyond which a column is taken for a number and not for a class."""
MOST_CATEGORIES = 256
"""Categories beyond which a column is taken for a name or free text."""


@dataclass(frozen=True)
class Numbers:
    """A numeric column; as a feature it has mean 0 and standard deviation 1 over the whole table."""

    name: str
    """Its heading."""
    values: NDArray[Any]
    """(n,) as small a kind of number as holds them; NaN where missing."""
    centre: float
    """Mean of the values that are there."""
    scale: float
    """Their standard deviation; 1 where they are all equal."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name of its one feature."""
        return (self.name,)

    def features(self, rows: NDArray[np.intp]) -> Matrix:
        """Give the feature at ``rows`` (m,), as (m, 1)."""
        standardised: Matrix = (self.values[rows].astype(np.float64) - self.centre) / self.scale
        return standardised[:, None]


@dataclass(frozen=True)
class Categories:
    """A column of categories; as features, one indicator for each, missing values a category of their own."""

    name: str
    """Its heading."""
    codes: NDArray[np.int16]
    """(n,) place of each row's category."""
    categories: tuple[str, ...]
    """Sorted; the last is ``""`` if values are missing."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its features."""
        return tuple(f"{self.name}={category or 'missing'}" for category in self.categories)

    def features(self, rows: NDArray[np.intp]) -> Matrix:
        """Give the features at ``rows`` (m,), as (m, number of categories)."""
        indicators: Matrix = np.eye(len(self.categories))[self.codes[rows]]
        return indicators


@dataclass(frozen=True)
class Table:
    """Rows with a class each. Kept compactly: only the rows that are drawn become features."""

    columns: tuple[Numbers | Categories, ...]
    """What a context is made of."""
    classes: tuple[str, ...]
    """Every class, sorted, as numbers where they all are: the arms."""
    targets: NDArray[np.int64]
    """(n,) each row's class, as a place in ``classes``."""

    @property
    def features(self) -> tuple[str, ...]:
        """Names of a context's features."""
        return tuple(name for column in self.columns for name in column.names)

    def environment(self, *, name: str, horizon: int, rng: Generator) -> Environment:
        """Shuffle the rows and take the first ``horizon``, or all if there are fewer."""
        rows = rng.permutation(len(self.targets))[:horizon]
        contexts = np.concatenate([column.features(rows) for column in self.columns], axis=1)
        rewards = np.eye(len(self.classes))[self.targets[rows]]
        return Environment(
            name=name,
            contexts=contexts,
            means=rewards,
            rewards=rewards,
            arms=self.classes,
            features=self.features,
        )


def from_csv(
    path: str | os.PathLike[str], target: str, *, horizon: int | None = None, rng: Generator
) -> Environment:
    """Make a bandit problem of a table: contexts are its rows, arms its classes, a right class pays 1.

    Columns of numbers are standardised, NaN where a cell is empty or ``?``; all others become one
    indicator for each category, a missing value being one more category.

    Parameters
    ----------
    path
        A CSV file, ``.csv`` or ``.csv.gz``, with column names in its first line.
    target
        Name of the column with the class.
    horizon
        Number of rounds; all rows when left out.
    rng
        Where the order of the rows comes from; a longer horizon continues a shorter one.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pets.csv"
    >>> _ = path.write_text("weight,coat,pet\\n4,short,cat\\n30,,dog\\n5,long,cat\\n")
    >>> environment = from_csv(path, "pet", rng=np.random.default_rng(0))
    >>> environment.arms, environment.features
    (('cat', 'dog'), ('weight', 'coat=long', 'coat=short', 'coat=missing'))
    """
    table = read_table(path, target=target)
    rounds = len(table.targets) if horizon is None else checked_horizon(horizon)
    return table.environment(name=Path(path).name.split(".")[0], horizon=rounds, rng=rng)


def read_table(path: str | os.PathLike[str], *, target: str | None) -> Table:
    """Read a CSV file; a file read before is remembered as long as it does not change.

    Parameters
    ----------
    path
        The file, compressed or not.
    target
        Name of the column with the class; the last one for None.
    """
    path = Path(path)
    try:
        stat = path.stat()
    except FileNotFoundError:
        raise ValueError(f"path must be a CSV file, there is none at {path}") from None
    if path.is_dir():
        raise ValueError(f"path must be a CSV file, {path} is a folder")
    return _read(path.resolve(), target, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=16)
def _read(path: Path, target: str | None, *_version: int) -> Table:
    pandas = import_pandas()
    options: dict[str, Any] = {
        "na_values": list(MISSING),
        "keep_default_na": False,
        "skipinitialspace": True,
        "low_memory": False,
        "index_col": False,
    }
    try:
        header = [str(name) for name in pandas.read_csv(path, nrows=0, **options).columns]
        target = (header or [""])[-1] if target is None else target
        if target not in header:
            raise ValueError(f"target must be one of the columns {header}, got {target!r}")
        # The classes as they are written: no 1 becomes 1.0.
        frame = pandas.read_csv(path, dtype={target: str}, **options)
    except pandas.errors.EmptyDataError:
        raise ValueError(f"{path.name} must have column names in its first line, it is empty") from None
    except (OSError, EOFError, UnicodeDecodeError, pandas.errors.ParserError) as error:
        raise ValueError(f"{path.name} must be a CSV table in UTF-8, reading it failed: {error}") from error
    try:
        return table_from_frame(frame.drop(columns=target), frame[target])
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error


def import_pandas() -> Any:
    """Import pandas, or say which extra has it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('tables need pandas; install it with: pip install "pfnts[bench]"') from error
    return pandas


def table_from_frame(contexts: Any, target: Any) -> Table:
    """Make a table of a pandas frame and the series of its classes.

    Parameters
    ----------
    contexts
        One column for each variable.
    target
        The class of each row.
    """
    if not len(contexts):
        raise ValueError("table must have at least one row, it has column names only")
    if not len(contexts.columns):
        raise ValueError(f"table must have a column beside the target {target.name!r}, it has none")
    codes, classes = _factorised(target)
    if (codes < 0).any():
        raise ValueError(
            f"target {target.name!r} must have a class in every row, row {int((codes < 0).argmax()) + 1} "
            "has none; drop such rows"
        )
    if len(classes) < 2:
        raise ValueError(f"target {target.name!r} must have at least two classes, it has only {classes[0]!r}")
    if len(classes) > MOST_CLASSES:
        raise ValueError(
            f"target {target.name!r} must have at most {MOST_CLASSES} classes, it has {len(classes):,}, "
            f"such as {', '.join(classes[:3])}; name another column, or group its values"
        )
    order = _order(classes)
    columns = tuple(_column(str(name), contexts.iloc[:, j]) for j, name in enumerate(contexts.columns))
    places = np.argsort(order).astype(np.int64)
    return Table(columns, tuple(classes[i] for i in order), places[codes])


def _column(name: str, series: Any) -> Numbers | Categories:
    """Take a column for numbers if every value that is there is one, however it is stored."""
    if series.dtype.kind in "biuf":
        return _numbers(name, series.to_numpy())
    codes, texts = _factorised(series)
    try:
        values = np.array([float(text) for text in texts])
    except ValueError:
        return _categories(name, codes, texts)
    return _numbers(name, np.append(values, np.nan)[codes])


def _numbers(name: str, values: NDArray[Any]) -> Numbers:
    if np.isinf(values).any():
        raise ValueError(f"column {name!r} must be finite or missing, it holds an infinite number")
    values = values.astype(np.uint8) if values.dtype.kind == "b" else values
    there = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    centre, scale = (float(there.mean()), float(there.std())) if len(there) else (0.0, 1.0)
    return Numbers(name, _compact(values), centre, scale if scale > 0 else 1.0)


def _compact(values: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers in as few bytes as they need: covertype is 0.6 million rows of small ones."""
    if values.dtype.kind not in "iu":
        return values
    return values.astype(np.promote_types(np.min_scalar_type(values.min()), np.min_scalar_type(values.max())))


def _categories(name: str, codes: NDArray[np.intp], texts: list[str]) -> Categories:
    if len(texts) > MOST_CATEGORIES:
        raise ValueError(
            f"column {name!r} must hold numbers or at most {MOST_CATEGORIES} categories, it holds "
            f"{len(texts):,}, such as {', '.join(texts[:3])}; drop it, or turn it into numbers"
        )
    order = sorted(range(len(texts)), key=texts.__getitem__)
    missing = [""] if (codes < 0).any() else []
    # Position -1, which stands for a missing value, is the last place of this array too.
    places = np.append(np.argsort(order), len(texts)).astype(np.int16)
    return Categories(name, places[codes], tuple([texts[i] for i in order] + missing))


def _factorised(series: Any) -> tuple[NDArray[np.intp], list[str]]:
    """Distinct values as text in the order they appear, and each row's place among them, -1 if missing."""
    codes, values = import_pandas().factorize(series)
    return np.asarray(codes, dtype=np.intp), [str(value).strip() for value in values]


def _order(classes: list[str]) -> list[int]:
    try:
        numbers = [float(label) for label in classes]
    except ValueError:
        numbers = [0.0] * len(classes)
    return sorted(range(len(classes)), key=lambda i: (numbers[i], classes[i]))
