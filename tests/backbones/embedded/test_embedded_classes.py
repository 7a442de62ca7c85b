from __future__ import annotations

import pytest
import torch

from pfnts.backbones.embedded import classes
from pfnts.backbones.embedded.device_rng import DeviceRng


@pytest.mark.parametrize("features", [1, 3, 12])
def test_chances_are_those_of_right_and_wrong_labels(features: int) -> None:
    for seed in range(6):
        shown, chance = classes.draw_classes(16, 40, features, rng=DeviceRng(seed), trend=0.35)
        assert shown.shape == (16, 40, features)
        assert all(len(row.unique()) <= 2 for row in chance)  # right, or wrong
        assert ((chance <= 0.1) | (chance >= 0.9)).all()


def test_half_of_the_tables_have_no_wrong_labels() -> None:
    sure = []
    for seed in range(8):
        _, chance = classes.draw_classes(32, 40, 4, rng=DeviceRng(seed), trend=0.35)
        sure += ((chance == 0) | (chance == 1)).all(1).tolist()
    assert 0.3 < sum(sure) / len(sure) < 0.7


@pytest.mark.parametrize("rule", [classes.nearest_centre, classes.largest_score])
def test_every_class_occurs_and_depends_on_the_context_alone(rule: object) -> None:
    view = DeviceRng(0).normal(8, 200, 3)
    view[:, 100:] = view[:, :100]
    label = rule(view, 3, DeviceRng(1), 0.35)
    assert torch.equal(label[:, :100], label[:, 100:])
    assert set(label.unique().tolist()) == {0, 1, 2}


def test_a_learner_names_the_right_class_ever_more_often() -> None:
    label = DeviceRng(0).index(4, 200, 400)
    right = classes.name_classes(label, 4, rng=DeviceRng(1)) == label
    assert right[:, :40].float().mean() < right[:, 360:].float().mean() - 0.1


def test_rows_where_an_arm_is_right_are_preferred_and_stay_in_order() -> None:
    right = DeviceRng(0).uniform(100, 400) < 0.2
    chosen = classes.choose_where_right(right, 100, rng=DeviceRng(1))
    assert (chosen.diff(dim=1) > 0).all()
    assert right.gather(1, chosen).float().mean() > 0.3
