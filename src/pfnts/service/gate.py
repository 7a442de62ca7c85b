"""The gate in front of every address: keys, origins, sizes, slow senders; and headers on every answer."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from pfnts.service.errors import Busy, Forbidden, Refusal, Unauthorized
from pfnts.service.keys import KeyRing
from pfnts.service.metrics import Metrics
from pfnts.service.problems import problem
from pfnts.service.store import Key, StoreUnavailableError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 1 << 20
MOST_BYTES = 32 << 20
"""Of all bodies that are held at a time."""
_LONG = ("/events", "/export")
_PROBES = ("/livez", "/readyz", "/metrics")
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class TooLarge(Refusal):
    """A body beyond what is read."""

    status, title = 413, "Too large"


class TooSlow(Refusal):
    """A body that does not come to its end."""

    status, title = 408, "Too slow"


class Gate:
    """Lets through what may pass, with the whole body read; refuses the rest.

    Parameters
    ----------
    app
        What is behind it.
    ring
        The keys.
    patience
        Seconds that a client may take to send a body.
    room
        Requests that are let in at a time, streams, exports and probes aside.
    metrics
        Where answers are counted by their status.
    """

    def __init__(self, app: App, ring: KeyRing, *, patience: float, room: int, metrics: Metrics) -> None:
        self._app, self._ring, self._patience, self._room = app, ring, patience, room
        self._metrics = metrics
        self._under_way = 0
        self._bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count("pfnts_requests_total", status=str(message["status"]))
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(h for h in _HEADERS if h[0] not in given)]
            await send(message)

        parts: list[bytes] = []
        counted = False
        try:
            headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
            scope.setdefault("state", {})["key"] = await self._admit(scope, headers)
            await self._read(headers, receive, parts)
            # Counted from here on: whoever sends slowly takes nobody's place.
            counts = scope["path"] not in _PROBES and not scope["path"].endswith(_LONG)
            if counts and self._under_way >= self._room:
                raise Busy("more requests are under way than can be served; try again in a second")
            counted = counts
            self._under_way += counted
            await self._app(scope, _given(b"".join(parts), receive), guarded)
        except Refusal as refusal:
            await problem(refusal)(scope, receive, guarded)
        finally:
            self._under_way -= counted
            self._bytes -= sum(map(len, parts))

    async def _admit(self, scope: Scope, headers: dict[bytes, str]) -> Key | None:
        """The key of a request; None for this machine where there are no keys, which may do everything."""
        _check_origin(scope, headers)
        if not self._ring.fresh:
            try:
                await asyncio.to_thread(self._ring.refresh)
            except StoreUnavailableError as error:
                raise Forbidden(f"keys cannot be checked: {error}") from error
        local = _is_local(scope, headers)
        text = _credentials(headers.get(b"authorization", ""))
        key = None if text is None else self._ring.find(text)
        if key is not None:
            return key
        if local and (self._ring.empty or scope["path"] in _PROBES):
            return None
        raise Unauthorized(
            "a valid key must be sent as Authorization: Bearer KEY; make one with: pfnts keys add"
        )

    async def _read(self, headers: dict[bytes, str], receive: Receive, parts: list[bytes]) -> None:
        """Read the whole body, if it is small enough, comes in time, and there is room for it."""
        length = headers.get(b"content-length", "0")
        if length.isdigit() and int(length) > LARGEST_BODY:
            raise TooLarge(f"a body must have at most {LARGEST_BODY:,} bytes, got {int(length):,}")
        size = 0
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        break
                    part = message.get("body", b"")
                    size += len(part)
                    if size > LARGEST_BODY:
                        raise TooLarge(f"a body must have at most {LARGEST_BODY:,} bytes")
                    if self._bytes + len(part) > MOST_BYTES:
                        raise Busy("more is being sent than there is room for; try again in a second")
                    parts.append(part)
                    self._bytes += len(part)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise TooSlow(f"a body must be there within {self._patience:g} seconds") from None


def _given(body: bytes, receive: Receive) -> Receive:
    """Hand on a body that was read."""
    given = False

    async def whole() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return whole


def _is_local(scope: Scope, headers: dict[bytes, str]) -> bool:
    """Whether a request comes from this machine itself, not by way of a proxy or a foreign page."""
    client = scope.get("client")
    if client is None or not _loopback(client[0]):
        return False
    if any(name in headers for name in (b"forwarded", b"x-forwarded-for", b"x-real-ip")):
        return False
    # A name that resolves to this machine is how a foreign page would reach it.
    host = headers.get(b"host", "localhost").rsplit(":", 1)[0].strip("[]")
    return host == "localhost" or _loopback(host)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_origin(scope: Scope, headers: dict[bytes, str]) -> None:
    """Refuse what a page of another origin wants changed: browsers send credentials along by themselves."""
    origin = headers.get(b"origin")
    if scope["method"] in ("GET", "HEAD") or origin is None:
        return
    if origin.split("://")[-1] != headers.get(b"host"):
        raise Forbidden(f"origin must be that of the service itself, got {origin[:100]!r}")


def _credentials(header: str) -> str | None:
    """The key in an Authorization header: a bearer's, or the password that a browser was given."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(rest, validate=True).decode().rpartition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return None
    return None
