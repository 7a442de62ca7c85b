"""The command line."""

from pfnts.cli.app import app

__all__ = ["app"]
