"""The classification tasks of the paper as bandit problems, from a folder of tables or from OpenML."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from functools import lru_cache
from http.client import HTTPException
from pathlib import Path

from numpy.random import Generator

from pfnts.contexts import read
from pfnts.environments.base import Environment
from pfnts.environments.tables import RewardTable, class_table, read_table

MOST_ROWS = 10_000
"""Rounds of the paper's runs; a larger table is sampled."""
VARIABLE = "PFNTS_DATA"
"""Environment variable that names the folder of tables."""


class MissingDatasetError(ValueError):
    """A dataset is neither in the folder nor can it be downloaded."""


@dataclass(frozen=True)
class OpenMLScenario:
    """A classification dataset: its classes are the arms, the right one pays 1, all others 0.

    Examples
    --------
    >>> SCENARIOS[0].name, SCENARIOS[0].data_id, SCENARIOS[0].n_arms
    ('openml-adult', 1590, 2)
    """

    name: str
    """The word by which `make` finds it."""
    data_id: int
    """Number of the dataset on OpenML."""
    description: str
    """One line for a person choosing a scenario."""
    n_features: int
    """Length P of a context."""
    n_arms: int
    """Number of arms K."""
    data: Path | None = None
    """Folder of tables; that of the variable PFNTS_DATA when left out."""
    needs_context: bool | None = True
    """No class is that of every row."""

    @property
    def dataset(self) -> str:
        """Name of the dataset, which is that of its file."""
        return self.name.removeprefix("openml-")

    def environment(self, *, horizon: int, rng: Generator) -> Environment:
        """Shuffle the rows; at most ``horizon``, 10,000 and the dataset's own number of rounds."""
        table = self.table()
        return table.environment(name=self.name, horizon=min(horizon, MOST_ROWS), rng=rng)

    def table(self) -> RewardTable:
        """Read the dataset from the folder if it is there, from scikit-learn's cache or OpenML if not."""
        folder = _folder(self.data)
        if folder is not None:
            for stem in dict.fromkeys((self.dataset, self.dataset.replace("-", "_"))):
                for path in (folder / f"{stem}.csv.gz", folder / f"{stem}.csv"):
                    if path.is_file():
                        return read_table(path, target=None)
        return self._fetched(folder)

    def _fetched(self, folder: Path | None) -> RewardTable:
        try:
            return fetch(self.data_id)
        except (OSError, HTTPException, ValueError) as error:
            looked = f"{folder} has none" if folder else "no folder was named"
            raise MissingDatasetError(
                f"{self.name} needs the dataset {self.data_id} of OpenML, which could not be downloaded "
                f"({type(error).__name__}: {error}). Connect this machine to the network, or put the table "
                f"into a folder as {self.dataset}.csv.gz, the class in its last column, and name the folder "
                f"by data=, --data or {VARIABLE} ({looked})"
            ) from None


def _folder(data: Path | None) -> Path | None:
    named = data if data is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return None
    folder = Path(named)
    if not folder.is_dir():
        what = "data" if data is not None else VARIABLE
        raise ValueError(f"{what} must be a folder of tables, there is none at {folder}")
    return folder


@lru_cache(maxsize=16)
def fetch(data_id: int) -> RewardTable:
    """Download a dataset from OpenML by scikit-learn, which keeps a copy in its own data folder.

    Parameters
    ----------
    data_id
        Number of the dataset.
    """
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise ImportError(
            'OpenML datasets need scikit-learn and pandas; install them with: pip install "pfnts[bench]"'
        ) from error
    with warnings.catch_warnings():
        # It warns of each new attempt, and of datasets with newer versions; ours are pinned.
        warnings.simplefilter("ignore", UserWarning)
        bunch = fetch_openml(data_id=data_id, as_frame=True, parser="auto", n_retries=2)
    # OpenML calls numbers nominal, too, such as the indicators of covertype: they are read as a file's texts.
    contexts = replace(read(bunch.data), nominal=frozenset(), written=True)
    return class_table(contexts, bunch.target.tolist(), target=str(bunch.target.name))


SCENARIOS: tuple[OpenMLScenario, ...] = (
    OpenMLScenario("openml-adult", 1590, "does a person earn over 50,000 dollars? census", 108, 2),
    OpenMLScenario("openml-covertype", 1596, "which of seven kinds of forest? maps", 54, 7),
    OpenMLScenario("openml-eeg-eye-state", 1471, "are the eyes open? brain waves", 14, 2),
    OpenMLScenario("openml-gas-drift", 1476, "which of six gases? sensors that age", 128, 6),
    OpenMLScenario("openml-magic-telescope", 1120, "gamma ray or background? telescope pictures", 10, 2),
    OpenMLScenario("openml-mushroom", 24, "edible or poisonous? categories only; 8,124 rounds", 117, 2),
    OpenMLScenario("openml-page-blocks", 30, "text, line, picture? blocks of a page; 5,473 rounds", 10, 5),
    OpenMLScenario("openml-shuttle", 40685, "which state of the radiators? seven, most of them rare", 9, 7),
)
"""Every OpenML scenario, in the order of the paper's table."""
