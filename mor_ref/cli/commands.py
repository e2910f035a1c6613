"""A kind of command that refuses a second value for an option that holds one."""

from collections import Counter
from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command of Typer, which alone would take the last of several values silently."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, and refuse an option that is given twice."""
        *_, given = self.make_parser(ctx).parse_args(args=list(args))
        options: list[Any] = [one for one in given if one.param_type_name == "option"]
        for option, times in Counter(options).items():
            if times > 1 and not (option.multiple or option.is_flag):
                raise ValueError(f"{option.opts[0]} is given {times} times; give one value")
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; the help of a flag names no value, for it has none."""
        found = super().get_params(ctx)
        for option in found:
            if getattr(option, "is_flag", False):
                option.metavar = ""
        return found
