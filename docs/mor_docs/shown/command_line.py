"""The help of every command."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from mor_docs.shown.markup import table
from mor_ref.cli import app


def commands() -> str:
    """Show each command with its arguments and options."""
    return "\n".join(_described(get_command(app), "mor-ref"))


def _described(command: Any, name: str) -> Iterator[str]:
    """Describe a command, or those of a group; Typer's classes vary, so they are Any."""
    if name != "mor-ref":
        yield f"## {name}\n"
    yield f"{(command.help or '').strip()}\n"
    if hasattr(command, "commands"):
        for sub, inner in command.commands.items():
            yield from _described(inner, f"{name} {sub}")
        return
    context = command.make_context(name, [], resilient_parsing=True)
    yield f"```text\n{' '.join([name, *command.collect_usage_pieces(context)])}\n```\n"
    rows = [_row(parameter) for parameter in command.get_params(context)]
    yield table(["", "", "default"], rows)


def _row(parameter: Any) -> list[str]:
    is_option = parameter.param_type_name == "option"
    names = parameter.opts if is_option else [parameter.metavar or parameter.name]
    default = "required" if parameter.required else parameter.default
    shown = isinstance(default, int | float | str) and not isinstance(default, bool)
    said = (getattr(parameter, "help", "") or "").strip()
    return [" ".join(f"`{name}`" for name in names), said, str(default) if shown else ""]
