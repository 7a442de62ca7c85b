"""What comes out of the log, goes into it from elsewhere, and is erased from it."""

from __future__ import annotations

import csv
import io
import json
import shlex
import time

import numpy as np
import pytest

from pfnts.ope import Roles, dr, read_log
from pfnts.service.check import check
from pfnts.service.export import command
from pfnts.service.export import rows as exported
from pfnts.service.store import open_store
from tests.service.asking import SetClock, asking, context, shop
from tests.service.processes import until


def rounds(ask, n, seed=0, **more):
    """Serve decisions whose rewards depend on context and arm; the mean reward of the policy's decisions."""
    rng = np.random.default_rng(seed)
    earned = []
    for i in range(n):
        x = float(rng.normal())
        body = {"decision_id": f"d{seed}-{i}", "context": context(x), "unit": f"u{i % 50}", **more}
        answer = ask.post("/shop/decisions", body).json()
        value = 1.0 + (x if answer["arm"] == "b" else -x) + float(rng.normal()) * 0.5
        ask.post(f"/shop/decisions/{body['decision_id']}/rewards", {"value": value})
        if answer["reason"] != "holdout":
            earned.append(value)
    return np.array(earned)


def test_ope_reads_the_export_and_agrees_with_what_was_earned(tmp_path):
    """The doubly robust value of the policy that was served is its realised mean reward, up to chance."""
    address = {"data": str(tmp_path / "data"), "database": None}
    with asking(address) as ask:
        shop(ask, holdout=0.1, explore=0.1)
        earned = rounds(ask, 300)
        table = ask.get("/shop/export")
        assert table.headers["content-type"].startswith("text/csv")
        state = ask.engine.experiment("shop").state
        call = shlex.split(command(state, "x.csv"))
    path = tmp_path / "shop.csv"
    path.write_text(table.text)
    options = dict(zip(call[3::2], call[4::2], strict=True))
    contexts = [value for name, value in zip(call[3::2], call[4::2], strict=True) if name == "--context"]
    assert contexts == ["context.x", "context.plan"]
    roles = Roles(
        action=options["--action"],
        reward=options["--reward"],
        propensity={arm: f"p.{arm}" for arm in "ab"},
        time=options["--time"],
        context=tuple(contexts),
    )
    log = read_log(path, roles)
    assert log.rounds == len(earned)
    np.testing.assert_allclose(log.rewards, earned)
    estimate = dr(log, log.design)
    # Arms are drawn from the secret of the store, another one in each run: hence the wide interval.
    low, high = estimate.interval(0.9999)
    assert low <= earned.mean() <= high
    assert estimate.standard_error < 0.12


@pytest.mark.parametrize("default", [None, 0.0])
def test_ope_agrees_though_rewards_are_late_lost_and_doubled(tmp_path, default):
    """What counts is what the service said would count: the first reward in time, or the default."""
    from typer.testing import CliRunner

    from pfnts.cli import app

    world, rng = SetClock(), np.random.default_rng(1)
    address = {"data": str(tmp_path / "data"), "database": None}
    counted, due = {}, []
    with asking(address, clock=world.clock()) as ask:
        shop(ask, holdout=0.1, explore=0.1, reward={"wait": 60, "default": default})

        def hand_in(id, value):
            status = ask.post(f"/shop/decisions/{id}/rewards", {"value": value}).json()["status"]
            if status == "learned":
                assert id not in counted
                counted[id] = value

        policys = []
        for i in range(300):
            x = float(rng.normal())
            body = {"decision_id": f"d{i}", "context": context(x), "unit": f"u{i}"}
            answer = ask.post("/shop/decisions", body).json()
            if answer["reason"] != "holdout":
                policys.append(f"d{i}")
            value = 1.0 + (x if answer["arm"] == "b" else -x) + float(rng.normal()) * 0.5
            fate = rng.random()  # lost, too late, twice with another value, or some seconds late
            if fate > 0.05:
                due.append((world.wall + (90 if fate < 0.1 else rng.uniform(0, 50)), f"d{i}", value))
            if 0.1 < fate < 0.15:
                due.append((world.wall + 55, f"d{i}", value + 7))
            world.pass_(1)
            for arrival in sorted(one for one in due if one[0] <= world.wall):
                due.remove(arrival)
                hand_in(*arrival[1:])
        world.pass_(200)
        for _, id, value in sorted(due):
            hand_in(id, value)
        until(lambda: ask.engine.experiment("shop").state.counts["settled"] == 300)
        counts = ask.get("/shop/report").json()["rewards"]
        assert counts["late"] > 3
        assert counts["missing"] + counts["default"] == 300 - len(counted) > 10
    table = tmp_path / "shop.csv"
    run = CliRunner().invoke
    done = run(app, ["export", "shop", "--data", address["data"], "--out", str(table)])
    printed = done.output[done.output.index("pfnts ope") + len("pfnts ") :]
    earned = {id: counted.get(id, default) for id in policys}
    earned = {id: value for id, value in earned.items() if value is not None}
    rows = {row["decision_id"]: float(row["reward"]) for row in csv.DictReader(table.open())}
    assert rows == pytest.approx(earned), "the export has what counted, and no more"
    roles = Roles(
        action="arm",
        reward="reward",
        propensity={arm: f"p.{arm}" for arm in "ab"},
        time="time",
        context=("context.x", "context.plan"),
    )
    log = read_log(table, roles)
    low, high = dr(log, log.design).interval(0.9999)
    assert low <= np.mean(list(earned.values())) <= high
    # And by the command that the export printed, with few replays of the quickest policy.
    call = ["--policy", "uniform", "--replicates", "2", "--workers", "1", "--out", str(tmp_path / "replays")]
    done = run(app, [*shlex.split(printed), *call])
    assert done.exit_code == 0, done.output
    assert "uniform" in done.output


def test_the_value_of_a_single_arm_is_about_everybody_not_only_those_who_got_it(tmp_path):
    """Each arm pays 1 on the whole, and much more to those whom the policy gives it to."""
    with asking({"data": str(tmp_path / "data"), "database": None}) as ask:
        shop(ask, explore=0.5)
        rounds(ask, 300)
        found = ask.get("/shop/report").json()
        served = {arm["id"]: arm["mean"] for arm in found["arms"]}
        for arm, value in found["single_arms"].items():
            # Five standard errors: arms are drawn from the secret of the store, another one in each run.
            assert abs(value["mean"] - 1.0) < 5 * (value["high"] - value["low"]) / 3.92
            assert value["high"] - value["low"] < 1.0
            assert value["mean"] < served[arm]
        assert found["single_arms"].keys() == {"a", "b"}


def test_the_command_line_exports_checks_and_manages_keys(tmp_path):
    from typer.testing import CliRunner

    from pfnts.cli import app

    data = str(tmp_path / "data")
    with asking({"data": data, "database": None}) as ask:
        shop(ask, holdout=0.2)
        rounds(ask, 30)
    run = CliRunner().invoke
    done = run(app, ["export", "shop", "--data", data, "--out", str(tmp_path / "x.csv")])
    assert done.exit_code == 0, done.output
    assert "pfnts ope" in done.output
    rows = list(csv.DictReader((tmp_path / "x.csv").open()))
    everyone = run(
        app, ["export", "shop", "--data", data, "--out", str(tmp_path / "all.parquet"), "--group", "all"]
    )
    assert everyone.exit_code == 0, everyone.output
    import pandas as pd

    frame = pd.read_parquet(tmp_path / "all.parquet")
    assert len(frame) == 30 > len(rows)
    assert set(frame["reason"]) > {"holdout"}
    checked = run(app, ["service", "check", "--data", data])
    assert (checked.exit_code, "consistent" in checked.output) == (0, True)
    made = run(app, ["keys", "add", "web", "--role", "reader", "--data", data])
    assert made.output.startswith("pfnts_")
    listed = run(app, ["keys", "list", "--data", data])
    assert "web" in listed.output
    key = made.output.strip().split("_")[1]
    assert run(app, ["keys", "revoke", key, "--data", data]).exit_code == 0
    assert run(app, ["keys", "revoke", key, "--data", data]).exit_code == 2
    assert run(app, ["export", "nothing", "--data", data]).exit_code == 2
    for words in (["export", "shop"], ["service", "check"], ["keys", "list"], ["keys", "revoke", "x"]):
        missing = run(app, [*words, "--data", str(tmp_path / "mistyped")])
        assert (missing.exit_code, "no pfnts.sqlite in" in missing.output) == (2, True), missing.output
    assert not (tmp_path / "mistyped").exists()
    assert run(app, ["serve", "--data", data, "--host", "0.0.0.0"]).exit_code == 2


def test_an_export_that_ends_half_way_leaves_the_one_before(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from pfnts.cli import app

    data, out = str(tmp_path / "data"), tmp_path / "my exports" / "shop.csv"
    with asking({"data": data, "database": None}) as ask:
        shop(ask)
        rounds(ask, 5)
    command = ["export", "shop", "--data", data, "--out", str(out)]
    done = CliRunner().invoke(app, command)
    assert shlex.split(done.output.splitlines()[-1])[:3] == ["pfnts", "ope", str(out)]
    before = out.read_bytes()

    def interrupted(*arguments, **options):
        yield "decision_id,time\n"
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("pfnts.service.export.csv_lines", interrupted)
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, "error: Input/output error" in done.output) == (2, True), done.output
    assert out.read_bytes() == before
    assert list(out.parent.iterdir()) == [out]


def test_the_check_finds_an_altered_log(tmp_path):
    address = {"data": str(tmp_path), "database": None}
    with asking(address) as ask:
        shop(ask)
        rounds(ask, 10)
    store = open_store(**address)
    assert [finding.problem for finding in check(store)] == [None]
    with store._transaction() as connection:
        connection.execute("UPDATE events SET data = replace(data, 'reward', 'default') WHERE position = 4")
    [finding] = check(store)
    assert "stood on another log" in finding.problem
    store.close()


def test_an_erased_person_is_gone_from_store_model_and_export(address):
    with asking(address) as ask:
        shop(ask)
        for i in range(12):
            body = {"decision_id": f"d{i}", "context": context(100.0 + i), "unit": f"u{i % 3}"}
            ask.post("/shop/decisions", body)
            ask.post(f"/shop/decisions/d{i}/rewards", {"value": i})
        ask.settle()
        answer = ask("DELETE", "/v1/experiments/shop/units/u1")
        assert answer.json()["erased"] == 4
        kept = [i for i in range(12) if i % 3 != 1]
        end = time.monotonic() + 10
        while True:
            live = ask.engine.experiment("shop")
            known = [e.id for e in live.version.policy.events if e.kind == "decided"]
            if known == [f"d{i}" for i in kept] or time.monotonic() > end:
                break
            time.sleep(0.01)
        assert known == [f"d{i}" for i in kept], "the model was made anew without them"
        assert [e.value for e in live.version.policy.events if e.kind == "rewarded"] == kept
        rows = list(csv.DictReader(io.StringIO(ask.get("/shop/export").text)))
        assert [row["decision_id"] for row in rows] == [f"d{i}" for i in kept]
        again = ask.post(
            "/shop/decisions", {"decision_id": "d1", "context": context(101.0), "unit": "u1"}
        ).json()
        assert again["decision_id"] == "d1", "the answer is still known, though not to whom"
        assert "u1" not in json.dumps(ask.get("/shop/report").json()["recent"])
        assert ask("DELETE", "/v1/experiments/shop/units/u1").json()["erased"] == 0
        assert [finding.problem for finding in check(ask.engine.store)] == [None]


def test_an_arm_that_comes_while_an_export_goes_on_does_not_break_it(tmp_path):
    with asking({"data": str(tmp_path), "database": None}) as ask:
        shop(ask)
        rounds(ask, 5)
        live = ask.engine.experiment("shop")
        table = exported(ask.engine.store, live.state)
        first = next(table)
        ask.post("/shop/arms", {"id": "c"})
        rest = list(table)
        assert [row.keys() for row in rest] == [first.keys()] * 4


def test_imported_rows_of_an_erased_person_are_forgotten(address):
    with asking(address) as ask:
        shop(ask)
        rows = [
            {"context": context(i), "arm": "ab"[i % 2], "value": i, "unit": f"u{i % 3}"} for i in range(12)
        ]
        ask.post("/shop/imports", {"import_id": "old", "rows": rows})
        ask.settle()
        assert ask("DELETE", "/v1/experiments/shop/units/u1").json()["erased"] == 4
        live = ask.engine.experiment("shop")
        until(lambda: len(live.version.policy.events) == 8, 10)
        assert [e.value for e in live.version.policy.events] == [i for i in range(12) if i % 3 != 1]


def test_imported_rows_are_a_warm_start_and_count_once(address):
    with asking(address) as ask:
        shop(ask)
        rows = [{"context": context(i), "arm": "ab"[i % 2], "value": i % 2} for i in range(30)]
        done = ask.post("/shop/imports", {"import_id": "old", "rows": rows})
        assert done.json() == {"import_id": "old", "learned": 30, "duplicate": 0}
        again = ask.post("/shop/imports", {"import_id": "old", "rows": rows})
        assert again.json()["duplicate"] == 30
        ask.settle()
        answer = ask.post("/shop/decisions", {"context": context()}).json()
        assert answer["reason"] == "thompson", "no warm-up is left"
        wrong = [*rows, {"context": {"x": 1}, "arm": "a", "value": 1}]
        refused = ask.post("/shop/imports", {"import_id": "new", "rows": wrong})
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("row 31: context must have the 2 columns")
        assert ask.engine.experiment("shop").state.counts["observed"] == 30, "all or none"


def test_the_stream_gives_the_log_from_a_position_on(address):
    with asking(address) as ask:
        shop(ask)
        rounds(ask, 3)
        text = ask.get("/shop/events?after=2&follow=false").text
        found = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        assert [(one["position"], one["kind"]) for one in found] == [
            (3, "decided"),
            (4, "settled"),
            (5, "decided"),
            (6, "settled"),
        ]
        assert found[0]["context"].keys() == {"x", "plan"}
        again = ask.get("/shop/events?after=2&follow=false", headers={"Last-Event-ID": "5"}).text
        assert again.count("data: ") == 1, "a browser that comes back is not told everything again"


def test_an_experiment_without_a_schema_takes_it_from_the_first_context(address):
    with asking(address) as ask:
        shop(ask, schema=None)
        first, second = {"context": {"x": 1.0, "plan": "free"}}, {"context": {"y": 1.0}}
        answers = ask.together([("POST", "/v1/experiments/shop/decisions", body) for body in (first, second)])
        assert sorted(answer.status_code for answer in answers) == [200, 422], "one of them came first"
        ask.settle()
    with asking(address) as ask:
        assert ask.settle().state.schema is not None


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_an_export_of_nothing_has_its_columns(tmp_path, format):
    with asking({"data": str(tmp_path), "database": None}) as ask:
        shop(ask)
        answer = ask.get(f"/shop/export?format={format}")
        assert answer.status_code == 200
        if format == "csv":
            assert answer.text.strip().endswith("p.a,p.b,context.x,context.plan")
