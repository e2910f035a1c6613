"""A kind of command: its options have one value, and its help reads the catalogues."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from typer.core import TyperCommand

OF_A_CATALOGUE = "A name of a catalogue."  # until the help of the command is asked for


def _names_of(option: str) -> Iterable[str]:
    """Return the names that an option takes; importing them would slow the help of all down."""
    from mor_ref.definitions.scales import SCALINGS
    from mor_ref.policies import POLICIES

    return {"policy": POLICIES, "scaling": SCALINGS}[option]


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
        """Return the parameters.

        The help of a flag names no value, for it has none. The help of an option that takes a name
        of a catalogue lists the names; the first is the default.
        """
        found: list[Any] = super().get_params(ctx)
        for option in found:
            if getattr(option, "is_flag", False):
                option.metavar = ""
            if getattr(option, "help", None) == OF_A_CATALOGUE:
                default, *others, last = _names_of(option.name)
                option.help = f"{', '.join([f'{default} (default)', *others])} or {last}."
        return found
