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


def _former_names(option: Any) -> set[str]:
    """Return the long spellings of an option but its first: they are names of earlier versions."""
    return {spelt for spelt in option.opts[1:] if spelt.startswith("--")}.difference(_HELP)


def _each_once(parse: Callable[..., Any], args: list[str]) -> Any:
    """Parse arguments, and refuse an option that is given twice; name former names."""
    typed = {word.partition("=")[0] for word in args if word.startswith("--")}
    values, rest, order = parse(args=args)
    for option, times in Counter(order).items():
        for former in sorted(typed & _former_names(option)):
            from mor_ref.former_names import sentence

            print(f"mor-ref: {sentence(former, option.opts[0])}", file=sys.stderr)
        if times > 1 and option.opts[0].startswith("-") and not (option.multiple or option.is_flag):
            raise ValueError(f"{option.opts[0]} is given {times} times; give one value")
    return values, rest, order


def _no_type(ctx: Any) -> None:
    """Show no type next to the name of an argument."""
    del ctx


# Options, and the arguments in whose place people give their values.
_PLACED = {"--format": {"NUMBER", "CODE"}, "--recipe": {"FILE"}}


def _metavars(params: Iterable[Any]) -> list[str]:
    return [one.metavar for one in params if one.param_type_name == "argument"]


def _words_of(params: Iterable[Any], values: Any) -> list[str]:
    """Return the words that a command is given without an option."""
    found: list[str] = []
    for one in params:
        given = values.get(one.name) if one.param_type_name == "argument" else None
        found += [given] if isinstance(given, str) else given or []
    return found


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

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help without former names of options."""
        spellings = {option: option.opts for option in self.params}  # type: ignore[attr-defined]
        try:
            for option, all_of_it in spellings.items():
                former = _former_names(option)
                option.opts = [spelt for spelt in all_of_it if spelt not in former]
            super().format_help(ctx, formatter)  # type: ignore[misc]  # of the command
        finally:
            for option, all_of_it in spellings.items():
                option.opts = all_of_it


class Group(_InWords, TyperGroup):
    """A group of commands of Typer, which names the command for one of another program."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name; refuse a name by which people mean another."""
        found = super().get_command(ctx, cmd_name)
        if found is None and ctx.parent is None:
            from mor_ref.cli.habits import instead_of_command

            instead = instead_of_command(cmd_name)
            if instead is not None:
                raise ValueError(f"there is no command {cmd_name!r}; {instead}")
        return found

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which says that options of commands follow their command."""
        parser: Any = super().make_parser(ctx)
        parser.parse_args = functools.partial(_of_commands, parser.parse_args, ctx, self)
        return parser


def _of_commands(parse: Callable[..., Any], ctx: Any, group: Any, args: list[str]) -> Any:
    """Parse the arguments before a command."""
    try:
        return parse(args=args)
    except Exception as error:
        given = getattr(error, "option_name", None)
        if given is None or getattr(error, "possibilities", None):
            raise
        from mor_ref.cli.habits import instead_of_option, name_of

        first = f"give a command first, one of {', '.join(group.list_commands(ctx))}"
        instead = instead_of_option(given, ctx) or first
        what = f"{name_of(ctx) or ctx.info_name} has no option {given}"
        raise ValueError(f"{what}; {instead}") from None


class UnexpectedEndError(Exception):
    """An EOFError; Typer would end with 1 without a word, as if bits differed."""


class Command(_InWords, TyperCommand):
    """A command of Typer, which alone would take the last of several values silently."""

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which refuses an option that is given twice."""
        parser: Any = super().make_parser(ctx)
        parser.parse_args = functools.partial(self._known, ctx, parser.parse_args)
        return parser

    def _known(self, ctx: Any, parse: Callable[..., Any], args: list[str]) -> Any:
        """Parse arguments; refuse those of another program, with what is meant."""
        typed = list(args)
        try:
            values, rest, order = _each_once(parse, args)
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":
                from mor_ref.cli.habits import refuse_options

                refuse_options(typed, self.params, ctx)
            raise
        self._refuse_others(ctx, typed, values, rest)
        return values, rest, order

    def _refuse_others(self, ctx: Any, typed: list[str], values: Any, rest: list[str]) -> None:
        """Refuse what is given as a number or a file, and is none."""
        words = [*_words_of(self.params, values), *rest]
        if not words:
            return
        from mor_ref.cli import habits

        if ctx.ignore_unknown_options:
            habits.refuse_letters(words, typed, self.params, ctx)
        for option in self.params:
            spelt = option.opts[0]
            takes_it = option.multiple or option.name not in values
            if spelt in _PLACED and takes_it and _PLACED[spelt] & set(_metavars(self.params)):
                stream = "-" if spelt == "--format" else "FILE"
                habits.refuse_misplaced(words, typed, option, ctx.command_path, otherwise=stream)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error has --random-word in place of the argument random_word."""
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise UnexpectedEndError(*error.args) from error
        except (ValueError, TypeError) as error:
            said = str(error)
            for option in self.params:
                if "_" in (option.name or ""):
                    alone = rf"(?<![\w./\\-]){option.name}(?![\w/\\-]|\.\w)"  # in no path
                    said = re.sub(alone, option.opts[0], said)
            if said == str(error):
                raise
            raise ValueError(said) from error
