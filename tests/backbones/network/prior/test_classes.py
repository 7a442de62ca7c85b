from __future__ import annotations

import pytest
import torch

from pfnts.backbones.network.prior import classes
from pfnts.backbones.network.prior.device_rng import DeviceRng


@pytest.mark.parametrize("features", [1, 3, 12])
def test_chances_are_those_of_right_and_wrong_labels(features: int) -> None:
    for seed in range(6):
        shown, chance, _ = classes.draw_classes(16, 40, features, queries=10, rng=DeviceRng(seed), trend=0.35)
        assert shown.shape == (16, 40, features)
        assert all(len(row.unique()) <= 2 for row in chance)  # right, or wrong
        assert ((chance <= 0.1) | (chance >= 0.9)).all()


def test_half_of_the_tables_have_no_wrong_labels() -> None:
    sure = []
    for seed in range(8):
        _, chance, _ = classes.draw_classes(32, 40, 4, queries=10, rng=DeviceRng(seed), trend=0.35)
        sure += ((chance == 0) | (chance == 1)).all(1).tolist()
    assert 0.3 < sum(sure) / len(sure) < 0.7


@pytest.mark.parametrize("rule", [classes.nearest_centre, classes.largest_score])
def test_every_class_occurs_and_depends_on_the_context_alone(rule: object) -> None:
    view = DeviceRng(0).normal(8, 200, 3)
    view[:, 100:] = view[:, :100]
    label = rule(view, 3, DeviceRng(1), 0.35)
    assert torch.equal(label[:, :100], label[:, 100:])
    assert set(label.unique().tolist()) == {0, 1, 2}


def test_a_policy_names_the_right_class_ever_more_often_but_not_for_queries() -> None:
    label = DeviceRng(0).index(4, 200, 400)
    named = classes.name_classes(label, 4, queries=100, rng=DeviceRng(1))
    right = (named == label).float()
    assert right[:, :40].mean() < right[:, 260:300].mean() - 0.1
    assert right[:, 300:].mean() < right[:, 260:300].mean() - 0.1
    by_table = right[:, 300:].mean(1)
    assert (
        0.6 < (by_table < 0.4).float().mean() < 0.95
    )  # one in four by chance; of the others, a policy's own


def test_rows_where_an_arm_is_right_are_preferred_and_queries_come_from_the_population() -> None:
    right = DeviceRng(0).uniform(400, 400) < 0.2
    chosen = classes.choose_where_right(right, 100, queries=20, rng=DeviceRng(1))
    assert (chosen.diff(dim=1) > 0).all()
    taken = right.gather(1, chosen).float()
    assert taken[:, :80].mean() > 0.3
    population = (chosen[:, 80:] == torch.arange(380, 400)).all(1)
    assert 0.6 < population.float().mean() < 0.9
    assert abs(taken[population, 80:].mean() - 0.2) < 0.02
    assert taken[~population, 80:].mean() > 0.3
