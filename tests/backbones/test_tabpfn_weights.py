"""Fetching the weights, from an archive made here: nothing is downloaded."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pfnts.backbones import tabpfn_weights

CONTENT = b"weights" * 1000


@pytest.fixture(autouse=True)
def small_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tabpfn_weights, "SIZE", len(CONTENT))
    monkeypatch.setattr(tabpfn_weights, "SHA256", hashlib.sha256(CONTENT).hexdigest())


def member(content: bytes, name: str = tabpfn_weights.MEMBER) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    return entry, content


def link(name: str = tabpfn_weights.MEMBER) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
    return entry, b""


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> Callable[[Path], None]:
    """A download that brings an archive of these members."""

    def download(folder: Path) -> None:
        with tarfile.open(folder / tabpfn_weights.ARCHIVE, "w:gz") as files:
            for entry, content in members:
                files.addfile(entry, io.BytesIO(content))

    return download


def files_in_the_cache() -> list[str]:
    folder = tabpfn_weights.weights_path().parent
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_only_the_weights_leave_the_archive() -> None:
    download = archive(member(b"code", "tabpfn_time_series-0.1.3/setup.py"), member(CONTENT))
    path = tabpfn_weights.fetch(download=download)
    assert path == tabpfn_weights.weights_path()
    assert path.read_bytes() == CONTENT
    assert files_in_the_cache() == [tabpfn_weights.FILE]


def test_weights_at_hand_are_not_downloaded_again() -> None:
    tabpfn_weights.fetch(download=archive(member(CONTENT)))
    assert tabpfn_weights.fetch(download=lambda _: pytest.fail("downloaded again")).is_file()


def test_damaged_weights_are_replaced() -> None:
    path = tabpfn_weights.fetch(download=archive(member(CONTENT)))
    path.write_bytes(CONTENT[::-1])
    tabpfn_weights.fetch(download=archive(member(CONTENT)))
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([member(CONTENT[::-1])], "the weights must have the SHA-256 sum"),
        ([member(CONTENT + b"!")], r"must be a file of 7,000 bytes, got 7,001"),
        ([link()], r"must be a file of 7,000 bytes, got 0"),
        ([member(CONTENT, "elsewhere.ckpt")], "must be the source distribution, it is not"),
    ],
)
def test_anything_else_is_refused_and_leaves_no_trace(
    members: list[tuple[tarfile.TarInfo, bytes]], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        tabpfn_weights.fetch(download=archive(*members))
    assert files_in_the_cache() == []


def test_archive_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="must be the source distribution, it is not"):
        tabpfn_weights.fetch(download=lambda folder: (folder / tabpfn_weights.ARCHIVE).write_bytes(b"?"))


def test_pip_checks_the_sum_of_the_archive_and_builds_from_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    tabpfn_weights.pip_download(tmp_path)
    assert "--require-hashes" in ran[0]
    requirement = Path(ran[0][ran[0].index("-r") + 1]).read_text()
    assert requirement.startswith("tabpfn-time-series==0.1.3 --hash=sha256:")


def test_pip_s_last_word_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: slow\nERROR: no such index\n\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(ValueError, match=r"pip must be able to download .*it failed: ERROR: no such index"):
        tabpfn_weights.pip_download(tmp_path)


def test_cache_is_where_the_platform_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tabpfn_weights.user_cache() == tmp_path / "cache" / "pfnts"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for platform, folder in [("linux", ".cache/pfnts"), ("darwin", "Library/Caches/pfnts")]:
        monkeypatch.setattr("sys.platform", platform)
        assert tabpfn_weights.user_cache() == tmp_path / folder
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert tabpfn_weights.user_cache() == tmp_path / "local" / "pfnts"
