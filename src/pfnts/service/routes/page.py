"""The page."""

from __future__ import annotations

from html import escape
from importlib import resources
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, Response

router = APIRouter(include_in_schema=False)
_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
}


def _file(name: str) -> Response:
    content = (resources.files("pfnts.service") / "page" / name).read_bytes()
    return Response(content, media_type=_TYPES[name], headers={"Cache-Control": "no-cache"})


@router.get("/")
async def index() -> Response:
    """The page itself."""
    return _file("index.html")


@router.get("/docs")
async def interface(request: Request) -> HTMLResponse:
    """The interface in a table, made here: the usual pages for it are loaded from elsewhere."""
    document: dict[str, Any] = request.app.openapi()
    rows = "".join(
        f"<tr><td>{method.upper()}</td><td><code>{escape(path)}</code></td>"
        f"<td>{escape(operation.get('description', ''))}</td></tr>"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>pfnts: interface</title>'
        '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="page.css">'
        f'<body class="docs"><h1>Interface</h1><p>{escape(document["info"]["description"])} The whole of it '
        'as an OpenAPI document: <a href="v1/openapi.json">v1/openapi.json</a>.</p>'
        f'<div class="scroll"><table>{rows}</table></div></body></html>'
    )


@router.get("/page.js")
async def script() -> Response:
    """What it does."""
    return _file("page.js")


@router.get("/charts.js")
async def charts() -> Response:
    """How it draws."""
    return _file("charts.js")


@router.get("/page.css")
async def style() -> Response:
    """How it looks."""
    return _file("page.css")
