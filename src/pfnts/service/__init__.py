"""Decisions as a service: `pfnts serve`, and the client that asks it."""

from pfnts.service.client import Client, Served, ServiceError

__all__ = ["Client", "Served", "ServiceError"]
