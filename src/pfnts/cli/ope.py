"""``pfnts ope``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import numpy as np
import typer

from pfnts.cli.console import leave_with_failures, plain_warnings, say, show, stoppable
from pfnts.cli.options import Address, Device, EngineName, Workers, chosen_engine, option
from pfnts.cli.progress import finish_all
from pfnts.cli.run import policy_grid
from pfnts.contexts import read_file
from pfnts.experiments import RunStore, prepare
from pfnts.experiments.ope_report import action_table, value_table, verdict, weight_table, write_report
from pfnts.experiments.replays import plan_replays, values
from pfnts.experiments.spec import PolicySpec
from pfnts.ope import Roles, read_drinkless, read_log, simulated_drinkless
from pfnts.ope.identity import Identity

PAPER = ("pfn-ts", "lin-ts", "rf-ts", "xgboost-ts", "bf-ts")
QUICK = ("pfn-ts", "lin-ts", "ts")


def ope(
    log: Annotated[
        str,
        typer.Argument(
            help="A CSV or Parquet file; or `drinkless`, or `drinkless-sim`, which needs no file."
        ),
    ],
    action: Annotated[str | None, option("Column of the action taken.")] = None,
    reward: Annotated[str | None, option("Column of the reward.")] = None,
    propensity: Annotated[
        str | None,
        option(
            "Column with the probability of the action taken; or `none=0.4,new=0.6`, a constant for "
            "each action; or `none=p_none,new=p_new`, a column for each."
        ),
    ] = None,
    cluster: Annotated[str | None, option("Column of the person; people are resampled.")] = None,
    time: Annotated[str | None, option("Column by which the rounds are ordered.")] = None,
    context: Annotated[
        list[str] | None, option("Column that policies see; repeat. Ids and dates only if named.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        option("Who is evaluated; repeat for more: `lin-ts:nu=0.1`, or `file:shop.policy`, a saved one."),
    ] = None,
    replicates: Annotated[int, option("Resampled logs for intervals; 0 gives none.", min=0)] = 30,
    fewer: Annotated[
        list[str] | None, option("Fewer of them for a slow policy: `bf-ts=3`; repeat for more.")
    ] = None,
    identity: Annotated[
        str, option("How policies see the person: auto, none, one-hot or code (three numbers).")
    ] = "auto",
    people: Annotated[int | None, option("Only the first so many people.", min=1)] = None,
    data: Annotated[Path | None, option("Folder with drinkless.csv.gz; PFNTS_DATA when left out.")] = None,
    seed: Annotated[int, option("The same seed gives the same replays.", min=0)] = 42,
    out: Annotated[Path, option("Folder of finished replays and of report.html.")] = Path("runs/ope"),
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    device: Device = "cpu",
) -> None:
    """Estimate what policies would have earned on a log of random decisions.

    Each policy replays the log and learns only where it would have done what was done. Its value is estimated
    by SNIPS and, as a check, by a doubly robust estimate; people are resampled and all is replayed again for
    the intervals. Finished replays are kept in OUT and never run again. `pfnts ope drinkless` is the paper's
    trial (its file is published at https://osf.io/w3szp); `pfnts ope drinkless-sim` resembles it.
    """
    if log == "drinkless":
        rounds = read_drinkless(data)
    elif log == "drinkless-sim":
        rounds = simulated_drinkless(rng=np.random.default_rng(seed))
    else:
        given = {"action": action, "reward": reward, "propensity": propensity}
        roles = roles_of(log, given, cluster=cluster, time=time, context=tuple(context or ()) or None)
        with plain_warnings():
            rounds = read_log(log, roles).standardized()
    rounds = rounds if people is None else rounds.first(people)
    default = PAPER if log == "drinkless" else QUICK
    specs = policy_grid(policy or default, arms=rounds.arms)
    some, told = counts(specs, replicates, fewer or []), identity_of(identity)
    planned = plan_replays(rounds, specs, replicates=some, identity=told, seed=seed)
    chosen = chosen_engine(engine, workers=workers, address=address, device=device)
    store = RunStore(out)
    jobs = prepare(planned, inputs=rounds, device=device)
    if any(out.glob("*_*_*.npz")):
        say(f"Note: replays of version 0.1 in {out} are left alone; they do not say what made them.")
    show(action_table(rounds))
    with stoppable(jobs, store):
        done, failures = finish_all(jobs, store=store, engine=chosen)
        leave_with_failures(failures)
        found = values(rounds, done)
        show(value_table(found))
        show(weight_table(found))
        for sentence in verdict(rounds, found):
            say(sentence)
        title = f"Off-policy evaluation: {Path(log).name}"
        path = write_report(rounds, found, out / "report.html", title=title)
    say(f"Curves, leads and weights are in {path}.")


def roles_of(log: str, given: Mapping[str, str | None], **others: Any) -> Roles:
    """Which column is what, where action, reward and propensity are all said."""
    if missing := [f"--{name}" for name, value in given.items() if value is None]:
        there = f"{log} has the columns {list(read_file(log).names)}"
        raise ValueError(
            f"a log of your own needs {' and '.join(missing)} to say which columns these are; {there}"
        )
    action, reward, propensity = map(str, given.values())
    return Roles(action, reward, parse_propensity(propensity), **others)


def parse_propensity(text: str) -> str | dict[str, float | str]:
    """Read a column's name, or a constant or column for each action: ``none=0.4,new=p_new``."""
    if "=" not in text:
        return text
    parsed: dict[str, float | str] = {}
    for item in text.split(","):
        arm, equals, value = item.partition("=")
        if not equals or not arm or not value or arm in parsed:
            raise ValueError(f"--propensity must be written action=value,action=value; got {text!r}")
        try:
            parsed[arm] = float(value)
        except ValueError:
            parsed[arm] = value
    return parsed


def identity_of(text: str) -> Identity | None:
    """Read --identity; None leaves it to the policy."""
    if text not in ("auto", *get_args(Identity)):
        raise ValueError(f"--identity must be auto, {', '.join(get_args(Identity))}; got {text!r}")
    return None if text == "auto" else cast(Identity, text)


def counts(specs: Sequence[PolicySpec], replicates: int, fewer: Sequence[str]) -> dict[PolicySpec, int]:
    """Resampled logs of each policy."""
    chosen = dict.fromkeys(specs, replicates)
    for item in fewer:
        name, _, number = item.rpartition("=")
        if name not in (known := [spec.name for spec in specs]) or not number.isdigit():
            raise ValueError(f"--fewer must be policy=number for one of {', '.join(known)}; got {item!r}")
        chosen |= {spec: min(int(number), replicates) for spec in specs if spec.name == name}
    return chosen
