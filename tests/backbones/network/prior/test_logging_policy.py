from __future__ import annotations

import torch

from pfnts.backbones.network.prior import logging_policy as collecting
from pfnts.backbones.network.prior.device_rng import DeviceRng


def test_a_policy_takes_what_appeals_ever_more_often_and_is_from_population() -> None:
    appeal = DeviceRng(0).normal(400, collecting.CANDIDATES * 256)
    chosen = collecting.choose_rows(appeal, queries=64, rng=DeviceRng(1))
    assert (chosen % 256 == torch.arange(256)).all()  # the order of the rounds stays
    taken = appeal.gather(1, chosen)
    assert taken[:, 128:192].mean() > taken[:, :64].mean() + 0.1
    assert taken[:, :64].mean() > 0.1  # some are keen from the first row on
    population = (chosen[:, 192:] == torch.arange(192, 256)).all(1)
    assert abs(population.float().mean() - collecting.POPULATION) < 0.1
    assert abs(taken[population, 192:].mean()) < 0.03
    assert taken[~population, 192:].mean() > 0.3


def test_without_queries_all_rows_are_chosen() -> None:
    assert not collecting.from_population(50, 20, queries=0, rng=DeviceRng(0)).any()
