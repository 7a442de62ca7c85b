"""Where the logs of the service are kept."""

from pfnts.service.store.base import Draft, FencedError, Key, Record, Store, StoreUnavailableError
from pfnts.service.store.opening import open_store

__all__ = ["Draft", "FencedError", "Key", "Record", "Store", "StoreUnavailableError", "open_store"]
