"""Events as JSON, and what a history makes of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator

from pfnts.events import ArmAdded, ArmRemoved, Decided, Event, History, Observed, Rewarded, from_dict
from pfnts.events.event import to_dict

labels = st.one_of(st.text(max_size=5), st.integers(-(10**20), 10**20))
plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
values = st.floats(-1e100, 1e100)
events = st.one_of(
    st.builds(Rewarded, st.text(), values),
    st.builds(ArmAdded, labels),
    st.builds(ArmRemoved, labels),
    st.builds(Observed, st.dictionaries(st.text(), plain), labels, values),
    st.builds(
        Decided,
        st.text(),
        st.dictionaries(st.text(), plain),
        labels,
        st.dictionaries(labels, st.floats(0, 1)),
        st.sampled_from(["warmup", "thompson"]),
        st.one_of(st.none(), st.lists(labels).map(tuple)),
    ),
)


@given(events)
def test_events_come_back_from_json(event: Event) -> None:
    try:
        written = json.dumps(to_dict(event), allow_nan=False)
    except ValueError:  # a context that no policy accepts
        return
    again = from_dict(json.loads(written))
    assert json.dumps(to_dict(again)) == written
    if not isinstance(event, Decided | Observed):
        assert again == event


def test_labels_that_read_alike_stay_apart() -> None:
    event = Decided("0", [0.5], 1, {1: 0.25, "1": 0.75}, "thompson", (1, "1"))
    again = from_dict(json.loads(json.dumps(to_dict(event))))
    assert again == event
    assert isinstance(again, Decided)
    assert again.propensities["1"] == 0.75


@pytest.mark.parametrize(
    "written",
    [
        {},
        [],
        None,
        3,
        "rewarded",
        {"kind": "evil"},
        {"kind": ["rewarded"]},
        {"kind": "rewarded", "id": "0"},
        {"kind": "rewarded", "id": 0, "value": 1.0},
        {"kind": "rewarded", "id": "0", "value": "1"},
        {"kind": "rewarded", "id": "0", "value": True},
        {"kind": "rewarded", "id": "0", "value": float("nan")},
        {"kind": "rewarded", "id": "0", "value": 1e101},
        {"kind": "rewarded", "id": "0", "value": 10**400},
        {"kind": "rewarded", "id": "0", "value": 1.0, "more": 1},
        {"kind": "arm_added"},
        {"kind": "arm_added", "arm": 1.5},
        {"kind": "arm_added", "arm": True},
        {"kind": "arm_added", "arm": None},
        {"kind": "observed", "context": "x", "arm": 0, "value": 1.0},
        {"kind": "observed", "context": [0], "arm": 0, "value": 1.0, "encoded": [0.0]},
    ],
)
def test_anything_else_is_one_error(written: Any) -> None:
    with pytest.raises(ValueError, match="events must be those of a policy's log"):
        from_dict(written)


def test_events_are_frozen() -> None:
    with pytest.raises(AttributeError):
        Rewarded("0", 1.0).value = 2.0  # type: ignore[misc]


def test_a_history_grows_past_its_room(rng: Generator) -> None:
    X, arms, rewards = rng.uniform(size=(500, 3)), rng.integers(4, size=500), rng.normal(size=500)
    history = History(list(range(4)))
    for x, arm, reward in zip(X, arms, rewards, strict=True):
        history.fold(Observed(x.tolist(), int(arm), float(reward)))
    np.testing.assert_array_equal(history.contexts, X)
    np.testing.assert_array_equal(history.arms, arms)
    np.testing.assert_array_equal(history.rewards, rewards)
    np.testing.assert_array_equal(history.rewarded, np.bincount(arms, minlength=4))
    assert (history.size, history.position) == (500, 500)


def decided(id: str, arm: Any, live: Any = ("a", "b")) -> Decided:
    return Decided(id, [0.5], arm, dict.fromkeys(live, 1 / len(live)), "warmup")


def test_numbers_of_arms_are_never_given_twice() -> None:
    history = History(["a", "b"])
    for event in (
        decided("0", "a"),
        ArmRemoved("a"),
        ArmAdded("c"),
        ArmAdded("a"),
        Rewarded("0", 7.0),
        Observed([0.1], "a", 1.0),
        ArmRemoved("b"),
    ):
        history.check(event)
        history.fold(event)
    assert history.labels == ["a", "b", "c", "a"]
    assert [history.labels[number] for number in history.live] == ["c", "a"]
    assert history.arms.tolist() == [0, 3]
    assert history.decided.tolist() == [1, 0, 0, 0]
    assert history.rewarded.tolist() == [1, 0, 0, 1]
    assert (history.status("0"), history.status("1")) == ("rewarded", "unknown")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (decided("0", "a"), "id must be new"),
        (decided("1", "z"), "must"),
        (decided("1", "a", ("a", "z")), "propensities must be those of"),
        (Rewarded("9", 1.0), "it has none with the id '9'"),
        (Rewarded("0", 1.0), "has it already"),
        (Observed([0.1], "z", 1.0), "arm must be one of"),
        (ArmAdded("a"), "arm must be new"),
        (ArmRemoved("z"), "arm must be one of"),
    ],
)
def test_events_that_do_not_fit_are_told_and_change_nothing(event: Event, words: str) -> None:
    history = History(["a", "b"])
    history.fold(decided("0", "a"))
    history.fold(Rewarded("0", 1.0))
    with pytest.raises(ValueError, match=words):
        history.check(event)
    assert history.position == 2
    history.fold(ArmRemoved("b"))
    with pytest.raises(ValueError, match="only one left"):
        history.check(ArmRemoved("a"))
    with pytest.raises(ValueError, match="arm must be one of"):
        history.check(Observed([0.1], "b", 1.0))


def test_new_ids_are_numbers_that_nobody_has() -> None:
    history = History(["a", "b"])
    for id in ("1", "x", "3"):
        history.fold(decided(id, "a"))
    ids = history.new_ids(4)
    assert len(set(ids)) == 4
    assert not {"1", "x", "3"} & set(ids)
