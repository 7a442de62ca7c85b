"""Weights of layouts by the evidence of their forecasts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.layouts.average import TEMPER, Scores


def likelihood(losses: np.ndarray, temper: float) -> np.ndarray:
    """Tempered profile likelihoods of exponential losses, normalised: a slow second computation."""
    found = []
    for column in losses.T:
        scale = column.mean()  # maximises prod exp(-loss / scale) / scale
        found.append(temper * sum(-loss / scale - np.log(scale) for loss in column))
    weights = np.exp(np.array(found) - max(found))
    return weights / weights.sum()


@pytest.mark.parametrize("temper", [0.25, TEMPER, 1.0])
def test_weights_are_tempered_profile_likelihoods(temper: float, rng: Generator) -> None:
    losses = rng.exponential(size=(40, 3)) * np.array([1.0, 1.1, 1.4])
    weights = Scores.none(3).add(losses).weights(temper)
    np.testing.assert_allclose(weights, likelihood(losses, temper), rtol=1e-9)


def test_weights_do_not_depend_on_units_pieces_or_rows_without_every_forecast(rng: Generator) -> None:
    losses = rng.exponential(size=(30, 2))
    expected = Scores.none(2).add(losses).weights()
    np.testing.assert_allclose(Scores.none(2).add(1e6 * losses).weights(), expected)
    pieces = Scores.none(2)
    for part in np.split(losses, [1, 7, 8, 20]):
        pieces = pieces.add(part)
    np.testing.assert_array_equal(pieces.weights(), expected)
    partial = np.insert(losses, 4, [np.nan, 1e9], axis=0)
    np.testing.assert_array_equal(Scores.none(2).add(partial).weights(), expected)


def test_before_the_first_forecast_weights_are_equal_and_perfect_forecasts_share_all() -> None:
    np.testing.assert_array_equal(Scores.none(2).weights(), [0.5, 0.5])
    np.testing.assert_array_equal(Scores.none(2).add(np.array([[0.0, 0.1]] * 9)).weights(), [1.0, 0.0])
    np.testing.assert_array_equal(Scores.none(2).add(np.zeros((9, 2))).weights(), [0.5, 0.5])
