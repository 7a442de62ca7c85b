"""Rows appended through the backbone, and the forecasts that come with them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.backbones import Append, Backbone

LEVELS = (0.1, 0.5, 0.9)
START, ROWS = 3, 90


def table(rng: Generator, *, rows: int = ROWS, columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((rows, columns))
    return X, X[:, 0] + 0.3 * rng.standard_normal(rows)


def close(name: str, y: np.ndarray) -> dict[str, float]:
    return {"rtol": 0.0, "atol": (1e-9 if name == "linear" else 1e-3 if name == "tabpfn" else 1e-4) * y.std()}


def test_forecasts_rest_on_the_rows_before(name: str, backbone: Backbone, rng: Generator) -> None:
    X, y = table(rng)
    wanted = np.isin(np.arange(START, ROWS), [3, 4, 20, 70, 89])
    sequence = backbone.sequence(X[:START], y[:START])
    [forecast] = backbone.append([Append(sequence, X[START:], y[START:], wanted)], levels=LEVELS)
    assert forecast is not None
    assert sequence.size == ROWS
    assert forecast.means.shape == (1, 5)
    assert forecast.quantiles.shape == (3, 5)
    assert (forecast.mean_sd is None) == (not backbone.knows_mean_sd)
    for at, t in enumerate(START + np.flatnonzero(wanted)):
        behind = [t] if name == "embedded" else range(t, t - t // 16 - 1, -1)
        answers = [sequence.predict(X[t : t + 1], sizes=[size], levels=LEVELS) for size in behind]
        off = [abs(forecast.means[0, at] - answer.means[0, 0]) for answer in answers]
        answer = answers[int(np.argmin(off))]
        part = forecast.part(slice(at, at + 1))
        np.testing.assert_allclose(part.means, answer.means, **close(name, y))
        np.testing.assert_allclose(part.quantiles, answer.quantiles, **close(name, y))
        if answer.mean_sd is not None:
            np.testing.assert_allclose(part.mean_sd, answer.mean_sd, **close(name, y))


def test_appends_together_equal_appends_to_each(name: str, backbone: Backbone, rng: Generator) -> None:
    X, y = table(rng)
    starts = [1, 40, 60, 89]
    together = [backbone.sequence(X[:n], y[:n]) for n in starts]
    appends = [Append(s, X[n:], y[n:]) for s, n in zip(together, starts, strict=True)]
    assert backbone.append([*appends, Append(backbone.sequence(X, y), X[:0], y[:0])]) == [None] * 5
    queries = rng.standard_normal((2, 3))
    whole = backbone.sequence(X, y).predict(queries, sizes=[10, ROWS], levels=LEVELS)
    for sequence in together:
        assert sequence.size == ROWS
        answer = sequence.predict(queries, sizes=[10, ROWS], levels=LEVELS)
        np.testing.assert_allclose(answer.means, whole.means, **close(name, y))
        np.testing.assert_allclose(answer.quantiles, whole.quantiles, **close(name, y))


def test_no_forecast_where_none_is_asked_for(backbone: Backbone, rng: Generator) -> None:
    X, y = table(rng, rows=8)
    sequence = backbone.sequence(X[:2], y[:2])
    assert backbone.append([Append(sequence, X[2:5], y[2:5], np.zeros(3, dtype=bool))]) == [None]
    assert backbone.append([Append(sequence, X[5:], y[5:])]) == [None]
    assert backbone.append([]) == []
    assert sequence.size == 8


def test_refused_appends_change_no_sequence(backbone: Backbone, rng: Generator) -> None:
    X, y = table(rng, rows=8)
    one, other = (backbone.sequence(X[:4], y[:4]) for _ in range(2))
    good = Append(one, X[4:], y[4:])
    wrong = {
        r"X must have 3 columns.*got 2": Append(other, X[4:, :2], y[4:]),
        r"y must be finite, got nan": Append(other, X[4:], np.array([0.0, 0.0, 0.0, np.nan])),
        r"y must have one number for each of the 4 rows": Append(other, X[4:], y[4:6]),
        r"forecast must be 4 booleans": Append(other, X[4:], y[4:], np.ones(3, dtype=bool)),
        r"each sequence at most once": good,
    }
    for words, bad in wrong.items():
        with pytest.raises(ValueError, match=words):
            backbone.append([good, bad])
        assert (one.size, other.size) == (4, 4)
    with pytest.raises(ValueError, match="levels"):
        backbone.append([good], levels=[1.5])
    assert one.size == 4
