"""The page about the command line, made from the commands themselves."""

from __future__ import annotations

import inspect
from typing import Any

from typer.main import get_command

from pfnts.cli import app


def command_line() -> str:
    """Every command with its help, arguments and options, as Markdown."""
    lines = [
        "# Command line\n",
        "Look up here what each `pfnts` command does and which options it takes; `pfnts COMMAND --help` "
        "prints the same.\n",
    ]
    root: Any = get_command(app)
    for name, command in root.commands.items():
        for path, each in _with_children(f"pfnts {name}", command):
            lines += _section(path, each)
    return "\n".join(lines)


def _with_children(path: str, command: Any) -> list[tuple[str, Any]]:
    found = [(path, command)]
    for name, child in getattr(command, "commands", {}).items():
        found += _with_children(f"{path} {name}", child)
    return found


def _section(path: str, command: Any) -> list[str]:
    lines = [f"## {path}\n", inspect.cleandoc(command.help or "") + "\n"]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and "--help" not in p.opts]
    if arguments or options:
        lines.append("| | default | meaning |\n|---|---|---|")
        lines += [_row(f"`{p.name.upper()}`", p) for p in arguments]
        lines += [_row(", ".join(f"`{o}`" for o in (*p.opts, *p.secondary_opts)), p) for p in options]
        lines.append("")
    return lines


def _row(named: str, parameter: Any) -> str:
    default = parameter.default
    if parameter.required:
        shown = "required"
    elif default is None or default == [] or default == () or callable(default) or default is False:
        shown = ""
    elif isinstance(default, (list, tuple)):
        shown = ", ".join(f"`{each}`" for each in default)
    else:
        shown = f"`{default}`"
    text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    return f"| {named} | {shown} | {text} |"
