"""What a deviation is: a named wrong or foreign behaviour, as replaced steps of the model."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from mor_ref.exact.step import Replacement, replaced

Function = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Deviation:
    """A behaviour that differs from the specification in one thing.

    Every suite of its domain tells it from the reference, but those in `unseen`, where no input
    can, for the reason that is given. Suites outside of the domain may tell it as well.
    """

    name: str
    summary: str
    rules: tuple[str, ...]
    domain: tuple[str, ...]
    replacements: tuple[Replacement, ...]
    unseen: Mapping[str, str] = field(default_factory=dict)

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that have to tell it from the reference."""
        return tuple(name for name in self.domain if name not in self.unseen)


def applied(*deviations: Deviation) -> AbstractContextManager[None]:
    """Compute as the deviations do, inside of a `with`."""
    return replaced([pair for deviation in deviations for pair in deviation.replacements])


def deviation(
    *steps: Function,
    rules: tuple[str, ...],
    domain: tuple[str, ...],
    unseen: Mapping[str, str] | None = None,
) -> Callable[[Function], Deviation]:
    """Make a function a deviation of its name that is called instead of these steps.

    Its first argument is the step that it replaces, the others are those of the step.
    """

    def decorate(function: Function) -> Deviation:
        summary = (function.__doc__ or "").strip()
        pairs = tuple((step, function) for step in steps)
        return Deviation(function.__name__, summary, rules, domain, pairs, unseen or {})

    return decorate
