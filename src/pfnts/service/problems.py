"""Errors as problem documents (RFC 9457): what was wrong with which field, and what was received."""

from __future__ import annotations

import logging
import reprlib
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Match, Route

from pfnts.service.errors import Refusal
from pfnts.service.store import StoreUnavailableError

log = logging.getLogger("pfnts.service")
MEDIA_TYPE = "application/problem+json"
SCHEMA = {
    "type": "object",
    "required": ["title", "status", "detail"],
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "field": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}
_TITLES = {
    400: "Bad request",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    422: "Invalid",
    429: "Too many requests",
    503: "Unavailable",
}


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Problem documents for OpenAPI; those that every address may answer with are always among them."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {"description": _TITLES[status], "content": content}
        for status in sorted({400, 401, 403, 408, 413, 422, 429, 503, *statuses})
    }


def problem(refusal: Refusal) -> JSONResponse:
    """The answer to a request that is refused."""
    return _response(refusal.status, refusal.title, refusal.detail, refusal.members)


def _response(
    status: int,
    title: str,
    detail: str,
    members: dict[str, Any] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    content = {"title": title, "status": status, "detail": detail, **(members or {})}
    extra = dict(headers or {})
    if status == 401:
        extra["WWW-Authenticate"] = 'Basic realm="pfnts: any name, the key as the password", charset="UTF-8"'
    if status in (429, 503):
        extra["Retry-After"] = "1"
    return JSONResponse(content, status, headers=extra, media_type=MEDIA_TYPE)


def _methods(request: Request) -> list[str]:
    """What an address can be asked for."""
    found = set()
    for route in request.app.routes:
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods or set()
    return sorted(found)


def install(app: FastAPI) -> None:
    """Make every error of an application a problem document."""

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> JSONResponse:
        return problem(error)

    @app.exception_handler(StoreUnavailableError)
    async def unavailable(_: Request, error: StoreUnavailableError) -> JSONResponse:
        return _response(503, "Unavailable", str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        found = [
            {
                # Parts with brackets are how pydantic calls the branches of a union.
                "field": ".".join(p for p in map(str, e["loc"][1:]) if "[" not in p) or str(e["loc"][0]),
                "rule": e["msg"],
                "value": reprlib.repr(e.get("input")),
            }
            for e in error.errors()[:20]
        ]
        first = found[0]
        detail = f"{first['field']}: {first['rule']}, got {first['value']}"
        return _response(422, "Invalid", detail, {"field": first["field"], "errors": found})

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        title = _TITLES.get(error.status_code, "Error")
        headers = dict(error.headers or {})
        if error.status_code == 405:
            headers["Allow"] = ", ".join(_methods(request))
        return _response(error.status_code, title, str(error.detail), headers=headers)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return _response(500, "Internal error", "something went wrong; the service's log says what")
