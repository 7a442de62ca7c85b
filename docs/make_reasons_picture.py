"""Draws reasons.png: the example of reasons.md."""

from __future__ import annotations

import doctest
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    names: dict[str, object] = {}
    parser = doctest.DocTestParser()
    page = parser.get_doctest((HERE / "reasons.md").read_text(), names, "reasons.md", None, 0)
    for example in page.examples:
        exec(compile(example.source, "reasons.md", "single"), names)
    names["reasons"].plot().savefig(HERE / "reasons.png", dpi=110)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
