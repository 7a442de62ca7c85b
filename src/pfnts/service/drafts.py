"""Entries on their way into the log: decisions and what comes of them."""

from __future__ import annotations

import hashlib
import hmac
import math
from typing import Any

import numpy as np
from numpy.random import Generator

from pfnts.events import Decided
from pfnts.events.event import to_dict
from pfnts.policies.decision import Decision
from pfnts.service.clock import iso
from pfnts.service.errors import Invalid
from pfnts.service.experiment import ExperimentState, served
from pfnts.service.schemas import DecisionRequest
from pfnts.service.store import Draft, Record
from pfnts.service.store.base import dumps

_SHOWN_ARMS = 20
"""Arms up to which the posterior is kept with a decision."""


class Seal:
    """What only the service can compute: generators, hashes of requests, who is held out.

    Parameters
    ----------
    secret
        Known to the store alone; the same for all its processes.

    Examples
    --------
    >>> Seal(b"s").rng("shop", "1").random() == Seal(b"s").rng("shop", "1").random()
    True
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def digest(self, *parts: str) -> bytes:
        """HMAC of some texts."""
        return hmac.digest(self._secret, "\0".join(parts).encode(), hashlib.sha256)

    def rng(self, experiment: str, decision: str) -> Generator:
        """The generator of a decision: the same whenever it is computed again."""
        return np.random.default_rng(int.from_bytes(self.digest("decision", experiment, decision), "big"))

    def request(self, experiment: str, request: DecisionRequest) -> str:
        """Hash of what was asked, to tell a repeated request from another one under the same id."""
        asked = request.model_dump(mode="json", exclude={"decision_id"})
        if request.candidates is None:
            del asked["candidates"]  # as before there were any: hashes in the log stay good
        return self.digest("request", experiment, dumps(asked, canonical=True)).hex()[:32]

    def held_out(self, state: ExperimentState, request: DecisionRequest, id: str) -> bool:
        """Whether the unit (or, without one, the decision) belongs to the holdout: for ever the same."""
        who = f"unit {request.unit}" if request.unit is not None else f"decision {id}"
        drawn = int.from_bytes(self.digest("holdout", state.name, who)[:7], "big") / 2**56
        return drawn < state.holdout


def eligible_arms(arms: list[str], request: DecisionRequest) -> list[str]:
    """Those of the arms that may be chosen."""
    allowed = [arm for arm in arms if request.eligible is None or arm in request.eligible]
    if not allowed:
        raise Invalid(
            f"eligible must leave an arm to choose, there are {arms} now, got {request.eligible}",
            field="eligible",
        )
    return allowed


def fallback(
    state: ExperimentState, request: DecisionRequest, id: str, *, reason: str, rng: Generator
) -> Decided:
    """The baseline arm, for sure; where it is not eligible, any eligible arm, each alike.

    Among candidates, the first is the baseline.
    """
    if request.candidates is not None:
        chances: dict[str | int, float] = {place: 0.0 for place in range(len(request.candidates))}
        return Decided(id, request.context, 0, chances | {0: 1.0}, reason)
    arms = state.arms
    allowed = eligible_arms(arms, request)
    if state.baseline is not None and state.baseline in allowed:
        arm, shares = state.baseline, dict.fromkeys([state.baseline], 1.0)
    else:
        arm = allowed[int(rng.integers(len(allowed)))]
        shares = dict.fromkeys(allowed, 1 / len(allowed))
    eligible = None if request.eligible is None else tuple(allowed)
    everyone: dict[str | int, float] = {label: shares.get(label, 0.0) for label in arms}
    return Decided(id, request.context, arm, everyone, reason, eligible)


def decided(
    state: ExperimentState,
    request: DecisionRequest,
    event: Decided,
    *,
    time: float,
    seal: Seal,
    model: dict[str, Any],
    group: str = "policy",
    decision: Decision | None = None,
    shadow: Decided | None = None,
) -> Draft:
    """The entry of a decision; ``shadow`` is what the model would have done."""
    values = to_dict(event)
    context = values.pop("context")
    values.pop("candidates", None)
    data: dict[str, Any] = {
        "event": values,
        "model": model,
        "deadline": time + state.settings.reward.wait,
        "group": group,
        "request": seal.request(state.name, request),
    }
    if request.candidates is not None:
        data["candidates"] = [candidate.id for candidate in request.candidates]
    if shadow is not None:
        proposed = to_dict(shadow)
        data["shadow"] = {name: proposed[name] for name in ("arm", "propensities", "reason")}
    if decision is not None and decision.posterior is not None and len(decision.arms) <= _SHOWN_ARMS:
        data["posterior"] = posterior_of(decision, names=data.get("candidates"), digits=6)
    return Draft(
        state.name,
        "decided",
        event.id,
        time,
        data,
        unit=request.unit,
        context=context,
        candidates=request.offered,
    )


def posterior_of(
    decision: Decision, *, names: list[str] | None = None, digits: int = 17
) -> list[dict[str, Any]]:
    """Mean and 95 % interval of each arm's mean reward; None where there is no finite one.

    Of many arms only those of the shortlist have a posterior. Candidates are called by their ``names``.
    """
    posterior = decision.posterior
    assert posterior is not None
    low, high = posterior.interval(0.95)
    arms = names or decision.arms
    if decision.shortlist is not None:
        arms = [arms[place] for place in decision.shortlist]

    def plain(value: float) -> float | None:
        return float(f"{value:.{digits}g}") if math.isfinite(value) else None

    return [
        {"arm": arm, "mean": plain(mean), "low": plain(below), "high": plain(above)}
        for arm, mean, below, above in zip(arms, posterior.mean, low, high, strict=True)
    ]


def answer(record: Record) -> dict[str, Any]:
    """What a client is told of a decision, now and whenever it asks again."""
    arm, propensities = served(record.data)
    return {
        "decision_id": record.id,
        "arm": arm,
        "propensities": propensities,
        "reason": record.data["event"]["reason"],
        "model": record.data["model"],
        "reward_deadline": iso(record.data["deadline"]),
    }


def settlement(
    experiment: str, id: str, *, time: float, value: float | None, by: str, reward_id: str | None = None
) -> Draft:
    """The entry that settles a decision, by a reward, by the default, or as missing."""
    data = {"by": by, "value": value, "reward_id": reward_id}
    return Draft(experiment, "settled", id, time, data, needs=id)
