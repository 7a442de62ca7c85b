"""Tables as bandit problems: a class to name for 1, or a reward for every arm."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.contexts import Column, Schema, Table, describing, read_file
from pfnts.contexts.column import each
from pfnts.contexts.values import category, is_missing
from pfnts.environments.base import Environment, checked_horizon, generator

Vector = NDArray[np.float64]

MOST_CLASSES = 100
"""Arms beyond which a column is taken for a number and not for a class."""
_MISSING = "missing"
"""Category of its own that missing values of a categorical column have."""


@dataclass(frozen=True)
class RewardTable:
    """Contexts, and what every arm pays in each. Kept compactly: only rows that are drawn become floats."""

    contexts: Table
    """Numbers as arrays, categories as texts."""
    schema: Schema
    """How they become features."""
    centre: Vector
    """(P,) mean of a numeric feature over the table, 0 for an indicator."""
    scale: Vector
    """(P,) standard deviation of a numeric feature, 1 for an indicator or where it is constant."""
    arms: tuple[str, ...]
    """(K,)"""
    rewards: NDArray[Any]
    """(n, K)"""
    left_out: dict[str, str]
    """Columns that describe no row, and why."""

    def environment(self, *, name: str, horizon: int | None, rng: Generator) -> Environment:
        """Shuffle the rows and take the first ``horizon``; all if that is None, or more than there are."""
        rows = rng.permutation(len(self.rewards))[:horizon]
        rewards = self.rewards[rows].astype(np.float64)
        contexts = (self.schema.encode(self.contexts.take(rows)) - self.centre) / self.scale
        return Environment(name, contexts, rewards, rewards, self.arms, self.schema.features)


def from_csv(
    path: str | os.PathLike[str],
    target: str | None = None,
    *,
    rewards: Sequence[str] | Mapping[str, str] = (),
    drop: Sequence[str] = (),
    horizon: int | None = None,
    rng: Generator | int,
) -> Environment:
    """Make a bandit problem of a table: contexts are its rows, arms its classes, a right class pays 1.

    Numbers and dates are standardised, NaN where missing; all other columns become one indicator for each
    category, a missing value being one more category. Ids are left out with a warning.

    Parameters
    ----------
    path
        A CSV file, ``.csv`` or ``.csv.gz``, with column names in its first line, or a Parquet file.
    target
        Name of the column with the class.
    rewards
        Instead of a target, the columns with what each arm pays, or arms to such columns.
    drop
        Columns that are neither.
    horizon
        Number of rounds; all rows when left out.
    rng
        Where the order of the rows comes from, or its seed; a longer horizon continues a shorter one.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "pets.csv"
    >>> _ = path.write_text("weight,coat,pet\\n4,short,cat\\n30,,dog\\n5,long,cat\\n")
    >>> environment = from_csv(path, "pet", rng=0)
    >>> environment.arms, environment.features
    (('cat', 'dog'), ('weight', 'coat=long', 'coat=short', 'coat=missing'))
    """
    if (target is None) == (not rewards):
        raise ValueError(f"give target or rewards and not both, got {target!r} and {rewards!r}")
    for argument, value in (("rewards", rewards), ("drop", drop)):
        if isinstance(value, str):
            raise ValueError(f"{argument} must be a list of column names, got the text {value!r}")
    order, rounds = generator(rng), None if horizon is None else checked_horizon(horizon)
    arms = dict(rewards) if isinstance(rewards, Mapping) else {name: name for name in rewards}
    table = read_table(path, target=target, rewards=arms, drop=drop)
    if table.left_out:
        said = ", ".join(f"{name!r} ({why})" for name, why in table.left_out.items())
        warnings.warn(f"left out of the contexts: {said}; name them in drop= to confirm it", stacklevel=2)
    return table.environment(name=Path(path).name.split(".")[0], horizon=rounds, rng=order)


def read_table(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    rewards: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
) -> RewardTable:
    """Read a file, as `from_csv` does; without target and rewards, the last column has the class.

    A file read before is remembered as long as it does not change.
    """
    path = Path(path)
    version = (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else ()
    return _read(path.resolve(), target, tuple((rewards or {}).items()), tuple(drop), version)


@lru_cache(maxsize=16)
def _read(
    path: Path, target: str | None, paid: tuple[tuple[str, str], ...], drop: tuple[str, ...], _version: object
) -> RewardTable:
    table = read_file(path)
    try:
        if not table.n_rows:
            raise ValueError("table must have at least one row, it has column names only")
        used = tuple(column for _, column in paid) or (table.names[-1] if target is None else target,)
        for argument, names in (("rewards" if paid else "target", used), ("drop", drop)):
            for name in names:
                if name not in table:
                    raise ValueError(
                        f"{argument} must be one of the columns {list(table.names)}, got {name!r}"
                    )
        contexts = table.select(name for name in table.names if name not in (*used, *drop))
        if not paid:
            return class_table(contexts, table[used[0]], target=used[0])
        return _table(contexts, tuple(arm for arm, _ in paid), _paid(table, used))
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error


def class_table(contexts: Table, classes: Sequence[Any], *, target: str) -> RewardTable:
    """Make a table of contexts and the class (n,) of each, which errors call ``target``."""
    labels = each(classes, lambda value: None if is_missing(value) else category(value))
    if None in labels:
        raise ValueError(
            f"target {target!r} must have a class in every row, row {labels.index(None) + 1} has none; "
            "drop such rows"
        )
    arms = _sorted({str(label) for label in labels})
    if len(arms) == 1:
        raise ValueError(f"target {target!r} must have at least two classes, it has only {arms[0]!r}")
    if len(arms) > MOST_CLASSES:
        raise ValueError(
            f"target {target!r} must have at most {MOST_CLASSES} classes, it has {len(arms):,}, such as "
            f"{', '.join(arms[:3])}; name another column, or group its values"
        )
    places = {arm: k for k, arm in enumerate(arms)}
    codes = [places[str(label)] for label in labels]
    return _table(contexts, arms, np.eye(len(arms), dtype=np.uint8)[codes])


def _paid(table: Table, columns: tuple[str, ...]) -> NDArray[np.float64]:
    if len(columns) < 2:
        raise ValueError(f"rewards must name the columns of at least two arms, got {list(columns)}")
    paid = np.concatenate([Column(name, "numeric").encode(table[name]) for name in columns], axis=1)
    for i, k in np.argwhere(np.isnan(paid)).tolist():
        raise ValueError(
            f"row {i + 1}: column {columns[k]!r} must hold a reward, it is missing; drop such rows"
        )
    return paid


def _table(contexts: Table, arms: tuple[str, ...], rewards: NDArray[Any]) -> RewardTable:
    if not contexts.names:
        raise ValueError("table must have a column beside those of classes or rewards, it has none")
    schema, left_out = describing(contexts)
    prepared = [_prepared(column, contexts[column.name]) for column in schema.columns]
    columns = tuple(column for column, *_ in prepared)
    return RewardTable(
        contexts=Table.of({column.name: values for column, values, *_ in prepared}),
        schema=Schema(columns),
        centre=np.repeat([centre for *_, centre, _ in prepared], [column.slots for column in columns]),
        scale=np.repeat([scale for *_, scale in prepared], [column.slots for column in columns]),
        arms=arms,
        rewards=rewards,
        left_out=left_out,
    )


def _prepared(column: Column, values: Any) -> tuple[Column, Any, float, float]:
    """Give a column as it is kept: numbers with their mean and standard deviation, or texts."""
    if column.kind == "categorical":
        texts = each(values, lambda value: _MISSING if is_missing(value) else value)
        known = [text for text in column.categories if text != _MISSING]
        known += [_MISSING] if _MISSING in texts else []
        return replace(column, categories=tuple(known), slots=len(known)), texts, 0.0, 1.0
    floats = column.encode(values)[:, 0]
    there = floats[~np.isnan(floats)]
    centre, scale = (float(there.mean()), float(there.std())) if len(there) else (0.0, 1.0)
    return Column(column.name, "numeric"), _compact(floats), centre, scale or 1.0


def _compact(floats: Vector) -> NDArray[Any]:
    """Whole numbers in as few bytes as they need: covertype is 0.6 million rows of small ones."""
    if np.isnan(floats).any() or (floats != np.rint(floats)).any() or np.abs(floats).max() > 2**53:
        return floats
    kinds = (np.min_scalar_type(int(floats.min())), np.min_scalar_type(int(floats.max())))
    return floats.astype(np.promote_types(*kinds))


def _sorted(labels: set[str]) -> tuple[str, ...]:
    """Sort labels as numbers where they all are."""
    try:
        return tuple(sorted(labels, key=lambda label: (float(label), label)))
    except ValueError:
        return tuple(sorted(labels))
