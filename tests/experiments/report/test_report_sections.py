"""How runs are sorted into tables, against sums done by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pfnts import policies
from pfnts.experiments import PolicySpec, Run
from pfnts.experiments.charts import COLOURS, DARK_COLOURS, DASHES, styles_of
from pfnts.experiments.outcomes import bands, condense
from pfnts.experiments.report.contents import row_name
from pfnts.experiments.report.sections import OPENML, OTHER, SYNTHETIC, Section, organize

MakeRun = Callable[..., Run]
LIN_TS, TS, UNIFORM = PolicySpec("lin-ts"), PolicySpec("ts"), PolicySpec("uniform")


def sections_of(*runs: Run) -> list[Section]:
    return organize(map(condense, runs))


def test_rank_is_averaged_over_shared_scenarios_only(make_run: MakeRun) -> None:
    (section,) = sections_of(
        make_run("linear", "lin-ts", 0, 1.0),
        make_run("linear", "ts", 0, 2.0),
        make_run("linear", "uniform", 0, 3.0),
        make_run("friedman", "lin-ts", 0, 9.0),
        make_run("friedman", "ts", 0, 4.0),
        make_run("friedman", "uniform", 0, 9.0),
        make_run("synbart", "uniform", 0, 0.5),
    )
    assert section.comparable(section.policies) == ([LIN_TS, TS, UNIFORM], ["linear", "friedman"])
    assert section.ranks == {LIN_TS: (1 + 2.5) / 2, TS: (2 + 1) / 2, UNIFORM: (3 + 2.5) / 2}


def test_policy_run_here_and_there_does_not_end_the_ranking_of_the_others(make_run: MakeRun) -> None:
    (section,) = sections_of(
        *(make_run(name, policy, 0, 1.0) for name in ("linear", "friedman", "synbart") for policy in ("ts",)),
        *(make_run(name, "uniform", 0, 2.0) for name in ("linear", "friedman", "synbart")),
        make_run("linear", "lin-ts", 0, 0.5),
    )
    assert section.comparable(section.policies) == ([TS, UNIFORM], ["linear", "friedman", "synbart"])
    assert section.ranks == {TS: 1.0, UNIFORM: 2.0}


def test_no_shared_scenario_gives_no_rank(make_run: MakeRun) -> None:
    (section,) = sections_of(make_run("linear", "ts", 0, 1.0), make_run("friedman", "uniform", 0, 1.0))
    assert section.ranks == {}


def test_best_fixed_arm_counts_every_replication_once(make_run: MakeRun) -> None:
    (section,) = sections_of(
        make_run("linear", "ts", 0, 1.0, fixed=(10.0, 90.0)),
        make_run("linear", "uniform", 0, 1.0, fixed=(10.0, 90.0)),
        make_run("linear", "uniform", 1, 1.0, fixed=(90.0, 40.0)),
    )
    mean, error = section.best_fixed("linear")
    assert mean == pytest.approx(25.0)
    assert error == pytest.approx(15.0)


@pytest.mark.parametrize(("lowest", "marked"), [(0.0, True), (0.001, True), (5.0, False)])
def test_free_fixed_arm_marks_the_scenario(make_run: MakeRun, lowest: float, marked: bool) -> None:
    (section,) = sections_of(make_run("linear", "ts", 0, 1.0, fixed=(lowest, 80.0)))
    assert section.needs_no_context("linear") is marked


def test_families_and_horizons_stand_apart(make_run: MakeRun) -> None:
    found = sections_of(
        make_run("mine.SCENARIO", "ts", 0, 1.0),
        make_run("openml-adult", "ts", 0, 1.0),
        make_run("linear", "ts", 0, 1.0),
        make_run("linear", "ts", 0, 1.0, horizon=80),
    )
    assert [(section.horizon, section.title) for section in found] == [
        (80, SYNTHETIC),
        (40, SYNTHETIC),
        (40, OPENML),
        (40, OTHER),
    ]


def test_variants_leave_the_comparison_only_beside_the_plain_policy(make_run: MakeRun) -> None:
    low, high = PolicySpec.of("lin-ts", nu=0.1), PolicySpec.of("lin-ts", nu=2.0)
    variants = [make_run("linear", policy, 0, 1.0) for policy in (low, high)]
    (alone,) = sections_of(*variants)
    assert alone.policies == (low, high)
    main, varied = sections_of(
        *variants, make_run("linear", "lin-ts", 0, 1.0), make_run("linear", "ts", 0, 1.0)
    )
    assert main.policies == (LIN_TS, TS)
    assert (varied.axis, varied.policies) == (("nu",), (LIN_TS, low, high))


def test_bands_by_hand(make_run: MakeRun) -> None:
    outcomes = [condense(make_run("linear", "ts", r, regret)) for r, regret in enumerate((10.0, 20.0))]
    places, mean, spread = bands(outcomes)
    assert (places[0], places[-1]) == (1, 40)
    assert mean[-1] == pytest.approx(15.0)
    assert spread[-1] == pytest.approx(50**0.5)
    assert mean == pytest.approx(15.0 * places / 40)


def test_curves_of_different_lengths_are_not_averaged(make_run: MakeRun) -> None:
    outcomes = [condense(make_run("linear", "ts", r, 1.0, rounds=30 + r)) for r in range(2)]
    with pytest.raises(ValueError, match=r"same number of rounds, got \[30, 31\]"):
        bands(outcomes)


def test_default_that_is_left_to_the_policy_is_called_default(make_run: MakeRun) -> None:
    varied = PolicySpec.of("pfn-ts", estimator="subclt", refresh=2.0)
    runs = [make_run("linear", policy, 0, 1.0) for policy in (PolicySpec("pfn-ts"), varied)]
    about = [{"producer": {"settings": {"estimator": None, "refresh": 1.5}}}, {}]
    outcomes = [condense(run, each) for run, each in zip(runs, about, strict=True)]
    section = organize(outcomes)[-1]
    assert [row_name(section, policy) for policy in section.policies] == [
        "refresh=1.5 (default)",
        "estimator=subclt, refresh=2.0",
    ]
    about[0] = {"producer": {"settings": {"estimator": None}}}
    outcomes = [condense(run, each) for run, each in zip(runs, about, strict=True)]
    assert row_name(organize(outcomes)[-1], PolicySpec("pfn-ts")) == "default"


def test_default_within_a_settings_object_is_found(make_run: MakeRun) -> None:
    plain, varied = PolicySpec("pfn-ts"), PolicySpec.of("pfn-ts", refresh=2.0)
    outcomes = [
        condense(make_run("linear", policy, 0, 1.0), {"producer": {"settings": policy.settings()}})
        for policy in (plain, varied)
    ]
    assert row_name(organize(outcomes)[-1], plain) == "refresh=1.05 (default)"


def test_every_policy_has_a_colour_and_dashes_of_its_own() -> None:
    styles = styles_of(policies.names())
    for colours in (COLOURS, DARK_COLOURS):
        assert len({(colours[style], DASHES[style]) for style in styles}) == len(policies.names())
