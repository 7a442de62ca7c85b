"""TabPFN v2 against its own estimator, where its weights are at hand."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.backbones import load
from pfnts.backbones.tabpfn_weights import weights_path

SIZES = [2, 5, 60]
LEVELS = [0.05, 0.5, 0.95]


@pytest.fixture
def weights() -> Path:
    pytest.importorskip("tabpfn")
    if not weights_path().is_file():
        pytest.skip("the TabPFN weights are not in the user cache; `make test-weights` fetches them")
    return weights_path()


def table(rng: Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.standard_normal((60, 3))
    X[3, 1] = np.nan
    return X, 5 + 2 * X[:, 0] + 0.3 * rng.standard_normal(60), rng.standard_normal((9, 3))


@pytest.mark.parametrize("n_estimators", [1, 2])
def test_cached_answers_are_those_of_the_package(weights: Path, rng: Generator, n_estimators: int) -> None:
    from tabpfn import TabPFNRegressor

    X, y, queries = table(rng)
    sequence = load("tabpfn", n_estimators=n_estimators).sequence(X, y)
    means = sequence.means(queries, SIZES)
    for size, mean in zip(SIZES, means, strict=True):
        estimator = TabPFNRegressor(
            n_estimators=n_estimators, model_path=weights, device="cpu", random_state=0
        ).fit(X[:size], y[:size])
        close = {"rtol": 0, "atol": 1e-3 * y[:size].std()}
        np.testing.assert_allclose(mean, estimator.predict(queries), **close)
        quantiles = estimator.predict(queries, output_type="quantiles", quantiles=LEVELS)
        np.testing.assert_allclose(sequence.quantiles(queries, size, LEVELS), np.stack(quantiles), **close)


def test_quantiles_of_bars_are_those_of_the_package(rng: Generator) -> None:
    pytest.importorskip("tabpfn")
    from tabpfn.architectures.shared.bar_distribution import FullSupportBarDistribution

    from pfnts.backbones.tabpfn import bar_quantiles

    borders = torch.from_numpy(np.sort(rng.standard_normal(12)))
    logits = torch.from_numpy(3 * rng.standard_normal((20, 11)))
    logits[0, 0] = logits[1, -1] = 20.0  # all mass in a tail
    levels = torch.tensor([0.999, 0.001, 0.1, 0.5, 0.9], dtype=torch.float64)
    criterion = FullSupportBarDistribution(borders)
    slow = torch.stack([criterion.icdf(logits, float(level)) for level in levels])
    torch.testing.assert_close(bar_quantiles(logits, borders, levels), slow)


def test_network_is_loaded_once_per_process(
    weights: Path, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, queries = table(rng)
    load("tabpfn").sequence(X, y).means(queries, SIZES)
    module = import_module("tabpfn.base")
    monkeypatch.setattr(
        module, "load_model_criterion_config", lambda **_: pytest.fail("loaded the network again")
    )
    load("tabpfn", weights=weights).sequence(X, y).means(queries, SIZES)


def test_cache_counts_keys_and_values(weights: Path, rng: Generator) -> None:
    from pfnts.backbones.tabpfn import OVERHEAD

    X, y, queries = table(rng)
    backbone = load("tabpfn")
    sequence = backbone.sequence(X, y)
    sequence.means(queries, [60])
    # 12 layers keep one head of 32 floats for keys and one for values, in each column of tokens.
    columns, rest = divmod(backbone._fits.held - OVERHEAD, 60 * 12 * 2 * 32 * 4)
    assert rest == 0
    assert columns > 1


def test_targets_all_the_same_are_predicted_to_stay_so(weights: Path, rng: Generator) -> None:
    X, _, queries = table(rng)
    sequence = load("tabpfn").sequence(X, np.full(60, 0.25))
    assert (sequence.means(queries, [1, 60]) == 0.25).all()
    assert (sequence.quantiles(queries, 60, LEVELS) == 0.25).all()


def test_other_files_are_no_weights(tmp_path: Path) -> None:
    pytest.importorskip("tabpfn")
    path = tmp_path / "other.ckpt"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"weights must be a TabPFN regressor, .*other\.ckpt is not one$"):
        load("tabpfn", weights=path)


def test_missing_weights_say_how_to_fetch_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tabpfn")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ValueError, match=r"weights must be a file, .* run `pfnts weights tabpfn`"):
        load("tabpfn")
    with pytest.raises(
        ValueError, match=r"weights must be a file, nowhere\.ckpt is not there; .*leave it out"
    ):
        load("tabpfn", weights="nowhere.ckpt")


def test_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tabpfn", None)
    monkeypatch.delitem(sys.modules, "pfnts.backbones.tabpfn", raising=False)
    with pytest.raises(ImportError, match=r'pip install "pfnts\[tabpfn\]"'):
        load("tabpfn")
