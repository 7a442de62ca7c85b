"""The command line, as ``python -m pfnts``."""

from pfnts.cli import app

if __name__ == "__main__":
    app()
