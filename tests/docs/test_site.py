"""Every page says first what it is for, and every command on a page exists."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from pfnts.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
# The words by which a page tells its reader what they will be able to do.
PURPOSE = re.compile("After this page you|With pfnts you can|Look up here|Find (a public name )?here")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_begins_with_its_purpose(page: Path) -> None:
    title, first = page.read_text(encoding="utf-8").split("\n\n", 2)[:2]
    assert title.startswith("# ")
    assert PURPOSE.search(first.split(". ")[0]), first


def shell_lines() -> list[str]:
    texts = [page.read_text(encoding="utf-8") for page in (*PAGES, ROOT / "README.md")]
    lines = []
    for text in texts:
        joined = re.sub(r"\\\n\s*", "", text)
        lines += re.findall(r"^(?:    )?(pfnts [^#\n]*?)(?:  .*|#.*)?$", joined, re.MULTILINE)
    return sorted({line.strip() for line in lines})


@pytest.mark.parametrize("line", shell_lines())
def test_every_command_in_the_docs_exists_and_has_the_options_it_is_given(line: str) -> None:
    command = get_command(app)
    words = shlex.split(line.replace("…", ""))[1:]
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    known = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    given = {word.split("=")[0] for word in words if word.startswith("--")}
    assert given <= known | {"--help"}, f"pfnts has no such options: {given - known}"


def test_the_page_of_the_command_line_has_every_option() -> None:
    text = runpy.run_path(str(ROOT / "docs" / "command_line.py"))["command_line"]()
    for name, command in get_command(app).commands.items():
        section = text.split(f"## pfnts {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option" and "--help" not in parameter.opts:
                assert all(f"`{option}`" in section for option in parameter.opts)
