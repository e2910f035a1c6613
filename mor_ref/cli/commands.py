"""A kind of command: its options have one value, its help reads the catalogues.

Errors name the options as they are typed.
"""

import functools
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from typer.core import TyperCommand, TyperGroup

# The help of an option until the help of its command is asked for, which lists the names.
OF_A_CATALOGUE = "One of the names of the catalogue for this option."
_HELP = "--help", "-h"  # two names of today


def _names_of(option: str) -> Iterable[str]:
    """Return the names that an option takes; importing them would slow the help of all down."""
    from mor_ref.definitions.scales import SCALINGS
    from mor_ref.policies import POLICIES

    return {"policy": POLICIES, "scaling": SCALINGS}[option]


def _each_once(parse: Callable[..., Any], args: list[str]) -> Any:
    """Parse arguments, and refuse an option that is given twice; name former names."""
    typed = {word.partition("=")[0] for word in args if word.startswith("--")}
    values, rest, order = parse(args=args)
    for option, times in Counter(order).items():
        for former in typed.intersection(option.opts[1:]).difference(_HELP):
            from mor_ref.former_names import sentence

            print(f"mor-ref: {sentence(former, option.opts[0])}", file=sys.stderr)
        if times > 1 and option.opts[0].startswith("-") and not (option.multiple or option.is_flag):
            raise ValueError(f"{option.opts[0]} is given {times} times; give one value")
    return values, rest, order


def _no_type(ctx: Any) -> None:
    """Show no type next to the name of an argument."""
    del ctx


class _InWords:
    """The parameters of a command for its help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with their help in words.

        The value of an option has the name of the option, not a type of Python. A flag has no
        value. The help of an option that takes a name of a catalogue lists the names; the first is
        the default.
        """
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the command
        for one in found:
            if one.param_type_name == "argument":
                one.display_type_rich = _no_type
            elif getattr(one, "is_flag", False) or "--help" in one.opts:
                one.metavar = ""
            elif one.metavar is None:
                one.metavar = one.opts[0].removeprefix("--").upper()
            if getattr(one, "help", None) == OF_A_CATALOGUE:
                default, *others, last = _names_of(one.name)
                one.help = f"{', '.join([f'{default} (default)', *others])} or {last}."
        return found


class Group(_InWords, TyperGroup):
    """A group of commands of Typer."""


class Command(_InWords, TyperCommand):
    """A command of Typer, which alone would take the last of several values silently."""

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which refuses an option that is given twice."""
        parser: Any = super().make_parser(ctx)
        parser.parse_args = functools.partial(_each_once, parser.parse_args)
        return parser

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error has --random-word in place of the argument random_word."""
        try:
            return super().invoke(ctx)
        except (ValueError, TypeError) as error:
            said = str(error)
            for option in self.params:
                if "_" in (option.name or ""):
                    alone = rf"(?<![\w./\\-]){option.name}(?![\w/\\-]|\.\w)"  # in no path
                    said = re.sub(alone, option.opts[0], said)
            if said == str(error):
                raise
            raise ValueError(said) from error
