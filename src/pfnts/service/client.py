"""A client that may ask again: ids make repeated requests harmless."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias
from urllib.parse import quote

try:
    import httpx
except ImportError as error:
    raise ImportError('the client needs httpx; install it with: pip install "pfnts[service]"') from error

Features: TypeAlias = Mapping[str, Any] | Sequence[Any]
_AGAIN = (429, 502, 503, 504)


class ServiceError(RuntimeError):
    """The service refused a request; ``status`` and ``problem`` say why."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        super().__init__(f"{status} {problem.get('title', '')}: {problem.get('detail', '')}")
        self.status = status
        self.problem = dict(problem)


@dataclass(frozen=True)
class Served:
    """A decision of the service."""

    id: str
    arm: str
    propensities: dict[str, float]
    reason: str
    model: dict[str, Any]
    """Position in the log, its hash, and the version of the package."""
    reward_deadline: str


class Client:
    """Asks a service for decisions and hands in rewards, again and again until it has an answer.

    Every decision has an id before it is asked for, so that asking again gives the same decision and a reward
    counts once.

    Parameters
    ----------
    url
        Address of the service.
    key
        A key, where the service wants one.
    timeout
        Seconds to wait for one answer.
    retries
        Times to ask again when the service is busy or away.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000", retries=0)
    >>> client.close()
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        key: str | None = None,
        timeout: float = 5.0,
        retries: int = 5,
    ) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=False)
        self._retries = retries

    def create(
        self, name: str, arms: Sequence[str] | Mapping[str, Features], **settings: Any
    ) -> dict[str, Any]:
        """Begin an experiment; see the documentation of the service for the settings.

        Parameters
        ----------
        name
            Of the experiment.
        arms
            Ids, or ids to features; none of them where every decision brings its own candidates.
        settings
            All else.
        """
        body = {"name": name, "arms": _listed(arms), **settings}
        return self._call("POST", "/v1/experiments", body)

    def experiment(self, name: str) -> dict[str, Any]:
        """An experiment as it stands."""
        return self._call("GET", _address(name))

    def decide(
        self,
        experiment: str,
        context: Mapping[str, Any] | Sequence[Any],
        *,
        unit: str | None = None,
        eligible: Iterable[str] | None = None,
        candidates: Mapping[str, Features] | None = None,
        id: str | None = None,
    ) -> Served:
        """Ask for an arm.

        Parameters
        ----------
        experiment
            Name of the experiment.
        context
            Plain values by name or by position.
        unit
            Who it is about.
        eligible
            Arms that may be chosen; all when not given.
        candidates
            Ids to features of what may be chosen, where the experiment has no arms.
        id
            Names the decision; made up when not given.
        """
        body: dict[str, Any] = {"decision_id": id or uuid.uuid4().hex, "context": context}
        if unit is not None:
            body["unit"] = unit
        if eligible is not None:
            body["eligible"] = list(eligible)
        if candidates is not None:
            body["candidates"] = _listed(candidates)
        found = self._call("POST", _address(experiment, "decisions"), body)
        return Served(found.pop("decision_id"), **found)

    def reward(self, experiment: str, decision: Served | str, value: float) -> str:
        """Hand in what a decision paid: "learned", "pending", "duplicate" or "late"."""
        id = decision.id if isinstance(decision, Served) else decision
        found = self._call("POST", _address(experiment, "decisions", id, "rewards"), {"value": value})
        return str(found["status"])

    def report(self, experiment: str) -> dict[str, Any]:
        """What an experiment has come to."""
        return self._call("GET", _address(experiment, "report"))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                answer = self._http.request(method, path, json=body)
            except httpx.TransportError:
                if last:
                    raise
            else:
                if answer.is_success:
                    found: dict[str, Any] = answer.json()
                    return found
                if last or answer.status_code not in _AGAIN:
                    raise ServiceError(answer.status_code, _problem(answer))
            # Longer each time, and never all clients at once.
            time.sleep(min(0.1 * 2**attempt, 5.0) * random.uniform(0.5, 1.0))
        raise AssertionError("the last attempt returns or raises")


def _listed(arms: Sequence[str] | Mapping[str, Features]) -> list[dict[str, Any]]:
    if isinstance(arms, Mapping):
        return [{"id": id, "features": features} for id, features in arms.items()]
    return [{"id": arm} for arm in arms]


def _address(*parts: str) -> str:
    """Where something is: a name with a slash in it leads nowhere else.

    Examples
    --------
    >>> _address("shop", "decisions", "a/b")
    '/v1/experiments/shop/decisions/a%2Fb'
    """
    return "/".join(["/v1/experiments", *(quote(part, safe="") for part in parts)])


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}
