"""Settings of a training run, and the shapes of its minibatches."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from pfnts.backbones.network.inference.frame import CELLS, NARROW
from pfnts.backbones.network.network import Architecture
from pfnts.backbones.network.prior.mixture import Mixture


@dataclass(frozen=True)
class Recipe:
    """Settings of a training run."""

    steps: int
    """Number of updates; the learning rate falls linearly to zero at the last."""
    warmup: int
    """Updates in which the learning rate rises."""
    averaged: float
    """Share of the steps, the last ones, whose weights are averaged."""
    learning_rate: float
    """Largest learning rate of Muon."""
    adam_rate: float
    """Largest learning rate of Adam, which trains what Muon does not."""
    rows_per_step: int
    cells_per_step: int
    """Limits of a minibatch, which has as many tables as fit both."""
    lengths: tuple[int, ...]
    """Rows of a table; 0 stands for a history of fewer than 32 rows."""
    length_weights: tuple[float, ...]
    """Probability of each length."""
    late: float
    """Share of the steps after which ``late_length_weights`` apply."""
    late_length_weights: tuple[float, ...]
    few: tuple[int, ...]
    """Rows of a short history."""
    widths: tuple[int, ...]
    """Columns of a table."""
    width_weights: tuple[float, ...]
    steps_per_draw: int
    """Minibatches drawn from the prior in one call; they share a shape."""
    draws_per_round: int
    """Calls whose minibatches are shuffled together, so that consecutive steps differ in shape."""
    uses: int
    """Number of steps that use a table, each with other column identities."""
    seed: int = 0
    architecture: Architecture = field(default_factory=Architecture)
    prior: Mixture = field(default_factory=Mixture)

    @property
    def steps_per_round(self) -> int:
        """Number of steps between two points at which training can stop and resume."""
        return self.draws_per_round * self.steps_per_draw * self.uses

    def widths_of(self, rows: int) -> list[int]:
        """Columns that tables of so many rows have; longer ones are narrower, as in use."""
        return [p for p in self.widths if p <= NARROW or rows * p <= 2.5 * CELLS]

    def batch(self, rows: int, features: int) -> int:
        """Return the number of tables of a minibatch: a multiple of eight."""
        rows = rows or self.most_of_few
        fit = min(self.rows_per_step // rows, self.cells_per_step // (rows * features))
        return max(8, fit // 8 * 8)

    @property
    def most_of_few(self) -> int:
        """Rows of the longest of the short tables, queries included."""
        return max(self.few) + queries_of(0)


class Shape(NamedTuple):
    """Shape of a minibatch."""

    batch: int
    rows: int
    features: int
    queries: int
    """Number of rows at the end that are predicted."""
    together: bool
    """If true, each is predicted from the rows before the first of them, else from all rows before it."""


def queries_of(rows: int) -> int:
    """Return the number of rows at the end of a table that are predicted."""
    return max(32, rows // 4)


def read_recipe(name: str) -> Recipe:
    """Read a recipe of the package by its name, or any by its path.

    Examples
    --------
    >>> read_recipe("tiny").architecture.layers
    1
    """
    folder = files("pfnts.backbones.network.training") / "recipes"
    known = sorted(Path(str(entry)).stem for entry in folder.iterdir())
    source = folder / f"{name}.toml" if name in known else Path(name)
    try:
        found = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(
            f"recipe must be one of {', '.join(known)} or the path of a TOML file, got {name!r}: {error}"
        ) from error
    return recipe_from_dict(found)


def recipe_from_dict(values: dict[str, Any]) -> Recipe:
    """Build a recipe from the values of its fields; ``architecture`` and ``prior`` are dictionaries too."""
    architecture = checked(values.get("architecture", {}), Architecture, name="architecture")
    prior = checked(values.get("prior", {}), Mixture, name="prior")
    parts = {"architecture": Architecture(**architecture), "prior": Mixture(**prior)}
    try:
        return Recipe(**(checked(values, Recipe, name="recipe") | parts))
    except TypeError as error:
        raise ValueError(f"recipe must have all settings of a training run: {error}") from error


def checked(values: dict[str, Any], of: type, *, name: str) -> dict[str, Any]:
    """Return the values with lists as tuples; raise if a name is unknown."""
    known = [f.name for f in fields(of)]
    for key in values:
        if key not in known:
            raise ValueError(f"{name} must have settings among {', '.join(known)}, got {key!r}")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
