"""The HTTP interface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

import pfnts
from pfnts.service import problems
from pfnts.service.engine import Engine
from pfnts.service.gate import Gate
from pfnts.service.keys import KeyRing
from pfnts.service.routes import decisions, experiments, page, system


def create_app(engine: Engine) -> FastAPI:
    """Make the application that serves an engine, and stops it at the end.

    Parameters
    ----------
    engine
        What is served.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        engine.stop()

    app = FastAPI(
        title="pfnts",
        version=pfnts.__version__,
        description="Decisions by contextual bandits: ask for one, hand in its reward.",
        lifespan=lifespan,
        docs_url=None,  # the usual page of documentation is loaded from elsewhere
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        redirect_slashes=False,
    )
    app.state.engine = engine
    problems.install(app)
    for module in (decisions, experiments, system, page):
        app.include_router(module.router)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    limits = engine.limits
    app.add_middleware(
        Gate,
        ring=KeyRing(engine.store),
        patience=limits.patience,
        room=limits.requests,
        metrics=engine.metrics,
    )
    return app


def _link(paths: dict[str, Any]) -> None:
    """Say which answers name what other requests are about."""
    created = paths["/v1/experiments"]["post"]["responses"]["201"].setdefault("links", {})
    for path, methods in paths.items():
        for operation in methods.values():
            if path.startswith("/v1/experiments/{experiment}"):
                name = operation["operationId"]
                created[name] = {"operationId": name, "parameters": {"experiment": "$response.body#/name"}}
    root = "/v1/experiments/{experiment}/decisions"
    paths[root]["post"]["responses"]["200"]["links"] = {
        "reward": {
            "operationId": paths[f"{root}/{{decision}}/rewards"]["post"]["operationId"],
            "parameters": {
                "experiment": "$request.path.experiment",
                "decision": "$response.body#/decision_id",
            },
        }
    }


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        parts = schema.setdefault("components", {})
        parts.setdefault("schemas", {})["Problem"] = problems.SCHEMA
        parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"key": []}]
        _link(schema["paths"])
        app.openapi_schema = schema
    return app.openapi_schema
