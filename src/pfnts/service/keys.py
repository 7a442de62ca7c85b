"""Keys: who may read, write or administer. Only hashes of them are stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from typing import Literal, get_args

from pfnts.service.store import Key, Store, StoreUnavailableError

Role = Literal["reader", "writer", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""
_FRESH = 1.0
"""Seconds for which keys that were read are believed: a revoked key works no longer than that."""


def new_key(name: str, role: Role, *, experiment: str | None = None, time: float) -> tuple[str, Key]:
    """Make a key: the text to hand out, which nobody can recover, and what is stored of it.

    Examples
    --------
    >>> text, key = new_key("web", "writer", time=0.0)
    >>> text.startswith(f"pfnts_{key.id}_"), text.split("_")[2] in repr(key)
    (True, False)
    """
    if role not in ROLES:
        raise ValueError(f"role must be one of {ROLES}, got {role!r}")
    if not name.strip():
        raise ValueError("name must say whose key it is, got an empty one")
    id, secret = secrets.token_hex(4), secrets.token_hex(24)
    return f"pfnts_{id}_{secret}", Key(id, name, role, experiment, _digest(secret), time)


def _digest(secret: str) -> str:
    # A random text of 192 bits needs no slow hash.
    return hashlib.sha256(secret.encode()).hexdigest()


class KeyRing:
    """The keys of a store, read again every second.

    Parameters
    ----------
    store
        Where they are.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._keys: dict[str, Key] = {}
        self._read = float("-inf")

    @property
    def fresh(self) -> bool:
        """Whether the keys were read a moment ago."""
        return time.monotonic() - self._read < _FRESH

    def refresh(self) -> None:
        """Read the keys; those read before stay good while the store is away."""
        with self._lock:
            if self.fresh:  # another thread has just read them
                return
            try:
                stored = self._store.keys()
                self._keys = {key.id: key for key in stored if key.revoked is None}
            except StoreUnavailableError:
                if self._read == float("-inf"):
                    raise
            self._read = time.monotonic()

    @property
    def empty(self) -> bool:
        """Whether there is no key at all: then only this machine may ask."""
        return not self._keys

    def find(self, text: str) -> Key | None:
        """The key of a text, if it is valid."""
        parts = text.split("_")
        if len(parts) != 3 or parts[0] != "pfnts":
            return None
        key = self._keys.get(parts[1])
        if key is None or not hmac.compare_digest(key.digest, _digest(parts[2])):
            return None
        return key
