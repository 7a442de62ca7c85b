"""OpenML scenarios: where their tables come from, and what is in the real ones."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
from numpy.random import Generator

from pfnts.environments import MissingDatasetError, describe, make
from pfnts.environments.openml import MOST_ROWS, SCENARIOS, fetch

REAL = os.environ.get("PFNTS_DATA")


@pytest.fixture
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PFNTS_DATA", raising=False)
    fetch.cache_clear()


@pytest.fixture
def no_network(no_folder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: Any) -> None:
        raise URLError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fail)


@pytest.fixture
def fetched(no_folder: None, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What scikit-learn was asked for; it answers with a small frame as OpenML would send it."""
    asked: list[dict[str, Any]] = []

    def answer(**options: Any) -> SimpleNamespace:
        asked.append(options)
        data = pd.DataFrame({"age": [1.0, 2.0, np.nan], "sex": pd.Categorical(["f", "m", "f"])})
        return SimpleNamespace(data=data, target=pd.Series(pd.Categorical(["a", "b", "a"]), name="class"))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", answer)
    return asked


def test_names_and_ids_are_the_papers_tasks() -> None:
    assert {scenario.name: scenario.data_id for scenario in SCENARIOS} == {
        "openml-adult": 1590,
        "openml-covertype": 1596,
        "openml-eeg-eye-state": 1471,
        "openml-gas-drift": 1476,
        "openml-magic-telescope": 1120,
        "openml-mushroom": 24,
        "openml-page-blocks": 30,
        "openml-shuttle": 40685,
    }


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_folder_by_argument_and_by_variable_give_the_same(
    scenario: Any, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PFNTS_DATA", raising=False)
    by_argument = make(scenario.name, horizon=60, rng=np.random.default_rng(0), data=tables)
    monkeypatch.setenv("PFNTS_DATA", str(tables))
    by_variable = make(scenario.name, horizon=60, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(by_argument.contexts, by_variable.contexts)
    assert by_argument.n_arms == scenario.n_arms


def test_argument_goes_before_the_variable(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: Generator
) -> None:
    (tmp_path / "page-blocks.csv").write_text("x,y\n1,a\n2,b\n")
    monkeypatch.setenv("PFNTS_DATA", str(tables))
    assert make("openml-page-blocks", horizon=60, rng=rng, data=tmp_path).horizon == 2


def test_rounds_are_the_horizon_the_rows_or_10_000(data: Path, rng: Generator) -> None:
    assert make("openml-shuttle", horizon=60, rng=rng).horizon == 60
    assert make("openml-shuttle", horizon=20_000, rng=rng).horizon == 400
    assert make("openml-covertype", horizon=20_000, rng=rng).horizon == MOST_ROWS == 10_000


def test_every_round_is_another_row(data: Path, rng: Generator) -> None:
    contexts = make("openml-magic-telescope", horizon=300, rng=rng).contexts
    assert len(np.unique(contexts, axis=0)) == 300


def test_without_a_folder_the_pinned_id_is_fetched_once(
    fetched: list[dict[str, Any]], rng: Generator
) -> None:
    for _ in range(3):
        environment = make("openml-adult", horizon=10, rng=rng)
    assert [options["data_id"] for options in fetched] == [1590]
    assert environment.features == ("age", "sex=f", "sex=m")
    assert environment.arms == ("a", "b")
    assert np.isnan(environment.contexts).sum() == 1


def test_a_table_that_the_folder_lacks_is_fetched(
    fetched: list[dict[str, Any]], tmp_path: Path, rng: Generator
) -> None:
    make("openml-mushroom", horizon=10, rng=rng, data=tmp_path)
    assert [options["data_id"] for options in fetched] == [24]


@pytest.mark.usefixtures("no_network")
def test_a_missing_dataset_says_its_id_and_both_ways_to_supply_it(tmp_path: Path, rng: Generator) -> None:
    both = (
        r"openml-eeg-eye-state needs the dataset 1471 of OpenML, .*no route to host.* "
        r"Connect this machine to the network, or put the table into a folder as eeg-eye-state.csv.gz, .*"
        r"data=, --data or PFNTS_DATA \("
    )
    with pytest.raises(MissingDatasetError, match=both + r"no folder was named\)"):
        make("openml-eeg-eye-state", horizon=10, rng=rng)
    with pytest.raises(MissingDatasetError, match=both + r".* has none\)"):
        make("openml-eeg-eye-state", horizon=10, rng=rng, data=tmp_path)


@pytest.mark.usefixtures("no_network")
def test_a_folder_that_is_none_is_refused(
    tmp_path: Path, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=r"data must be a folder of tables, there is none at .*nowhere"):
        make("openml-adult", horizon=10, rng=rng, data=tmp_path / "nowhere")
    monkeypatch.setenv("PFNTS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(
        ValueError, match=r"PFNTS_DATA must be a folder of tables, there is none at .*nowhere"
    ):
        make("openml-adult", horizon=10, rng=rng)


@pytest.mark.skipif(REAL is None, reason="needs the real tables: set PFNTS_DATA")
@pytest.mark.parametrize(
    ("name", "rows", "largest"),
    [
        ("openml-adult", 10_000, 37_155 / 48_842),
        ("openml-covertype", 10_000, 283_301 / 581_012),
        ("openml-eeg-eye-state", 10_000, 8_257 / 14_980),
        ("openml-gas-drift", 10_000, 3_009 / 13_910),
        ("openml-magic-telescope", 10_000, 12_332 / 19_020),
        ("openml-mushroom", 8_124, 4_208 / 8_124),
        ("openml-page-blocks", 5_473, 4_913 / 5_473),
        ("openml-shuttle", 10_000, 45_586 / 58_000),
    ],
)
def test_real_tables_are_as_described(name: str, rows: int, largest: float, rng: Generator) -> None:
    environment = make(name, horizon=20_000, rng=rng, data=REAL)
    scenario = describe(name)
    assert environment.contexts.shape == (rows, scenario.n_features)
    assert environment.n_arms == scenario.n_arms
    assert environment.rewards.mean(axis=0).max() == pytest.approx(largest, abs=0.025)
    assert not np.isnan(environment.contexts).any()
