"""Replays kept on disk, the values made of them, and the command."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pfnts.cli import app
from pfnts.cli.console import PlainConsole, show
from pfnts.cli.ope import counts, identity_of, parse_propensity
from pfnts.experiments import PolicySpec, Run, RunStore, job, prepare, run_all
from pfnts.experiments import replays as module
from pfnts.experiments.jobs import Finished, work
from pfnts.experiments.ope_report import (
    action_table,
    all_gaps,
    baselines,
    lead_table,
    readable,
    value_chart,
    value_table,
    verdict,
    weight_table,
    write_report,
)
from pfnts.experiments.replays import PolicyValue, ReplaySpec, chosen_identity, plan_replays, values
from pfnts.ope import (
    Log,
    Replay,
    Roles,
    WeightDiagnostics,
    dr,
    gaps,
    log_from_columns,
    replay,
    simulated_drinkless,
    snips,
)
from pfnts.ope import log as log_module
from pfnts.ope.bootstrap import policy_rng, replicate
from pfnts.policies import make

TS, UNIFORM = PolicySpec("ts"), PolicySpec("uniform")


@pytest.fixture
def five_rows() -> Log:
    return Log(
        contexts=np.zeros((5, 1)), features=("x",), arms=("a", "b"), actions=np.array([0, 1, 1, 0, 1]),
        rewards=np.arange(5.0), propensities=np.full(5, 0.5),
    )  # fmt: skip


@pytest.fixture
def small() -> Log:
    return simulated_drinkless(rng=np.random.default_rng(1), people=12, days=5)


def replayed(log: Log, specs: list[ReplaySpec]) -> list[Run]:
    return list(run_all(prepare(specs, inputs=log)))


def planned(log: Log, replicates: int = 2) -> list[ReplaySpec]:
    return plan_replays(log, [TS, UNIFORM], replicates={TS: replicates, UNIFORM: 1}, seed=3)


def pfnts(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(
        app, [str(part) for part in arguments], env={"COLUMNS": "250", "NO_COLOR": "1"}
    )
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.output


def test_plan_has_every_policy_on_the_log_itself_first(small: Log) -> None:
    listed = [(spec.policy.name, spec.number) for spec in planned(small)]
    assert listed == [("ts", 0), ("uniform", 0), ("ts", 1), ("uniform", 1), ("ts", 2)]


def test_values_are_those_of_replays_done_by_hand(small: Log) -> None:
    found = values(small, replayed(small, planned(small)))
    assert [value.policy for value in found] == [TS, UNIFORM]
    for number in (0, 1, 2):
        on = replicate(small, number, seed=3)
        done = replay(make("ts", arms=small.arms), on, rng=policy_rng(number, seed=3))
        np.testing.assert_array_equal(found[0].curves["snips"][number], snips(on, done.propensities).curve)
        assert found[0].curves["dr"][number][-1] == pytest.approx(dr(on, done.propensities).value)
    assert found[0].final("snips").value == found[0].curves["snips"][0][-1]
    assert found[0].average("snips").value == pytest.approx(np.nanmean(found[0].curves["snips"][0]))
    assert len(found[1].final("dr").replicates) == 1


def test_finished_replays_are_read_and_not_run_again(
    small: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path / "kept")
    first = list(run_all(prepare(planned(small, 1), inputs=small), store=store))
    monkeypatch.setattr(module, "replay", lambda *a, **k: pytest.fail("ran a finished replay again"))
    second = list(run_all(prepare(planned(small, 1), inputs=small), store=store))
    for before, after in zip(first, second, strict=True):
        assert before.spec == after.spec
        np.testing.assert_array_equal(before.result.propensities, after.result.propensities)
        np.testing.assert_array_equal(before.result.matched, after.result.matched)
        assert before.result.seconds == after.result.seconds
    assert len(list((tmp_path / "kept").iterdir())) == 4
    assert list(store) == [], "a replay is no simulation"


def test_folder_takes_replays_of_several_logs(small: Log, tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for log in (small, small.first(5)):
        assert len(list(run_all(prepare(planned(log, 0), inputs=log), store=store))) == 3
    assert len(store.folders()) == 6


def test_key_depends_on_everything_that_decides_the_outcome(small: Log) -> None:
    base = ReplaySpec(TS, identity="none", number=0, seed=3, rounds=small.rounds)
    assert (base.title, replace(base, number=1).title) == ("ts on the log", "ts on resampled log 1")
    others = [
        replace(base, policy=UNIFORM),
        replace(base, identity="code"),
        replace(base, number=1),
        replace(base, seed=4),
    ]
    keys = [job(spec, inputs=small).key for spec in [base, *others]]
    assert len({*keys, job(base, inputs=small.first(11)).key}) == 6


def test_log_is_hashed_once_for_all_its_replays_here_and_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"x": [1, 2, 3, 4], "sent": ["a", "b", "a", "b"], "opened": [0, 1, 1, 0]}
    log = log_from_columns(columns, Roles("sent", "opened", {"a": 0.5, "b": 0.5}))
    whole, hashed = log_module._identity, []
    monkeypatch.setattr(log_module, "_identity", lambda value: hashed.append(value) or whole(value))
    specs = plan_replays(log, [TS, UNIFORM], replicates={TS: 5, UNIFORM: 5}, seed=3)
    jobs = prepare(specs, inputs=log)
    assert len(hashed) == 10, "each number once, and each text"
    travelled = pickle.loads(pickle.dumps(jobs[0]))
    assert isinstance(work(travelled, lambda *_: None, elsewhere=True), Finished)
    assert len(hashed) == 10
    assert log.take([0, 1]).fingerprint() != log.fingerprint()


@pytest.fixture
def uneven(small: Log) -> Log:
    """Some people have many rounds, some a few; one of three has most of them."""
    assert small.clusters is not None
    return small.take(
        np.flatnonzero((small.clusters < 3) & ((small.clusters == 0) | (np.arange(60) // 12 % 2 == 0)))
    )


def test_people_with_unequal_rounds_have_a_page(uneven: Log, tmp_path: Path) -> None:
    specs = plan_replays(uneven, [TS, UNIFORM], replicates={TS: 12, UNIFORM: 12}, seed=3)
    found = values(uneven, replayed(uneven, specs))
    assert len({len(curve) for curve in found[0].curves["snips"]}) > 1
    chart = value_chart(uneven, found)
    # The end of the chart is the end of every log, however many rounds it has.
    assert chart.panels[0].lines[0].y[-1] == found[0].final("snips").value  # type: ignore[index]
    assert write_report(uneven, found, tmp_path / "page.html", title="uneven").exists()


def test_resampled_log_of_one_person_has_no_doubly_robust_estimate(uneven: Log, tmp_path: Path) -> None:
    two = uneven.first(2)
    alone = [number for number in range(1, 9) if len(np.unique(replicate(two, number, seed=3).origins)) == 1]
    assert 0 < len(alone) < 8
    specs = plan_replays(two, [TS], replicates={TS: 8}, seed=3)
    (value,) = values(two, replayed(two, specs))
    assert len(value.final("snips").replicates) == 8
    assert len(value.final("dr").replicates) == 8 - len(alone)
    assert np.isfinite(value.final("dr").replicates).all()


def test_log_of_one_person_is_evaluated_without_a_check(uneven: Log, tmp_path: Path) -> None:
    one = uneven.first(1)
    specs = plan_replays(one, [TS, UNIFORM], replicates={TS: 2, UNIFORM: 2}, seed=3)
    found = values(one, replayed(one, specs))
    assert np.isnan(found[0].final("dr").value)
    assert "—" in write_report(one, found, tmp_path / "page.html", title="one").read_text()


def never(spec: ReplaySpec, log: Log) -> Run:
    """A replay of a policy that would always have taken the third action."""
    on = replicate(log, spec.number, seed=spec.seed)
    propensities = np.tile([0.0, 0.0, 1.0], (on.rounds, 1))
    return Run(spec, Replay(propensities, np.full(on.rounds, 2), np.zeros(on.rounds, dtype=bool), 0.1))


def test_policy_that_would_never_have_done_what_was_done_is_said_to_be_unknown(
    small: Log, tmp_path: Path
) -> None:
    """And the others are evaluated: nothing is lost of what was replayed for them."""
    log = small.take(np.flatnonzero(small.actions < 2))
    specs = plan_replays(log, [TS, UNIFORM], replicates={TS: 4, UNIFORM: 4}, seed=3)
    listed = replayed(log, [spec for spec in specs if spec.policy == TS])
    found = values(log, [*(never(spec, log) for spec in specs if spec.policy == UNIFORM), *listed])
    assert np.isnan(found[0].final("snips").value)
    assert np.isnan(found[0].average("snips").value)
    assert np.isfinite(found[1].final("snips").interval()).all()
    text = " ".join(verdict(log, found))
    assert "Of uniform the log says nothing" in text
    assert "ts has the highest estimate of the policies" in text
    assert all_gaps(found, "snips") == []
    page = write_report(log, found, tmp_path / "page.html", title="never").read_text()
    assert "nan%" not in page
    assert "Of uniform the log says nothing" in " ".join(verdict(log, found[:1]))


def test_resampled_log_that_says_nothing_of_a_policy_is_paired_with_nothing(small: Log) -> None:
    specs = plan_replays(small, [TS, UNIFORM], replicates={TS: 3, UNIFORM: 3}, seed=3)
    without = small.take(np.flatnonzero(small.actions < 2))
    made = replayed(small, specs)
    curves = [value.curves["snips"] for value in values(small, made)]
    (hidden,) = [done for done in made if (done.spec.policy, done.spec.number) == (UNIFORM, 2)]
    unknown = np.full(without.rounds, np.nan)
    shown = dict(zip(("ts", "uniform"), ([*curves[0]], [*curves[1]]), strict=True))
    shown["uniform"][hidden.spec.number] = unknown
    difference = next(gap.difference for gap in gaps(shown) if (gap.policy, gap.measure) == ("ts", "final"))
    ends = [(curves[0][number][-1], curves[1][number][-1]) for number in (1, 3)]
    assert difference.replicates.tolist() == [ours - theirs for ours, theirs in ends]


@pytest.mark.parametrize("pay", [0.3, 1 / 3])
def test_level_rewards_are_no_lead(clear: Log, pay: float) -> None:
    """Whoever decides, a round pays the same; sums of it differ in their last digits."""
    level = replace(clear.take(np.arange(60)), rewards=np.full(60, pay))
    specs = plan_replays(level, [TS, UNIFORM], replicates={TS: 3, UNIFORM: 3}, seed=3)
    found = values(level, replayed(level, specs))
    said = " ".join(verdict(level, found))
    assert "would have earned more" not in said.replace("does not show that it would have earned more", "")
    assert "would have earned less" not in said
    assert "Its interval lies above" not in said
    assert [row[-1].text for row in lead_table(found).rows] == ["open"] * 8


def test_numbers_too_large_to_be_summed_have_no_value() -> None:
    assert readable(np.inf) == "—"
    assert readable(1.0, -np.inf, np.inf) == "1.000"


def test_attention_gets_a_compact_identity(small: Log, five_rows: Log) -> None:
    assert chosen_identity(small, PolicySpec("pfn-ts")) == "code"
    assert chosen_identity(small, PolicySpec("bf-ts")) == "code"
    assert chosen_identity(small, PolicySpec.of("pfn-ts", backbone="linear")) == "one-hot"
    assert chosen_identity(small, PolicySpec("lin-ts")) == "one-hot"
    assert chosen_identity(small, UNIFORM) == "none"
    assert chosen_identity(five_rows, PolicySpec("lin-ts")) == "none"
    crowd = simulated_drinkless(rng=np.random.default_rng(0), people=1001, days=1)
    assert chosen_identity(crowd, PolicySpec("lin-ts")) == "code"


def test_report_is_one_page_with_all_its_pictures(small: Log, tmp_path: Path) -> None:
    found = values(small, replayed(small, planned(small)))
    page = write_report(small, found, tmp_path / "new" / "page.html", title="A & B").read_text()
    assert "<h1>A &amp; B</h1>" in page
    assert (page.count('data-board="'), page.count("<figure")) == (1, 2)
    assert not re.search(r"(src|href)=.?(http|/)", page)
    for gap in all_gaps(found, "snips"):
        low, high = gap.difference.interval()
        assert readable(gap.difference.value, low, high, signed=True) in page
    assert readable(found[0].final("snips").value, *found[0].final("snips").interval()) in page


def test_report_of_one_policy_without_replicates(small: Log, tmp_path: Path) -> None:
    found = values(small, replayed(small, plan_replays(small, [TS], replicates={TS: 0}, seed=3)))
    page = write_report(small, found, tmp_path / "page.html", title="one").read_text()
    assert (page.count('data-board="'), page.count("<figure")) == (1, 1)
    with pytest.raises(ValueError, match="at least one policy"):
        write_report(small, [], tmp_path / "page.html", title="none")


def test_tables_fit_a_terminal_of_80_columns_uncut(small: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    long = PolicySpec.of("lin-ts", intercept=False, penalty=0.125, warmup=10)
    specs = [TS, long]
    listed = plan_replays(small, specs, replicates=dict.fromkeys(specs, 2), seed=3)
    found = values(small, replayed(small, listed))
    file = io.StringIO()
    monkeypatch.setattr("pfnts.cli.console.terminal", PlainConsole(width=80, file=file))
    for table in (value_table(found), weight_table(found), action_table(small)):
        show(table)
    text = file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for value in found:
        for spread in (value.final("snips"), value.average("snips"), value.final("dr")):
            value_in_words, _, interval = readable(spread.value, *spread.interval()).partition(" ")
            assert value_in_words in text
            assert interval in text


def test_command_on_the_stand_in(tmp_path: Path) -> None:
    arguments = ("ope", "drinkless-sim", "--people", "10", "--policy", "ts", "--policy", "uniform")
    text = pfnts(*arguments, "--replicates", "2", "--fewer", "uniform=0", "--out", tmp_path)
    assert "uniform on the log" in text
    assert "ts on resampled log 2" in text
    assert "uniform on resampled log 1" not in text
    assert "What was done earned" in text
    assert (tmp_path / "report.html").exists()
    again = pfnts(*arguments, "--replicates", "2", "--fewer", "uniform=0", "--out", tmp_path)
    assert "4 replays, of which 4 were finished before." in again
    assert text.splitlines()[-5:] == again.splitlines()[-5:]


def test_command_on_a_file(tmp_path: Path, small: Log) -> None:
    assert small.clusters is not None
    lines = ["who,day,score,age,sent,opened"]
    for t in range(small.rounds):
        score, age = small.contexts[t, :2]
        lines.append(f"{small.clusters[t]},{t // 12},{score},{age},{small.logged(t)},{small.rewards[t]}")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    text = pfnts(
        "ope", tmp_path / "log.csv", "--action", "sent", "--reward", "opened", "--cluster", "who",
        "--time", "day", "--propensity", "none=0.4,standard=0.3,new=0.3", "--policy", "lin-ts",
        "--replicates", "0", "--identity", "none", "--out", tmp_path / "out",
    )  # fmt: skip
    done = replay(
        make("lin-ts", arms=small.arms),
        Log(
            contexts=small.standardized().contexts[:, :2],
            features=("score", "age"),
            arms=small.arms,
            actions=small.actions,
            rewards=small.rewards,
            propensities=small.propensities,
        ),
        rng=policy_rng(0, seed=42),
    )
    assert readable(snips(small, done.propensities).value) in text


def test_ctrl_c_keeps_finished_replays_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    run = module.replay

    def interrupted(*arguments: object, **options: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "replay", interrupted)
    arguments = (
        "ope",
        "drinkless-sim",
        "--people",
        "5",
        "--policy",
        "ts",
        "--replicates",
        "4",
        "--workers",
        "1",
    )
    text = pfnts(*arguments, "--workers", "1", "--out", tmp_path, code=130)
    assert "2 of 5 replays are kept" in text
    assert len(list(tmp_path.glob("*/run.json"))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["log.csv", "--action", "a", "--reward", "r"],
            "log.csv: file must exist",
        ),
        (["drinkless-sim", "--policy", "unifrom"], "policy must be one of"),
        (
            ["drinkless-sim", "--policy", "ts", "--fewer", "lin-ts=3"],
            "--fewer must be policy=number for one of ts",
        ),
        (
            ["drinkless-sim", "--policy", "ts", "--identity", "name"],
            "--identity must be auto, none, one-hot, code",
        ),
        (["drinkless-sim", "--policy", "ts", "--people", "400"], "people must be between 1 and the 349"),
        (["drinkless", "--data", "nowhere"], "https://osf.io/w3szp"),
    ],
)
def test_mistakes_are_explained_without_a_traceback(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    text = pfnts("ope", *arguments, "--out", tmp_path / "out", code=2)
    assert message in text
    assert "Traceback" not in text
    assert not (tmp_path / "out").exists()


def test_propensities_as_they_are_written() -> None:
    assert parse_propensity("p") == "p"
    assert parse_propensity("a=0.25,b=q") == {"a": 0.25, "b": "q"}
    for wrong in ("a=0.5,b", "=0.5", "a=0.5,a=0.5", "a="):
        with pytest.raises(ValueError, match="--propensity must be written"):
            parse_propensity(wrong)


def test_counts_and_identities_as_they_are_written() -> None:
    assert counts([TS, UNIFORM], 30, ["ts=2"]) == {TS: 2, UNIFORM: 30}
    assert counts([TS], 3, ["ts=9"]) == {TS: 3}
    assert identity_of("auto") is None
    assert identity_of("code") == "code"


def valued(policy: PolicySpec, value: float, spread: float) -> PolicyValue:
    """A policy with that value, on a log and on thirty resampled ones."""
    ends = [value, *(value + spread * np.linspace(-1, 1, 30))]
    curves = tuple(np.full(5, end) for end in ends)
    diagnostics = WeightDiagnostics(5.0, 1.0, 1.0, 1.0, 2.0, 0.0)
    return PolicyValue(policy, "none", {"snips": curves, "dr": curves}, np.ones(5), diagnostics, 1, 1.0)


@pytest.fixture
def clear() -> Log:
    """Both arms pay 1 in half of their rounds; what was done is known to about 0.02."""
    t = np.arange(10_000)
    return Log(
        contexts=np.zeros((len(t), 1)), features=("x",), arms=("a", "b"), actions=t % 2,
        rewards=(t // 2 % 2).astype(float), propensities=np.full(len(t), 0.5),
    )  # fmt: skip


def test_what_was_done_and_fixed_arms_are_valued_by_hand(clear: Log) -> None:
    done, a, b = baselines(clear)
    assert [each.name for each in (done, a, b)] == ["what was done", "always a", "always b"]
    assert (done.value, a.value, b.value) == (0.5, 0.5, 0.5)
    assert done.high - done.value == pytest.approx(1.96 * 0.5 / 100, rel=1e-3)


def test_what_one_person_earned_says_nothing_of_others() -> None:
    rewards = np.array([1.0, 2.0, 3.0, 4.0])
    for groups, width in (([0, 0, 0, 0], None), ([0, 0, 1, 1], 2 * 1.96 * 1.0)):
        log = Log(
            contexts=np.zeros((4, 1)),
            features=("x",),
            arms=("a", "b"),
            actions=np.array([0, 1, 0, 1]),
            rewards=rewards,
            propensities=np.full(4, 0.5),
            clusters=np.array(groups),
        )
        done, *_ = baselines(log)
        assert done.value == 2.5
        if width is None:
            assert np.isnan([done.low, done.high]).all()
        else:  # two people with means 1.5 and 3.5: the standard error of their mean is 1
            assert done.high - done.low == pytest.approx(width, rel=1e-3)


def test_nobody_is_best_while_intervals_overlap(clear: Log) -> None:
    level = " ".join(verdict(clear, [valued(TS, 0.9, 0.01), valued(UNIFORM, 0.895, 0.01)]))
    assert "What was done earned 0.5000 [0.4902, 0.5098] a round." in level
    assert "ts would have earned more" in level
    assert "Whether it is better than uniform cannot be concluded" in level
    ahead = " ".join(verdict(clear, [valued(TS, 0.9, 0.01), valued(UNIFORM, 0.7, 0.01)]))
    assert "Its interval lies above those of all other policies and of every fixed arm." in ahead
    unknown = " ".join(verdict(clear, [valued(TS, 0.501, 0.01)]))
    assert "the log does not show that it would have earned more" in unknown
    assert "always a or always b cannot be concluded" in unknown
    worse = " ".join(verdict(clear, [valued(TS, 0.3, 0.01)]))
    assert "Every policy would have earned less" in worse
    for said in (level, ahead, unknown, worse):
        assert "best" not in said


def test_without_resampled_logs_nothing_is_concluded(small: Log) -> None:
    found = values(small, replayed(small, plan_replays(small, [TS], replicates={TS: 0}, seed=3)))
    assert "nothing can be concluded; ask for --replicates 30" in " ".join(verdict(small, found))


def test_actions_may_have_any_name(tmp_path: Path) -> None:
    lines = ["x,sent,opened"] + [f"{t % 3},{('[/promo]', '[bold]')[t % 2]},{t % 5 == 0:d}" for t in range(60)]
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    text = pfnts(
        "ope", tmp_path / "log.csv", "--action", "sent", "--reward", "opened", "--propensity",
        "[/promo]=0.5,[bold]=0.5", "--policy", "uniform", "--replicates", "0", "--out", tmp_path / "out",
    )  # fmt: skip
    assert "[/promo]" in text
    assert "always [bold]" in (tmp_path / "out" / "report.html").read_text()


def test_replays_of_version_0_1_are_left_alone_and_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "ts_0_0123456789abcdef.npz").write_bytes(b"old")
    text = pfnts(
        "ope", "drinkless-sim", "--people", "5", "--policy", "ts", "--replicates", "0", "--out", tmp_path
    )
    assert "replays of version 0.1" in text
    assert (tmp_path / "ts_0_0123456789abcdef.npz").read_bytes() == b"old"


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Path, list[dict[str, object]]]:
    """A log with a category, and a policy that has learned from other rounds of the same shop."""
    rng = np.random.default_rng(0)

    def rounds(n: int) -> list[dict[str, object]]:
        ages, plans = rng.uniform(20, 70, size=n).tolist(), rng.choice(["free", "paid"], size=n).tolist()
        return [{"age": age, "plan": plan} for age, plan in zip(ages, plans, strict=True)]

    policy = make("lin-ts", arms=["no", "yes"])
    for context in rounds(40):
        arm = ["no", "yes"][int(rng.integers(2))]
        policy.update(context, arm=arm, reward=float((arm == "yes") == (context["plan"] == "paid")))
    policy.save(tmp_path / "shop.policy")
    logged = rounds(60)
    lines = ["row,plan,age,sent,opened"]
    for i, context in enumerate(logged):
        paid = int((i % 2 == 1) == (context["plan"] == "paid"))
        lines.append(f"{i},{context['plan']},{context['age']!r},{('no', 'yes')[i % 2]},{paid}")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    return tmp_path, logged


OPE = ("--action", "sent", "--reward", "opened", "--propensity", "no=0.5,yes=0.5", "--replicates", "0")


def test_saved_policy_sees_its_own_columns_and_goes_on_from_what_it_knows(
    shop: tuple[Path, list[dict[str, object]]],
) -> None:
    folder, logged = shop
    saved = f"file:{folder / 'shop.policy'}"
    text = pfnts(
        "ope", folder / "log.csv", *OPE, "--policy", saved, "--policy", "ts", "--out", folder / "out"
    )
    # By hand, round by round: columns in another order than in the file, one of them of no use to it.
    policy, rng = make("lin-ts", arms=["no", "yes"]).load(folder / "shop.policy"), policy_rng(0, seed=42)
    weights, rewards = [], []
    for i, context in enumerate(logged):
        decision, _ = policy.propose(context, rng=rng)
        weights.append(decision.propensities[i % 2] / 0.5)
        rewards.append(float((i % 2 == 1) == (context["plan"] == "paid")))
        if decision.index == i % 2:
            policy.update(context, arm=decision.arm, reward=rewards[-1])
    value = float(np.dot(weights, rewards) / np.sum(weights))
    assert value > 0.8, "it knows what pays"
    assert readable(value) in text
    assert "began with what was learned before: if any of that was learned from this log" in text
    assert saved in (folder / "out" / "report.html").read_text()


def test_another_saved_policy_of_the_same_name_is_another_replay(
    shop: tuple[Path, list[dict[str, object]]],
) -> None:
    folder, _ = shop
    arguments = (
        "ope",
        folder / "log.csv",
        *OPE,
        "--policy",
        f"file:{folder / 'shop.policy'}",
        "--out",
        folder,
    )
    assert "1 replay, of which 0 were finished before." in pfnts(*arguments)
    assert "1 replay, of which 1 were finished before." in pfnts(*arguments)
    policy = make("ts", arms=["no", "yes"])
    policy.save(folder / "shop.policy")
    assert "1 replay, of which 0 were finished before." in pfnts(*arguments)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), "No such file or directory"),
        (lambda path: path.write_bytes(b"PK"), "must be a saved policy, .* is not one or is damaged"),
        (lambda path: make("ts", arms=["no", "maybe"]).save(path), r"must have the arms \['no', 'yes'\]"),
    ],
)
def test_saved_policy_that_cannot_be_used_is_explained(
    damage: Callable[[Path], object], words: str, shop: tuple[Path, list[dict[str, object]]]
) -> None:
    folder, _ = shop
    damage(folder / "shop.policy")
    text = pfnts("ope", folder / "log.csv", *OPE, "--policy", f"file:{folder / 'shop.policy'}", code=2)
    assert re.search(words, text)
    assert "Traceback" not in text


def test_saved_policy_whose_columns_the_log_lacks_is_explained(
    shop: tuple[Path, list[dict[str, object]]],
) -> None:
    folder, _ = shop
    text = (folder / "log.csv").read_text()
    (folder / "log.csv").write_text(text.replace("plan,age", "tariff,age", 1))
    arguments = ("ope", folder / "log.csv", *OPE, "--policy", f"file:{folder / 'shop.policy'}")
    assert "policy must find its columns in the log" in pfnts(*arguments, "--out", folder / "out", code=1)
