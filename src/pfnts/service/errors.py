"""What the service refuses, and why: each becomes a problem document."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):
    """A request that is not served: status, a title, and what was wrong.

    Examples
    --------
    >>> NotFound("no experiment 'x'").status
    404
    """

    status = 400
    title = "Bad request"

    def __init__(self, detail: str, **members: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.members = members


class Unauthorized(Refusal):
    """No key, or one that is not valid."""

    status, title = 401, "A key is needed"


class Forbidden(Refusal):
    """A key that is not good for this."""

    status, title = 403, "Not allowed"


class NotFound(Refusal):
    """There is no such thing."""

    status, title = 404, "Not found"


class Conflict(Refusal):
    """It contradicts what is there."""

    status, title = 409, "Conflict"


class Invalid(Refusal):
    """A field breaks a rule."""

    status, title = 422, "Invalid"


class Busy(Refusal):
    """More than can be served; come back later."""

    status, title = 429, "Too many requests"


class Unavailable(Refusal):
    """The service cannot promise anything right now."""

    status, title = 503, "Unavailable"
