"""The published figures hang together."""

from __future__ import annotations

import numpy as np
import pytest

from pfnts import environments, policies
from pfnts.reproduction.published import DEVIATION, LIBRARIES, OPENML, REGRET, SYNTHETIC

RANK: dict[str, tuple[float, float]] = {
    "pfn-ts": (1.375, 1.875),
    "bf-ts": (2.375, 2.375),
    "lin-ts": (5.125, 4.75),
    "lin-ucb": (6.0, 5.625),
    "neural-ts": (4.0, 6.375),
    "rf-ts": (4.875, 3.5),
    "xgboost-ts": (4.25, 3.5),
}
"""Average rank as the paper prints it: over the synthetic scenarios, over the OpenML tasks."""


def test_every_policy_has_a_figure_for_every_scenario() -> None:
    for table in (REGRET, DEVIATION):
        assert set(table) == set(RANK) <= set(policies.names())
        assert all(tuple(row) == (*SYNTHETIC, *OPENML) for row in table.values())
    assert set(SYNTHETIC) | set(OPENML) <= set(environments.names())
    assert tuple(LIBRARIES) == OPENML


@pytest.mark.parametrize(("scenarios", "column"), [(SYNTHETIC, 0), (OPENML, 1)])
def test_average_ranks_follow_from_the_regrets(scenarios: tuple[str, ...], column: int) -> None:
    """A digit copied wrongly would most likely change a rank."""
    regret = np.array([[REGRET[policy][scenario] for scenario in scenarios] for policy in RANK])
    ranks = (regret[:, None] >= regret[None]).sum(axis=1).mean(axis=1)
    printed = [RANK[policy][column] for policy in RANK]
    # To within one place on one task: lin-ts and lin-ucb tie on friedman-heteroscedastic.
    np.testing.assert_allclose(ranks, printed, atol=0.13)


def test_deviations_are_no_standard_errors() -> None:
    """Five runs between 0 and the most that can be lost: the standard error is at most a fourth of that."""
    most = REGRET["lin-ucb"]["friedman3"] + 2 * DEVIATION["lin-ucb"]["friedman3"]
    runs = np.array([0, 0, 0, most, most])
    assert DEVIATION["lin-ts"]["friedman3"] > 1.5 * runs.std(ddof=1) / np.sqrt(5)
    one_bad = np.array([0, 0, 0, 0, 5 * REGRET["lin-ts"]["friedman3"]])
    assert DEVIATION["lin-ts"]["friedman3"] == pytest.approx(one_bad.std(), rel=1e-3)
