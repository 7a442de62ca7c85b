"""The page."""

from __future__ import annotations

from importlib import resources

from fastapi import APIRouter
from starlette.responses import Response

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
