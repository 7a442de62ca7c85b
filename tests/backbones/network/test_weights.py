from __future__ import annotations

import json
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from pfnts.backbones.network import EmbeddedBackbone
from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.weights import export_weights, fingerprint


@pytest.fixture
def exported(small_network: CausalPFN, tmp_path: Path) -> Path:
    path = tmp_path / "weights.safetensors"
    export_weights(small_network, path, about={"steps": "7"})
    return path


def test_shipped_weights_are_small_and_half_precision() -> None:
    with as_file(files("pfnts.backbones.network") / "weights.safetensors") as path:
        assert path.stat().st_size <= 16e6
        with safe_open(path, framework="pt") as stored:
            assert {stored.get_tensor(name).dtype for name in stored.keys()} == {torch.float16}  # noqa: SIM118
            assert json.loads(stored.metadata()["architecture"])["quantiles"] >= 99


def test_exported_weights_predict_as_the_network_they_came_from(
    exported: Path, small_network: CausalPFN
) -> None:
    from pfnts.backbones.network.inference.sequence import EmbeddedSequence

    X = np.linspace(-1, 1, 40)[:, None]
    ours = EmbeddedSequence(small_network, X, X[:, 0]).means(X, [20, 40])
    theirs = EmbeddedBackbone(weights=exported).sequence(X, X[:, 0]).means(X, [20, 40])
    np.testing.assert_allclose(theirs, ours, atol=0.02)


def test_header_keeps_what_it_is_told(exported: Path) -> None:
    with safe_open(exported, framework="pt") as stored:
        assert stored.metadata()["steps"] == "7"


def test_overflowing_weights_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    network = CausalPFN()
    with torch.no_grad():
        network.head.out.weight[0, 0] = 1e6
    with pytest.raises(ValueError, match=r"range of float16.*head\.out\.weight"):
        export_weights(network, tmp_path / "weights.safetensors")
    assert list(tmp_path.iterdir()) == []


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def scrambled(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 40)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def missing(path: Path) -> None:
    path.unlink()


def without_header(path: Path) -> None:
    save_file({"a": torch.zeros(3)}, path)


def of_other_sizes(path: Path) -> None:
    save_file({"a": torch.zeros(3)}, path, metadata={"architecture": json.dumps({"layers": 1})})


def with_unknown_sizes(path: Path) -> None:
    save_file({"a": torch.zeros(3)}, path, metadata={"architecture": json.dumps({"depth": 1})})


@pytest.mark.parametrize(
    "damage", [truncated, scrambled, empty, missing, without_header, of_other_sizes, with_unknown_sizes]
)
def test_damaged_weights_are_named(exported: Path, damage: object) -> None:
    damage(exported)
    with pytest.raises(ValueError, match=r"weights must be a safetensors file.*weights\.safetensors"):
        EmbeddedBackbone(weights=exported)


def test_fingerprint_changes_with_the_content_only(exported: Path, small_network: CausalPFN) -> None:
    first = fingerprint(exported)
    assert len(first) == 16
    again = exported.with_name("again.safetensors")
    export_weights(small_network, again, about={"steps": "7"})
    assert fingerprint(again) == first
    content = bytearray(again.read_bytes())
    content[-1] ^= 1
    again.write_bytes(content)
    assert fingerprint(again) != first
