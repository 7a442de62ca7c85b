from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

from pfnts.backbones import LinearBackbone
from pfnts.environments import synthetic
from pfnts.experiments import score_backbone
from pfnts.experiments.backbone_scores import LEVELS, drift, planned
from pfnts.experiments.heldout import FUNCTIONS, TABLES, r2
from pfnts.scores import crps

ORACLE = LinearBackbone(precision=1.0, noise=1.0, standardize=False)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_draws_are_fixed_and_longer_ones_continue_shorter_ones(name: str) -> None:
    short, long = (FUNCTIONS[name].draw(size, number=1, seed=3) for size in (16, 40))
    np.testing.assert_array_equal(long.X[:16], short.X)
    np.testing.assert_array_equal(long.y[:16], short.y)
    np.testing.assert_array_equal(long.latent, short.latent)
    np.testing.assert_array_equal(long.outcomes, short.outcomes)
    other = FUNCTIONS[name].draw(16, number=2, seed=3)
    assert not np.array_equal(other.X, short.X)
    assert short.X.shape == (16, FUNCTIONS[name].n_features)


def test_friedman_functions_are_those_of_the_scenarios() -> None:
    for number in (1, 2, 3):
        for features in (5, 10, 20):
            draw = FUNCTIONS[f"friedman{number}-{features}"].draw(4, number=0, seed=0)
            expected = getattr(synthetic, f"friedman{number}")(draw.queries)
            np.testing.assert_array_equal(draw.latent, expected)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_noise_is_as_stated(name: str) -> None:
    function = FUNCTIONS[name]
    draws = [function.draw(4, number=number, seed=1) for number in range(20)]
    residual = np.concatenate([draw.outcomes - draw.latent for draw in draws])
    latent = np.concatenate([draw.latent for draw in draws])
    assert abs(residual.mean()) < 0.1 * residual.std()
    if function.noise is None:
        assert ((latent > 0) & (latent < 1)).all()
        assert set(np.unique(np.concatenate([draw.y for draw in draws]))) <= {0.0, 1.0}
        assert residual.std() == pytest.approx(math.sqrt((latent * (1 - latent)).mean()), rel=0.1)
    else:
        assert residual.std() == pytest.approx(function.noise, rel=0.05)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.endswith("-chosen")])
def test_chosen_rows_are_not_anybody_but_queries_and_function_are_those_of_its_twin(name: str) -> None:
    for number in range(4):
        draw, twin = (
            FUNCTIONS[each].draw(400, number=number, seed=3) for each in (name, name.removesuffix("-chosen"))
        )
        assert not np.array_equal(draw.queries, twin.queries)  # streams are named after the function
        away = np.abs(draw.X.mean(axis=0) - 0.5) / np.sqrt(1 / 12 / len(draw.X))
        assert away.max() > 6  # standard errors
        assert (np.abs(draw.queries.mean(axis=0) - 0.5) / np.sqrt(1 / 12 / len(draw.queries))).max() < 5


def test_an_exact_posterior_covers_whatever_rows_were_chosen() -> None:
    # From 64 rows on: its prior of the intercept is not that of the function, which fewer chosen rows show.
    options = {"sizes": [64, 256], "draws": 60}
    chosen = list(score_backbone(ORACLE, functions=["linear-10-chosen"], **options))
    anybody = list(score_backbone(ORACLE, functions=["linear-10"], **options))
    for hard, easy in zip(chosen, anybody, strict=True):
        assert abs(hard.mean_coverage - 0.95) < 0.03
        assert hard.r2 == hard.reference
        assert hard.r2 < easy.r2


def test_least_crps_is_that_of_the_true_distribution() -> None:
    function = FUNCTIONS["friedman1-5"]
    draws = [function.draw(4, number=number, seed=2) for number in range(20)]
    levels = np.arange(1, 1000) / 1000
    true = [crps(levels, draw.latent + ndtri(levels)[:, None], draw.outcomes).mean() for draw in draws]
    assert np.mean(true) == pytest.approx(function.least_crps(draws[0].latent), rel=0.05)
    binary = FUNCTIONS["binary-5"]
    draws = [binary.draw(4, number=number, seed=2) for number in range(20)]
    true = [
        crps(levels, (levels[:, None] > 1 - draw.latent).astype(float), draw.outcomes).mean()
        for draw in draws
    ]
    assert np.mean(true) == pytest.approx(np.mean([binary.least_crps(d.latent) for d in draws]), rel=0.1)


def test_oracle_scores_as_its_reference_and_as_theory_says() -> None:
    small, large = score_backbone(ORACLE, functions=["linear-10"], sizes=[16, 256], draws=30)
    assert small.r2 == small.reference
    assert 0.15 < small.r2 < 0.6
    assert large.r2 > 0.9
    for score in (small, large):
        assert 0.85 < score.coverage < 0.95
        assert abs(score.shape_drift) < 0.3
        assert score.crps > score.least_crps * 0.95


def test_wrong_model_drifts_or_explains_little() -> None:
    (score,) = score_backbone(LinearBackbone(), functions=["friedman3-5"], sizes=[256], draws=5)
    assert score.r2 < 0.7
    assert score.crps > 1.5 * score.least_crps
    assert score.reference is None


def test_scores_are_the_same_again() -> None:
    options = {"functions": ["steps-10"], "sizes": [32], "draws": 2}
    one, other = (next(score_backbone(LinearBackbone(), **options, seed=5)) for _ in range(2))
    assert (one.r2, one.crps, one.coverage) == (other.r2, other.crps, other.coverage)
    assert next(score_backbone(LinearBackbone(), **options, seed=6)).r2 != one.r2


def test_single_draw_has_no_standard_error() -> None:
    (score,) = score_backbone(LinearBackbone(), functions=["linear-10"], sizes=[16], draws=1)
    assert math.isnan(score.r2_error)


def test_listener_hears_every_draw() -> None:
    heard: list[tuple[str, int, int]] = []
    scores = score_backbone(
        LinearBackbone(),
        functions=["bart-4"],
        sizes=[8, 16],
        draws=2,
        listener=lambda function, size, draw: heard.append((function.name, size, draw)),
    )
    assert len(list(scores)) == 2
    assert heard == [("bart-4", 8, 0), ("bart-4", 8, 1), ("bart-4", 16, 0), ("bart-4", 16, 1)]


def test_r2_by_hand() -> None:
    truth = np.array([0.0, 2.0])
    assert r2(np.array([1.0, 1.0]), truth) == 0.0
    assert r2(np.array([0.0, 1.0]), truth) == 0.5


def test_drift_by_hand() -> None:
    before = np.array([[-1.0, 1.0, 0.0, 0.0]])
    assert drift(before, before) == (0.0, 0.0)
    assert drift(before, before + 2.0) == pytest.approx((1.0, 0.0))
    assert drift(before, 0.5 * before) == pytest.approx((0.0, -1.0))
    assert drift(before, before + np.array([[0.0, 0.0, 1.0, -1.0]])) == pytest.approx((0.0, 0.0))
    assert drift(np.zeros((1, 3)), np.ones((1, 3))) == pytest.approx((1.0, 0.0))


def test_published_size_is_added_below_the_largest() -> None:
    assert [size for _, size in planned(["friedman1-10"], [16, 256], draws=1)] == [16, 200, 256]
    assert [size for _, size in planned(["friedman1-10"], [16, 64], draws=1)] == [16, 64]
    (score,) = (
        s
        for s in score_backbone(LinearBackbone(), functions=["friedman1-10"], sizes=[256], draws=1)
        if s.size == 200
    )
    assert score.reference == 0.95


def test_levels_hold_the_interval_s_ends() -> None:
    from pfnts.experiments.backbone_scores import HIGH, LOW

    assert LEVELS[LOW] == pytest.approx(0.05)
    assert LEVELS[HIGH] == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"functions": ["freidman"]}, "functions must be among friedman1-5.*got 'freidman'"),
        ({"sizes": [2]}, "sizes must be at least 4"),
        ({"sizes": []}, "sizes must be at least 4"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
    ],
)
def test_mistakes_are_named(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        next(score_backbone(LinearBackbone(), **options))


@pytest.mark.parametrize("name", list(TABLES))
def test_real_tables_are_as_described_and_never_ask_about_rows_shown(name: str) -> None:
    table = TABLES[name]
    draw, longer = (table.draw(size, number=0, seed=1) for size in (20, table.largest))
    assert draw.X.shape == (20, table.n_features)
    assert len(longer.y) + len(longer.queries) == table.rows
    np.testing.assert_array_equal(longer.X[:20], draw.X)
    shown = {row.tobytes() for row in np.column_stack([longer.X, longer.y])}
    assert sum(row.tobytes() in shown for row in np.column_stack([longer.queries, longer.outcomes])) <= 1
    with pytest.raises(ValueError, match=f"at most {table.largest}"):
        table.draw(table.largest + 1, number=0, seed=1)


def test_a_real_table_is_scored_beside_the_best_regressor() -> None:
    (score,) = score_backbone(LinearBackbone(), functions=["wine"], sizes=[64, 256], draws=1)
    assert score.size == 64
    assert 0.8 < score.reference <= 1
    assert 0.3 < score.r2 < 1
    assert math.isnan(score.least_crps)


def test_intervals_of_the_mean_cover_where_they_are_right() -> None:
    (score,) = score_backbone(ORACLE, functions=["linear-10"], sizes=[64], draws=20)
    assert math.isnan(score.mean_coverage) or 0.9 < score.mean_coverage < 0.99
