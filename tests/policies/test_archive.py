"""Files: those of version 0.2, round trips, damage, forgeries, and what saving does to a folder."""

from __future__ import annotations

import errno
import json
import os
import stat
import struct
import sys
import threading
import time
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfnts import PFNTS, Memory, Traffic
from pfnts.backbones import LinearBackbone
from pfnts.events import Observed
from pfnts.events.event import to_dict
from pfnts.policies import LinTS, Policy, file, make, names
from pfnts.policies.registry import load
from pfnts.posterior import SubCLT

SAVED = Path(__file__).parent / "saved"


def trained(policy: Policy, n: int = 40) -> Policy:
    rng = np.random.default_rng(0)
    for t in range(n):
        context = {"age": float(rng.uniform(20, 70)), "vip": bool(rng.integers(2)), "plan": "fpt"[t % 3]}
        decision = policy.decide(context, rng=rng)
        if t % 5:
            policy.update(decision, reward=rng.normal())
    return policy


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "policy"
    trained(make("pfn-ts", arms=["a", "b"], backbone="linear")).save(path)
    return path


def forged(path: Path, change: Callable[[dict[str, Any], list[Any]], Any]) -> Path:
    """Rewrite a file of format 2 after a change of its header and events."""
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
        events = [json.loads(line) for line in archive.read("events.jsonl").splitlines()]
    change(header, events)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("events.jsonl", "".join(json.dumps(event) + "\n" for event in events))
    return path


PROBES = [
    {"age": 30.0, "vip": True, "plan": "free"},
    {"age": 61.5, "vip": False, "plan": "paid"},
    {"age": None, "vip": None, "plan": "trial"},
]


def evil(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that must not be imported."""
    (folder / "evil.py").write_text("raise SystemExit('imported')\nclass B: pass\n")
    monkeypatch.syspath_prepend(str(folder))


# Files of version 0.2.


@pytest.mark.parametrize("name", sorted(path.stem for path in SAVED.glob("0.2-*.policy")))
def test_a_file_of_version_0_2_loads_with_its_log_and_decides(name: str, tmp_path: Path) -> None:
    policy = load(SAVED / f"{name}.policy")
    assert len(policy.events) > 60
    rng = np.random.default_rng(5)
    found = [policy.decide({"age": 30.0 + i, "plan": "x"}, rng=rng) for i in range(5)]
    if policy.name in ("lin-ts", "lin-ucb", "ts", "rf-ts", "epsilon-greedy", "uniform"):
        expected = json.loads((SAVED / "0.2-decisions.json").read_text())[name.removeprefix("0.2-")]
        assert [str(decision.arm) for decision in found] == [arm for arm, _ in expected]
        for decision, (_, shares) in zip(found, expected, strict=True):
            np.testing.assert_allclose(decision.propensities, shares, atol=1e-9)
    policy.save(tmp_path / "again")
    again = load(tmp_path / "again")
    one, two = (p.decide({"age": 50.0, "plan": "y"}, rng=np.random.default_rng(1)) for p in (policy, again))
    np.testing.assert_array_equal(one.propensities, two.propensities)


# Files of today.


def test_round_trip_keeps_settings_labels_and_log(tmp_path: Path) -> None:
    from pfnts.layouts import Adaptive

    policy = PFNTS(
        ["x", 7],
        encoding=Adaptive(switch_times=(20, 40), arm_threshold=1),
        backbone="linear",
        estimator="shrunk(prior_dof=3.0,floor=0.2,base=1.5)",
        exploration=0.7,
        memory=Memory(refresh=1.1),
        traffic=Traffic(warmup=4, explore=0.125),
    )
    rng = np.random.default_rng(0)
    for t in range(30):
        decision = policy.decide(
            {"age": float(t), "plan": f"plan {t % 3}", 'ü\u2028"': None if t % 4 else 1.5},
            rng=rng,
            eligible=[True, True] if t % 2 else [False, True],
            id=f"visit {t}\n" if t % 3 else None,
        )
        if t % 2:
            policy.update(decision, reward=True)
    policy.add_arm("7")
    policy.remove_arm("x")
    policy.save(tmp_path / "saved")
    loaded = PFNTS.load(str(tmp_path / "saved"))
    assert loaded.settings == policy.settings
    assert loaded.arms == policy.arms == (7, "7")
    assert list(map(to_dict, loaded.events)) == list(map(to_dict, policy.events))
    assert loaded.schema == policy.schema
    loaded.save(tmp_path / "again")
    with zipfile.ZipFile(tmp_path / "saved") as one, zipfile.ZipFile(tmp_path / "again") as two:
        for member in ("header.json", "events.jsonl"):
            assert one.read(member) == two.read(member)
        assert json.loads(one.read("header.json"))["version"] == 2


@pytest.mark.parametrize("schema", [None, {"age": "numeric"}])
@pytest.mark.parametrize("name", ["pfn-ts", "lin-ts", "lin-ucb", "ts", "uniform"])
def test_an_untouched_policy_can_be_saved(name: str, schema: Any, tmp_path: Path) -> None:
    options = {"backbone": "linear"} if name == "pfn-ts" else {}
    policy = make(name, arms=3, schema=schema, explore=0.25, **options)
    policy.save(tmp_path / "saved")
    loaded = type(policy).load(tmp_path / "saved")
    assert loaded.traffic.explore == 0.25
    one, two = (p.decide({"age": 3}, rng=np.random.default_rng(0)) for p in (policy, loaded))
    assert one.to_dict() == two.to_dict()


def test_objects_are_not_saved_but_asked_for(tmp_path: Path) -> None:
    class Own(LinearBackbone):
        name = "own"

    policy = trained(PFNTS(["a", "b"], backbone=Own(), estimator=SubCLT(base=1.5), encoding="joint"))
    policy.save(tmp_path / "saved")
    with pytest.raises(ValueError, match="backbone must be passed to load"):
        PFNTS.load(tmp_path / "saved")
    loaded = PFNTS.load(tmp_path / "saved", backbone=Own())
    one, two = (p.posterior(PROBES[0]) for p in (policy, loaded))
    np.testing.assert_array_equal(one.variance, two.variance)


def test_a_backbone_with_options_of_its_own_is_not_taken_for_the_plain_one(tmp_path: Path) -> None:
    policy = trained(PFNTS(["a", "b"], backbone=LinearBackbone(precision=100.0)))
    policy.save(tmp_path / "saved")
    try:
        loaded = PFNTS.load(tmp_path / "saved")
    except ValueError as error:
        assert "backbone must be passed" in str(error)  # noqa: PT017
    else:
        np.testing.assert_array_equal(loaded.posterior(PROBES[0]).mean, policy.posterior(PROBES[0]).mean)


def test_other_weights_than_at_saving_are_a_warning(tmp_path: Path) -> None:
    class Fingerprinted(LinearBackbone):
        def __init__(self, fingerprint: str) -> None:
            super().__init__()
            object.__setattr__(self, "fingerprint", fingerprint)

    PFNTS(2, backbone=Fingerprinted("one")).save(tmp_path / "saved")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PFNTS.load(tmp_path / "saved", backbone=Fingerprinted("one"))
    with pytest.warns(UserWarning, match=r"other weights \(two\) than when the policy was saved \(one\)"):
        PFNTS.load(tmp_path / "saved", backbone=Fingerprinted("two"))


def test_a_file_of_another_policy_is_refused(saved: Path) -> None:
    with pytest.raises(ValueError, match=r"must be a saved 'lin-ts' policy .* of 'pfn-ts'"):
        LinTS.load(saved)


def test_missing_file_is_not_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PFNTS.load(tmp_path / "nowhere")


# Damage.


def refused(path: Path) -> None:
    with pytest.raises(ValueError, match="path must be a saved"):
        PFNTS.load(path)


def test_every_truncation_is_one_clear_error(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in [*range(0, len(whole), 37), len(whole) - 1]:
        saved.write_bytes(whole[:length])
        refused(saved)


def test_flipped_bytes_are_an_error_or_change_nothing(saved: Path) -> None:
    whole = saved.read_bytes()
    untouched = list(map(to_dict, PFNTS.load(saved).events))
    rng, errors = np.random.default_rng(0), 0
    # Every byte of the directory at the end and of the first local header, and many in between.
    places = [*range(80), *range(80, len(whole) - 300, 29), *range(len(whole) - 300, len(whole))]
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= int(rng.integers(1, 256))
        saved.write_bytes(bytes(flipped))
        try:
            loaded = PFNTS.load(saved)
        except ValueError as error:
            assert "must" in str(error)  # noqa: PT017
            errors += 1
        else:
            assert list(map(to_dict, loaded.events)) == untouched, place
    assert errors > 0.5 * len(places)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"none of this is an archive",
        b"PK\x05\x06" + bytes(18),
        b"PK\x03\x04" + bytes(100),
        b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0),
    ],
)
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    refused(tmp_path / "file")


def test_arrays_of_others_and_pickles_are_refused(tmp_path: Path) -> None:
    for arrays in (
        {"weights": np.ones(3)},
        {"header": np.array([{"format": "pfnts-policy"}], dtype=object)},
        {"header": np.ones(4)},
        {"header": np.frombuffer(b"[" * 50_000, np.uint8)},
        {"header": np.frombuffer(b"[1, 2]", np.uint8)},
    ):
        with (tmp_path / "file").open("wb") as file:
            np.savez(file, **arrays)
        refused(tmp_path / "file")


# Forgeries.


def reward_event(events: list[Any]) -> dict[str, Any]:
    return next(event for event in events if event["kind"] == "rewarded")


FORGERIES: dict[str, Callable[[dict[str, Any], list[Any]], Any]] = {
    "evil backbone": lambda h, e: h["settings"].update(backbone="evil.B"),
    "backbone an object": lambda h, e: h["settings"].update(backbone={"name": "evil.B"}),
    "evil encoding": lambda h, e: h["settings"].update(encoding={"name": "evil.B"}),
    "evil encoding's name": lambda h, e: h["settings"].update(encoding="evil.B"),
    "evil estimator": lambda h, e: h["settings"].update(estimator="evil.B(x=1)"),
    "estimator a number": lambda h, e: h["settings"].update(estimator=3),
    "estimator endless": lambda h, e: h["settings"].update(estimator="subclt(base=1e308)"),
    "estimator coupled": lambda h, e: h["settings"].update(estimator="subclt(coupled=true)"),
    "exploration negative": lambda h, e: h["settings"].update(exploration=-1),
    "refresh one": lambda h, e: h["settings"].update(refresh=1.0),
    "refresh a text": lambda h, e: h["settings"].update(refresh="often"),
    "warmup not a number": lambda h, e: h["settings"].update(warmup=float("nan")),
    "warmup null": lambda h, e: h["settings"].update(warmup=None),
    "switch times descending": lambda h, e: h["settings"]["encoding"].update(switch_times=[5, 3]),
    "switch times of texts": lambda h, e: h["settings"]["encoding"].update(switch_times=["a", "b"]),
    "threshold of arms a text": lambda h, e: h["settings"]["encoding"].update(arm_threshold="x"),
    "setting of nobody": lambda h, e: h["settings"].update(colour="red"),
    "settings a list": lambda h, e: h.update(settings=[1]),
    "settings missing": lambda h, e: h.pop("settings"),
    "no backbone said": lambda h, e: h["settings"].pop("backbone"),
    "policy missing": lambda h, e: h.pop("policy"),
    "version 3": lambda h, e: h.update(version=3),
    "version a text": lambda h, e: h.update(version="2"),
    "format of others": lambda h, e: h.update(format="other"),
    "a million arms by a number": lambda h, e: h.update(arms=1_000_000),
    "arms a text": lambda h, e: h.update(arms="ab"),
    "arms twice": lambda h, e: h.update(arms=["a", "a"]),
    "arms none": lambda h, e: h.update(arms=[]),
    "arms of truths": lambda h, e: h.update(arms=[True, False]),
    "other arms than the log's": lambda h, e: h.update(arms=["x", "y"]),
    "slots a billion": lambda h, e: h.update(
        schema='[{"name": "x", "kind": "categorical", "categories": [], "slots": 1000000000}]'
    ),
    "schema of other columns": lambda h, e: h.update(
        schema='[{"name": "x", "kind": "numeric", "categories": [], "slots": 1}]'
    ),
    "schema deep": lambda h, e: h.update(schema="[" * 100_000),
    "schema a list": lambda h, e: h.update(schema=[]),
    "reward of nobody": lambda h, e: reward_event(e).update(id="nobody"),
    "reward before its decision": lambda h, e: e.insert(0, dict(reward_event(e))),
    "reward twice": lambda h, e: e.append(dict(reward_event(e))),
    "reward not a number": lambda h, e: reward_event(e).update(value=float("nan")),
    "reward infinite": lambda h, e: reward_event(e).update(value=float("inf")),
    "reward huge": lambda h, e: reward_event(e).update(value=1e200),
    "reward a text": lambda h, e: reward_event(e).update(value="1.5"),
    "reward a truth": lambda h, e: reward_event(e).update(value=True),
    "reward of many digits": lambda h, e: reward_event(e).update(value=10**400),
    "id twice": lambda h, e: e.append(dict(e[0])),
    "id a number": lambda h, e: e[0].update(id=0),
    "decided for nobody": lambda h, e: e[0].update(arm="z"),
    "decided for a truth": lambda h, e: e[0].update(arm=True),
    "decided for a list": lambda h, e: e[0].update(arm=["a"]),
    "propensities of others": lambda h, e: e[0].update(propensities=[["z", 1.0]]),
    "propensities beyond one": lambda h, e: e[0].update(propensities=[["a", 7.0], ["b", -6.0]]),
    "propensities not finite": lambda h, e: e[0].update(propensities=[["a", float("nan")], ["b", 1.0]]),
    "propensities a mapping": lambda h, e: e[0].update(propensities={"a": 1.0}),
    "eligible of others": lambda h, e: e[0].update(eligible=["z"]),
    "eligible a number": lambda h, e: e[0].update(eligible=3),
    "reason a list": lambda h, e: e[0].update(reason=["warmup"]),
    "context of other columns": lambda h, e: e[3].update(context={"x": 1}),
    "context without names": lambda h, e: e[3].update(context=[1, 2, 3]),
    "context a text": lambda h, e: e[3].update(context="age"),
    "context infinite": lambda h, e: e[3]["context"].update(age=float("inf")),
    "context deep": lambda h, e: e[3]["context"].update(age=[[[[1]]]]),
    "kind of nobody": lambda h, e: e[0].update(kind="evil"),
    "kind a list": lambda h, e: e[0].update(kind=["decided"]),
    "encoded given": lambda h, e: e[0].update(encoded=[1.0]),
    "event a list": lambda h, e: e.insert(3, [1, 2]),
    "event null": lambda h, e: e.insert(3, None),
    "arm added twice": lambda h, e: e.append({"kind": "arm_added", "arm": "a"}),
    "arm of nobody removed": lambda h, e: e.append({"kind": "arm_removed", "arm": "z"}),
    "all arms removed": lambda h, e: e.extend({"kind": "arm_removed", "arm": arm} for arm in "ab"),
    "row of an arm removed": lambda h, e: e.extend(
        [
            {"kind": "arm_removed", "arm": "a"},
            {"kind": "observed", "context": e[0]["context"], "arm": "a", "value": 1},
        ]
    ),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_forgeries_are_refused(
    how: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil(tmp_path, monkeypatch)
    forged(saved, FORGERIES[how])
    start = time.process_time()
    with pytest.raises(ValueError, match="must"):
        PFNTS.load(saved)
    assert time.process_time() - start < 5
    assert "evil" not in sys.modules


def test_options_of_estimators_that_were_removed(saved: Path) -> None:
    text = "shrunk(prior_dof=30.0,floor=0.01,tails={},base=2.0,coupled={})"
    before = PFNTS.load(saved, estimator="shrunk").posterior(PROBES[0])
    forged(saved, lambda h, e: h["settings"].update(estimator=text.format("gaussian", "false")))
    np.testing.assert_array_equal(PFNTS.load(saved).posterior(PROBES[0]).variance, before.variance)
    for tails, coupled, option in (("student", "false", "tails"), ("gaussian", "true", "coupled")):
        forged(saved, lambda h, e, t=tails, c=coupled: h["settings"].update(estimator=text.format(t, c)))
        with pytest.raises(ValueError, match=f"must not have the option '{option}'"):
            PFNTS.load(saved)
        after = PFNTS.load(saved, estimator="shrunk").posterior(PROBES[0])
        np.testing.assert_array_equal(after.variance, before.variance)


def test_a_file_rewritten_without_a_change_still_loads(saved: Path) -> None:
    PFNTS.load(forged(saved, lambda header, events: None))


@pytest.mark.parametrize("name", [name for name in names() if name != "pfn-ts"])
def test_forged_settings_of_every_policy_are_refused(name: str, tmp_path: Path) -> None:
    from pfnts.policies.registry import policy_class

    options = {"backbone": "linear"} if name == "epsilon-greedy" else {}
    try:
        policy = make(name, arms=None if name == "lin-ucb-features" else 2, **options)
    except ImportError as error:
        pytest.skip(str(error))
    if policy.settings is None:
        pytest.skip("cannot be saved")
    for change in (
        lambda h, e: h["settings"].update(warmup=-1),
        lambda h, e: h["settings"].update(warmup="5"),
        lambda h, e: h["settings"].update(colour="red"),
        lambda h, e: h.update(settings={"colour": 1}),
        lambda h, e: h.update(settings=None),
    ):
        policy.save(tmp_path / "policy")
        forged(tmp_path / "policy", change)
        with pytest.raises(ValueError, match="must"):
            policy_class(name).load(tmp_path / "policy")  # type: ignore[attr-defined]


def little_memory(call: Callable[[], Any], most: int = 150 << 20) -> None:
    tracemalloc.start()
    try:
        call()
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


def bomb(path: Path, member: str, chunk: bytes, times: int) -> None:
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        archive.open(member, "w", force_zip64=True) as file,
    ):
        for _ in range(times):
            file.write(chunk)


def test_members_of_other_names_are_not_unpacked(saved: Path) -> None:
    before = list(map(to_dict, PFNTS.load(saved).events))
    bomb(saved, "extra.npy", bytes(1 << 20), 100)
    start = time.process_time()
    little_memory(lambda: PFNTS.load(saved))
    assert list(map(to_dict, PFNTS.load(saved).events)) == before
    assert time.process_time() - start < 5


LINE = b'{"kind": "observed", "context": [0], "arm": 0, "value": 0}\n'


@pytest.mark.parametrize(
    ("member", "chunk", "times"),
    [
        ("header.json", b" " * (1 << 20), 60),
        ("header.json", b"[" * (1 << 20), 5),
        ("events.jsonl", b" " * (1 << 20), 60),
        ("events.jsonl", b"[" * (1 << 20), 5),
        ("events.jsonl", LINE * (1 << 14), 50),
        ("events.jsonl", b"\n" * (1 << 20), 60),
    ],
)
def test_zip_bombs_of_today_are_refused(member: str, chunk: bytes, times: int, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    make("pfn-ts", arms=1, backbone="linear").save(path)
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist() if name != member}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in kept.items():
            archive.writestr(name, content)
    bomb(path, member, chunk, times)
    assert path.stat().st_size < 5 << 20
    start = time.process_time()
    little_memory(lambda: refused(path))
    assert time.process_time() - start < 10


def test_the_most_repetitive_log_can_be_read_again(tmp_path: Path) -> None:
    # What is written must never look like a bomb.
    path, events = tmp_path / "policy", [Observed([0.0], 0, 0.0)] * 100_000
    file.write(path, header={"policy": "ts", "arms": [0], "schema": None, "settings": {}}, events=events)
    assert path.stat().st_size < 60_000
    assert len(file.read(path, policy="ts").events) == 100_000


def test_a_damaged_file_leaves_the_process_as_it_was(saved: Path) -> None:
    recursion, modules = sys.getrecursionlimit(), set(sys.modules)
    forged(saved, FORGERIES["schema deep"])
    with pytest.raises(ValueError, match="must"):
        PFNTS.load(saved)
    assert sys.getrecursionlimit() == recursion
    assert not {name for name in set(sys.modules) - modules if not name.startswith(("pfnts", "encodings"))}


# Saving.


def test_the_mode_of_a_file_is_kept(saved: Path) -> None:
    for mode in (0o600, 0o640, 0o664):
        saved.chmod(mode)
        LinTS(2).save(saved)
        assert stat.S_IMODE(saved.stat().st_mode) == mode
    fresh = saved.parent / "fresh"
    before = os.umask(0o027)
    try:
        LinTS(2).save(fresh)
    finally:
        os.umask(before)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "where", ["os.fsync", "os.replace", "json.dumps", "zipfile.ZipFile.writestr", "os.chmod"]
)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    where: str, error: BaseException, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = saved.read_bytes()

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    policy = trained(LinTS(["a", "b"]))
    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(type(error)):
            policy.save(saved)
        with pytest.raises(type(error)):
            policy.save(saved.parent / "new")
    assert saved.read_bytes() == before
    assert [entry.name for entry in saved.parent.iterdir()] == [saved.name]
    policy.save(saved)


def test_a_disk_that_is_full_half_way_leaves_nothing(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, written = saved.read_bytes(), 0
    real = os.fdopen

    class Full:
        def __init__(self, file: Any) -> None:
            self._file = file

        def write(self, data: bytes) -> int:
            nonlocal written
            written += len(data)
            if written > 600:
                raise OSError(errno.ENOSPC, "No space left on device")
            return int(self._file.write(data))

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *args: object) -> None:
            self._file.close()

    monkeypatch.setattr(os, "fdopen", lambda *args, **kwargs: Full(real(*args, **kwargs)))
    with pytest.raises(OSError, match="No space left"):
        trained(LinTS(["a", "b"])).save(saved)
    assert written > 600
    assert saved.read_bytes() == before
    assert [entry.name for entry in saved.parent.iterdir()] == [saved.name]


def test_planted_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("policy", "policy.tmp", ".policy.tmp", "policy~", ".pfnts-"):
        (folder / name).symlink_to(victim)
    LinTS(2).save(folder / "policy")
    assert victim.read_text() == "precious"
    assert not (folder / "policy").is_symlink()
    LinTS.load(folder / "policy")


def test_a_file_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file or directory"):
        LinTS(2).save(tmp_path / "nowhere" / "policy")
    with pytest.raises(OSError, match="directory"):
        LinTS(2).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_savers_beside_each_other_leave_one_whole_file(tmp_path: Path) -> None:
    policies = [trained(LinTS(["a", "b"]), n=20 + 30 * i) for i in range(4)]
    sizes, errors = {len(policy.events) for policy in policies}, []
    path = tmp_path / "policy"
    policies[0].save(path)

    def save_often(policy: LinTS) -> None:
        try:
            for _ in range(15):
                policy.save(path)
                assert len(LinTS.load(path).events) in sizes
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=save_often, args=(policy,)) for policy in policies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy"]
    assert len(LinTS.load(path).events) in sizes
