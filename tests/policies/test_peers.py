"""Policies of other libraries: what they decide is what the library itself would."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.experiments import PolicySpec
from pfnts.policies import make

PEERS = {
    "vw": "vowpalwabbit",
    "mabwiser-linucb": "mabwiser",
    "contextualbandits-linucb": "contextualbandits",
    "bayesianbandits-ts": "bayesianbandits",
}


def rows(rng: Generator, n: int = 60) -> tuple[Any, Any, Any]:
    X = rng.normal(size=(n, 3))
    arms = np.arange(n) % 3
    return X, arms, X[np.arange(n), arms] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize(("name", "module"), PEERS.items())
def test_missing_library_names_the_extra(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for loaded in [each for each in sys.modules if each == module or each.startswith(f"{module}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf'{name}. needs {module}; .* pip install "pfnts\[peers\]"'):
        make(name, arms=2)


def test_linucb_takes_the_arm_that_mabwiser_predicts(rng: Generator) -> None:
    mab = pytest.importorskip("mabwiser.mab")
    X, arms, rewards = rows(rng)
    theirs = mab.MAB([0, 1, 2], mab.LearningPolicy.LinUCB(alpha=0.7, l2_lambda=2.0))
    theirs.fit(arms, rewards, X)
    ours = make("mabwiser-linucb", arms=3, alpha=0.7, l2_lambda=2.0)
    ours.update(X, arm=arms, reward=rewards)
    probes = rng.normal(size=(50, 3))
    decisions = ours.decide_batch(probes, rng=rng)
    assert [d.arm for d in decisions] == theirs.predict(probes)
    assert all(d.propensities[d.index] == 1 for d in decisions)


def test_linucb_takes_the_arm_that_contextualbandits_predicts(rng: Generator) -> None:
    online = pytest.importorskip("contextualbandits.online")
    X, arms, rewards = rows(rng)
    theirs = online.LinUCB(3, alpha=0.7, lambda_=2.0, random_state=1).fit(X, arms, rewards)
    ours = make("contextualbandits-linucb", arms=3, alpha=0.7, penalty=2.0)
    ours.update(X, arm=arms, reward=rewards)
    probes = rng.normal(size=(50, 3))
    assert [d.arm for d in ours.decide_batch(probes, rng=rng)] == theirs.predict(probes).tolist()


def test_a_bound_that_contextualbandits_loses_to_rounding_is_the_one_that_it_takes(rng: Generator) -> None:
    online = pytest.importorskip("contextualbandits.online")
    arms, lost = np.arange(6) % 3, 0
    for _ in range(20):
        days = np.column_stack([rng.uniform(20, 70, size=40), 20_500 + rng.integers(28, size=40)])
        ours, theirs = make("contextualbandits-linucb", arms=3), online.LinUCB(3, alpha=1.0, lambda_=1.0)
        ours.update(days[:6], arm=arms, reward=rng.normal(size=6))
        for i, event in enumerate(ours.events):
            theirs.partial_fit(days[i : i + 1], arms[i : i + 1], np.array([event.value]))
        for x in days[6:]:
            decision = ours.decide(x, rng=rng)
            said = theirs.decision_function(x[None])[0]
            lost += np.isnan(said).any()
            assert decision.propensities.sum() == 1
            if np.isnan(said).sum() < 2:
                assert decision.arm == theirs.predict(x[None])[0]
    assert lost


def test_propensities_are_the_frequencies_of_draws_by_bayesianbandits(rng: Generator) -> None:
    library = pytest.importorskip("bayesianbandits")
    X, arms, rewards = rows(rng, 12)
    x, n = np.array([[0.3, 0.2, 0.1]]), 20_000
    draws = []
    for arm in range(3):
        theirs = library.NormalInverseGammaRegressor(random_state=int(rng.integers(2**31)))
        theirs.partial_fit(X[arms == arm], rewards[arms == arm])
        draws.append(theirs.sample(x, n).ravel())
    frequency = np.bincount(np.argmax(draws, axis=0), minlength=3) / n
    ours = make("bayesianbandits-ts", arms=3)
    ours.update(X, arm=arms, reward=rewards)
    expected = ours.decide(x[0], rng=rng).propensities
    assert (np.abs(frequency - expected) < 5 * np.sqrt(expected * (1 - expected) / n) + 1e-6).all()


def test_propensities_are_those_of_vowpal_wabbit_and_teach_it(rng: Generator) -> None:
    library = pytest.importorskip("vowpalwabbit")
    theirs = library.Workspace("--quiet --cb_explore_adf -q ca --epsilon 0.3")
    ours = make("vw", arms=2, arguments="--epsilon 0.3")
    for _ in range(40):
        x = rng.normal(size=2)
        shared = f"shared |c x0:{x[0]!r} x1:{x[1]!r}".replace("np.float64(", "").replace(")", "")
        decision = ours.decide(x, rng=rng)
        shares = theirs.predict([shared, "|a arm0", "|a arm1"])
        np.testing.assert_allclose(decision.propensities, shares, atol=1e-6)
        reward = float(x[decision.index])
        label = f"0:{-reward!r}:{float(decision.propensities[decision.index])!r} "
        theirs.learn([shared, *(f"{label if k == decision.index else ''}|a arm{k}" for k in range(2))])
        ours.update(decision, reward=reward)
    assert {round(share, 6) for share in decision.propensities} == {0.15, 0.85}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("vw", {"arguments": "-f stolen"}, "arguments must be among --epsilon .* got '-f'"),
        ("vw", {"arguments": "--final_regressor=x"}, "arguments must be among"),
        ("vw", {"arguments": "--cb_type nonsense"}, "arguments must be options of Vowpal Wabbit"),
        ("mabwiser-linucb", {"alpha": -1}, "alpha|exploration"),
        ("contextualbandits-linucb", {"penalty": -1}, "alpha and penalty must be numbers"),
        ("contextualbandits-linucb", {"warmup": 0}, "warmup must be at least 1"),
        ("bayesianbandits-ts", {"lam": 0}, "lam, a and b must be positive, got 0"),
    ],
)
def test_wrong_options_are_named(name: str, options: dict[str, Any], words: str) -> None:
    pytest.importorskip(PEERS[name])
    with pytest.raises(ValueError, match=words):
        make(name, arms=2, **options)


def test_arguments_are_written_on_the_command_line() -> None:
    spec = PolicySpec.parse("vw:arguments=--squarecb --cubic cca")
    assert spec.options == (("arguments", "--squarecb --cubic cca"),)
