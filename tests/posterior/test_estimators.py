"""Estimators: questions, posteriors and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.backbones import Prediction
from pfnts.posterior import Estimator, NetworkPosterior, Predictive, ShrunkSubCLT, SubCLT, described, load


def test_what_estimators_ask() -> None:
    assert SubCLT().asks(16).sizes == (2, 4, 8, 16)
    assert SubCLT().asks(21).sizes == (2, 4, 8, 16, 21)
    assert SubCLT(base=3.0).asks(5).sizes == (2, 5)
    assert SubCLT().asks(3).sizes == (2, 3)
    assert ShrunkSubCLT().asks(21).sizes == SubCLT().asks(21).sizes
    assert NetworkPosterior().asks(21).sizes == Predictive().asks(21).sizes == (21,)
    for estimator in (SubCLT(), NetworkPosterior()):
        assert estimator.asks(9).levels == ()
    for estimator in (ShrunkSubCLT(), Predictive()):
        levels = np.array(estimator.asks(9).levels)
        np.testing.assert_allclose(levels, (np.arange(len(levels)) + 0.5) / len(levels))


def test_the_networks_posterior_is_its_own_mean_and_deviation() -> None:
    answer = Prediction(np.array([[1.0, 2.0]]), np.empty((0, 2)), np.array([0.5, 3.0]))
    made = NetworkPosterior().posterior(answer, size=900, own=900, reward_variance=7.0)
    np.testing.assert_array_equal(made.mean, [1.0, 2.0])
    np.testing.assert_array_equal(made.variance, [0.25, 9.0])
    with pytest.raises(ValueError, match="must have a backbone that knows the standard deviation"):
        NetworkPosterior().posterior(
            Prediction(np.ones((1, 2)), np.empty((0, 2))), size=9, own=9, reward_variance=1.0
        )


@pytest.mark.parametrize("estimator", [NetworkPosterior(), ShrunkSubCLT()])
def test_no_arm_is_surer_of_itself_than_its_own_rows_allow(estimator: Estimator) -> None:
    means, quantiles = np.ones((len(estimator.asks(64).sizes), 1)), np.ones((50, 1))
    sure = Prediction(means, quantiles, np.zeros(1))
    for own in (1, 6, 64):  # of 64 rows of a sequence that arms share
        made = estimator.posterior(sure, size=64, own=own, reward_variance=2.0)
        np.testing.assert_allclose(made.variance, 9 * 2.0 / own**2)
    seldom = estimator.posterior(sure, size=64, own=0, reward_variance=2.0)
    np.testing.assert_allclose(seldom.variance, 9 * 2.0)


def test_predictive_rewards_are_the_quantiles(rng: Generator) -> None:
    quantiles = rng.normal(size=(200, 3))
    made = Predictive().posterior(Prediction(np.ones((1, 3)), quantiles), size=9, own=9, reward_variance=1.0)
    np.testing.assert_array_equal(made.points, quantiles)
    assert made.size.tolist() == [9, 9, 9]


@pytest.mark.parametrize(
    "estimator",
    [
        SubCLT(),
        SubCLT(base=1.0 + 1e-9, weights="root"),
        SubCLT(base=0.1 + 1.2),
        ShrunkSubCLT(),
        ShrunkSubCLT(prior_dof=1 / 3, floor=0.0, base=3),
        NetworkPosterior(),
        Predictive(),
    ],
)
def test_estimators_come_back_from_their_descriptions(estimator: Any) -> None:
    text = described(estimator)
    assert text is not None
    assert load(text) == estimator
    assert load(estimator) is estimator


def test_an_estimator_of_the_users_own_has_no_description() -> None:
    class Own(SubCLT):
        pass

    assert described(Own()) is None
    assert load(Own()) == Own()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("evil", "estimator must be one of"),
        ("evil.B", "estimator must be one of"),
        ("subclt(base=1.5", "estimator must be one of"),
        ("subclt(base)", "must be written like"),
        ("subclt(base=1)", "base must be a finite number above 1"),
        ("subclt(base=nan)", "base must be a finite number above 1"),
        ("subclt(colour=red)", "must be given options that it has"),
        ("subclt(coupled=true)", "must not have the option 'coupled', which was removed, .* leave it out"),
        ("subclt(coupled=0.5)", "must not have the option 'coupled', which was removed"),
        ("shrunk(tails=student)", "must not have the option 'tails', which was removed, .* leave it out"),
        ("predictive-clt", 'must not be "predictive-clt", which was removed, .* choose "subclt"'),
        ("predictive-clt(coupled=false)", 'must not be "predictive-clt", which was removed'),
        ("shrunk(prior_dof=many)", "must"),
        ("network(base=2)", "must be given options that it has"),
        (3, "estimator must be one of"),
        (None, "estimator must be one of"),
    ],
)
def test_impossible_estimators_are_refused(text: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        load(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("subclt(base=1.5,weights=root,coupled=false)", SubCLT(base=1.5, weights="root")),
        (
            "shrunk(prior_dof=3.0,floor=0.2,tails=gaussian,base=1.5,coupled=false)",
            ShrunkSubCLT(prior_dof=3.0, floor=0.2, base=1.5),
        ),
    ],
)
def test_descriptions_of_earlier_files_are_read(text: str, expected: Estimator) -> None:
    assert load(text) == expected
