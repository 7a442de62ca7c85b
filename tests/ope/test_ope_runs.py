"""Replays kept on disk, the values made of them, and the command."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from pfnts.cli import app
from pfnts.cli.ope import counts, identity_of, parse_propensity, value_table, weight_table
from pfnts.experiments import CorruptRunError, PolicySpec
from pfnts.experiments import ope_runs as module
from pfnts.experiments.ope_report import all_gaps, write_report
from pfnts.experiments.ope_runs import (
    PolicyValue,
    ReplaySpec,
    ReplayStore,
    chosen_identity,
    plan_replays,
    replay_all,
    values,
)
from pfnts.ope import Log, dr, replay, simulated_drinkless, snips
from pfnts.ope.bootstrap import policy_rng, replicate
from pfnts.policies import make

TS, UNIFORM = PolicySpec("ts"), PolicySpec("uniform")


@pytest.fixture
def small() -> Log:
    return simulated_drinkless(rng=np.random.default_rng(1), people=12, days=5)


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
    found = values(small, list(replay_all(small, planned(small))))
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
    store = ReplayStore(tmp_path / "kept")
    first = list(replay_all(small, planned(small, 1), store=store))
    monkeypatch.setattr(module, "replay", lambda *a, **k: pytest.fail("ran a finished replay again"))
    for (spec, before), (again, after) in zip(
        first, replay_all(small, planned(small, 1), store=store), strict=True
    ):
        assert spec == again
        np.testing.assert_array_equal(before.propensities, after.propensities)
        np.testing.assert_array_equal(before.matched, after.matched)
        assert before.seconds == after.seconds
    assert len(list((tmp_path / "kept").iterdir())) == 4


def test_key_depends_on_everything_that_decides_the_outcome(small: Log) -> None:
    base = ReplaySpec(small.fingerprint(), TS, identity="none", number=0, seed=3)
    others = [
        ReplaySpec("other", TS, identity="none", number=0, seed=3),
        ReplaySpec(base.log, UNIFORM, identity="none", number=0, seed=3),
        ReplaySpec(base.log, TS, identity="code", number=0, seed=3),
        ReplaySpec(base.log, TS, identity="none", number=1, seed=3),
        ReplaySpec(base.log, TS, identity="none", number=0, seed=4),
    ]
    assert len({spec.key() for spec in [base, *others]}) == 6


def test_damaged_file_is_explained(small: Log, tmp_path: Path) -> None:
    store = ReplayStore(tmp_path)
    (spec, _), *_ = replay_all(small, planned(small), store=store)
    store.path(spec).write_bytes(b"PK")
    with pytest.raises(CorruptRunError, match="delete it to run it anew"):
        store.load(spec)


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
    found = values(small, list(replay_all(small, planned(small))))
    page = write_report(small, found, tmp_path / "new" / "page.html", title="A & B").read_text()
    assert "<h1>A &amp; B</h1>" in page
    assert (page.count("data-board="), page.count("<figure>")) == (1, 2)
    assert not re.search(r"(src|href)=.?(http|/)", page)
    for gap in all_gaps(found, "snips"):
        assert f"{gap.difference.value:+.4f}" in page
    assert f">{found[0].final('snips').value:.4f} [" in page


def test_report_of_one_policy_without_replicates(small: Log, tmp_path: Path) -> None:
    found = values(small, list(replay_all(small, plan_replays(small, [TS], replicates={TS: 0}, seed=3))))
    page = write_report(small, found, tmp_path / "page.html", title="one").read_text()
    assert (page.count("data-board="), page.count("<figure>")) == (1, 1)
    with pytest.raises(ValueError, match="at least one policy"):
        write_report(small, [], tmp_path / "page.html", title="none")


def test_tables_fit_a_terminal_of_80_columns_uncut(small: Log) -> None:
    long = PolicySpec.of("lin-ts", intercept=False, penalty=0.125, warmup=10)
    specs = [TS, long]
    listed = plan_replays(small, specs, replicates=dict.fromkeys(specs, 2), seed=3)
    found = values(small, list(replay_all(small, listed)))
    console = Console(width=80, record=True, file=io.StringIO())
    for table in (value_table(found), weight_table(found)):
        console.print(table)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    for value in found:
        for spread in (value.final("snips"), value.average("snips"), value.final("dr")):
            low, high = spread.interval()
            assert f"{spread.value:.4f}" in text
            assert f"[{low:.4f}, {high:.4f}]" in text


def test_command_on_the_stand_in(tmp_path: Path) -> None:
    arguments = ("ope", "drinkless-sim", "--people", "10", "--policy", "ts", "--policy", "uniform")
    text = pfnts(*arguments, "--replicates", "2", "--fewer", "uniform=0", "--out", tmp_path)
    assert "uniform on the log" in text
    assert "ts on resampled log 2" in text
    assert "uniform on resampled log 1" not in text
    assert "best after a fifth of the rounds" in text
    assert (tmp_path / "report.html").exists()
    again = pfnts(*arguments, "--replicates", "2", "--fewer", "uniform=0", "--out", tmp_path)
    assert again.count("finished before") == 2
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
    assert f"{snips(small, done.propensities).value:.4f}" in text


def test_ctrl_c_keeps_finished_replays_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    run = module.replay

    def interrupted(*arguments: object, **options: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "replay", interrupted)
    arguments = ("ope", "drinkless-sim", "--people", "5", "--policy", "ts", "--replicates", "4")
    text = pfnts(*arguments, "--out", tmp_path, code=130)
    assert "2 of 5 replays are kept" in text
    assert len(list(tmp_path.glob("*.npz"))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["log.csv", "--action", "a", "--reward", "r"],
            "--action, --reward and --propensity, got 'a', 'r' and None",
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


def test_best_policy_is_named_by_its_label(small: Log) -> None:
    from pfnts.cli.ope import verdict

    def flat(policy: PolicySpec, heights: list[float]) -> PolicyValue:
        curve = np.array(heights)
        diagnostics = values(small, list(replay_all(small, planned(small)[:1])))[0].diagnostics
        return PolicyValue(
            policy, "none", {"snips": (curve,), "dr": (curve,)}, np.ones(5), diagnostics, 1, 1.0
        )

    text = verdict([flat(TS, [9, 1, 1, 1, 1.5]), flat(UNIFORM, [0, 0, 0, 0, 2.0])])
    assert text.count("ts[/]") == 2
    assert "at the end: [bold]uniform" in text
