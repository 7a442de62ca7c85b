"""What every route asks first: which engine, and may this key do that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Path, Request

from pfnts.service.engine import Engine
from pfnts.service.errors import Forbidden
from pfnts.service.keys import ROLES, Role
from pfnts.service.store import Key


# Both are coroutines: plain functions would be run in another thread, for every request.
async def _engine(request: Request) -> Engine:
    found: Engine = request.app.state.engine
    return found


TheEngine = Annotated[Engine, Depends(_engine)]
ExperimentName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
DecisionId = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$")]


def key_of(request: Request) -> Key | None:
    """The key of a request; None where none is needed."""
    key: Key | None = request.scope["state"]["key"]
    return key


def needs(role: Role) -> Any:
    """Let a request pass if its key has the role, or a higher one, for the experiment that it is about."""
    return Depends(_checker(role))


def _checker(role: Role) -> Callable[[Request], Awaitable[None]]:
    async def check(request: Request) -> None:
        key = key_of(request)
        if key is None:
            return
        if ROLES.index(key.role) < ROLES.index(role):
            raise Forbidden(f"the key must have the role {role}, {key.name!r} has {key.role}")
        wanted = request.path_params.get("experiment")
        if key.experiment is not None and key.experiment != wanted:
            raise Forbidden(f"the key {key.name!r} is good for the experiment {key.experiment!r} only")

    return check
