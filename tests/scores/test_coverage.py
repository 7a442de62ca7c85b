"""Coverage counts truths inside their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from pfnts.scores import coverage


def test_ends_belong_to_the_interval() -> None:
    assert coverage([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0, 1.0, -0.1, 1.1]) == 0.5


def test_any_shape_is_counted_as_a_whole() -> None:
    assert coverage(np.zeros((2, 3)), np.ones((2, 3)), [[0.5, 2, 2], [2, 2, 2]]) == pytest.approx(1 / 6)


def test_nan_truth_is_not_covered() -> None:
    assert coverage([0.0], [1.0], [np.nan]) == 0.0


@pytest.mark.parametrize(
    ("lower", "upper", "truth", "words"),
    [
        ([0.0], [1.0], [0.5, 0.5], "must have one shape"),
        ([], [], [], "at least one entry"),
        ([2.0], [1.0], [0.5], "lower must not exceed upper"),
    ],
)
def test_bad_arguments_are_named(
    lower: list[float], upper: list[float], truth: list[float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        coverage(lower, upper, truth)
