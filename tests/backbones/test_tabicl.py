"""TabICL against its own estimator, on a small network with random weights."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts import PFNTS, simulate
from pfnts.backbones import load
from pfnts.environments import make

tabicl = pytest.importorskip("tabicl")
module = import_module("pfnts.backbones.tabicl")

SIZES = [2, 5, 40]


def table(rng: Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.standard_normal((40, 3))
    X[3, 1] = np.nan
    return X, 5 + 2 * X[:, 0] + 0.3 * rng.standard_normal(40), rng.standard_normal((9, 3))


@pytest.mark.parametrize("cache", ["kv", "repr"])
@pytest.mark.parametrize("n_estimators", [1, 4])
def test_cached_answers_are_those_of_the_package(
    tabicl_checkpoint: Path, rng: Generator, cache: str, n_estimators: int
) -> None:
    X, y, queries = table(rng)
    backbone = load("tabicl", weights=tabicl_checkpoint, n_estimators=n_estimators, cache=cache)
    sequence = backbone.sequence(X, y)
    means = sequence.means(queries, SIZES)
    levels = [0.05, 0.5, 0.95]
    for size, mean in zip(SIZES, means, strict=True):
        estimator = tabicl.TabICLRegressor(
            n_estimators=n_estimators, model_path=tabicl_checkpoint, device="cpu"
        ).fit(X[:size], y[:size])
        close = {"rtol": 0, "atol": 1e-3 * y[:size].std()}
        np.testing.assert_allclose(mean, estimator.predict(queries), **close)
        quantiles = estimator.predict(queries, output_type="quantiles", alphas=levels)
        np.testing.assert_allclose(sequence.quantiles(queries, size, levels), quantiles.T, **close)


def test_mean_is_the_average_of_the_quantiles(tabicl_checkpoint: Path, rng: Generator) -> None:
    X, y, queries = table(rng)
    sequence = load("tabicl", weights=tabicl_checkpoint).sequence(X, y)
    quantiles = sequence.quantiles(queries, 40, np.arange(1, 1000) / 1000)
    np.testing.assert_allclose(sequence.means(queries, [40])[0], quantiles.mean(axis=0))


def test_network_is_loaded_once_per_process(
    tabicl_checkpoint: Path, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, queries = table(rng)
    load("tabicl", weights=tabicl_checkpoint).sequence(X, y).means(queries, SIZES)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("loaded the network again"))
    load("tabicl", weights=tabicl_checkpoint).sequence(X, y).means(queries, SIZES)


def test_network_does_not_hold_on_to_a_fit(tabicl_checkpoint: Path, rng: Generator) -> None:
    X, y, queries = table(rng)
    backbone = load("tabicl", weights=tabicl_checkpoint)
    backbone.sequence(X, y).means(queries, SIZES)
    assert not backbone._network.has_cache


@pytest.mark.parametrize(("cache", "floats"), [("kv", 2 * 2 * 32), ("repr", 32)])
def test_cache_counts_what_a_cache_takes(
    tabicl_checkpoint: Path, rng: Generator, cache: str, floats: int
) -> None:
    # A row takes keys and values of 32 floats in both blocks of the last stage, or 32 floats before them.
    X, y, queries = table(rng)
    backbone = load("tabicl", weights=tabicl_checkpoint, cache=cache)
    sequence = backbone.sequence(X, y)
    sequence.means(queries, [20])
    small = backbone._fits.held
    sequence.means(queries, [40])
    assert backbone._fits.held - 2 * small == 20 * floats * 4


def test_nothing_is_kept_without_memory_for_it(tabicl_checkpoint: Path, rng: Generator) -> None:
    X, y, queries = table(rng)
    kept, unkept = (load("tabicl", weights=tabicl_checkpoint, cache_gb=gb) for gb in (1.0, 0.0))
    means = [backbone.sequence(X, y).means(queries, SIZES) for backbone in (kept, unkept)]
    np.testing.assert_array_equal(*means)
    assert unkept._fits.held == 0


def test_constant_targets_keep_their_size_as_scale(tabicl_checkpoint: Path, rng: Generator) -> None:
    X, _, queries = table(rng)
    backbone = load("tabicl", weights=tabicl_checkpoint)
    small, large = (backbone.sequence(X, np.full(40, c)).means(queries, [40]) for c in (1e-6, 1e6))
    np.testing.assert_allclose(small * 1e12, large, rtol=1e-4)


def test_policy_decides_the_same_with_and_without_prefetching(tabicl_checkpoint: Path) -> None:
    environment = make("friedman", horizon=40, rng=np.random.default_rng(0))
    backbone = load("tabicl", weights=tabicl_checkpoint)
    arms = [
        simulate(
            PFNTS(arms=environment.n_arms, backbone=backbone),
            environment,
            rng=np.random.default_rng(1),
            prefetch=prefetch,
        ).arms
        for prefetch in (0, 16)
    ]
    np.testing.assert_array_equal(*arms)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cache": "all"}, 'cache must be "kv" or "repr", got \'all\''),
        ({"n_estimators": 0}, "n_estimators must be at least 1, got 0"),
        ({"cache_gb": -1.0}, r"cache_gb must be finite and not negative, got -1\.0"),
        ({"weights": "nowhere.ckpt"}, r"weights must be a file, nowhere\.ckpt is not there"),
    ],
)
def test_bad_options_are_named(tabicl_checkpoint: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        load("tabicl", **{"weights": tabicl_checkpoint, **options})


def test_other_files_are_no_weights(tabicl_checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.ckpt"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"weights must be a TabICL regressor, .*other\.ckpt is not one$"):
        load("tabicl", weights=path)
    config = {**torch.load(tabicl_checkpoint, weights_only=True)["config"], "max_classes": 10}
    torch.save({"config": config, "state_dict": module.TabICL(**config).state_dict()}, path)
    with pytest.raises(
        ValueError, match=r"weights must be a TabICL regressor, .*other\.ckpt is a classifier"
    ):
        load("tabicl", weights=path)


def test_replaced_weights_are_read_again(tabicl_checkpoint: Path, tmp_path: Path, rng: Generator) -> None:
    X, y, queries = table(rng)
    path = tmp_path / "changing.ckpt"
    path.write_bytes(tabicl_checkpoint.read_bytes())
    before = load("tabicl", weights=path)
    changed = torch.load(path, weights_only=True)
    changed["state_dict"] = {key: 1.5 * value for key, value in changed["state_dict"].items()}
    torch.save(changed, path)
    after = load("tabicl", weights=path)
    assert before.fingerprint != after.fingerprint
    means = [backbone.sequence(X, y).means(queries, [40]) for backbone in (before, after)]
    assert not np.allclose(*means)


def test_hub_that_cannot_be_reached_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> str:
        raise OSError("no route")

    monkeypatch.setattr(module, "hf_hub_download", unreachable)
    with pytest.raises(
        ValueError, match=r"weights must be given where the Hugging Face hub .*no route.*pass"
    ):
        load("tabicl")
    with pytest.raises(ValueError, match=r"weights must be given, or tabicl-regressor-v2.*download is off"):
        load("tabicl", download=False)


def test_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tabicl", None)
    monkeypatch.delitem(sys.modules, "pfnts.backbones.tabicl")
    with pytest.raises(ImportError, match=r'pip install "pfnts\[tabicl\]"'):
        load("tabicl")
