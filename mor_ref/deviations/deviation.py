"""Deviation: a named wrong or foreign behaviour, as replaced steps of the exact model."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from mor_ref.exact.step import Replacement, replaced

Function = Callable[..., Any]


def everywhere(*_: Any, **__: Any) -> bool:
    """Return true: the step is replaced in every call."""
    return True


@dataclass(frozen=True)
class Change:
    """Another behaviour of a step, in the calls for which `where` is true.

    `where` reads parameters, such as the format or the rounding, never numbers: the suites have to
    find the numbers that expose a deviation.
    """

    step: Function
    function: Function
    where: Callable[..., bool] = everywhere

    def __call__(self, reference: Function, *args: Any, **known: Any) -> Any:
        """Run in place of the step, which is the first argument."""
        if self.where(*args, **known):
            return self.function(reference, *args, **known)
        return reference(*args, **known)


@dataclass(frozen=True, eq=False)
class Deviation:
    """A behaviour that differs from the specification in one thing.

    Its domain is the suites that reach one of its changes. Each suite of the domain has an input
    that exposes the deviation. `exemptions` names the other suites, and why no input can expose it
    there.
    """

    name: str
    summary: str
    rules: tuple[str, ...]
    domain: tuple[str, ...]
    changes: tuple[Change, ...]
    exemptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """The changes, in the form that the exact model takes."""
        return tuple((change.step, change) for change in self.changes)

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that have to expose the deviation."""
        return tuple(name for name in self.domain if name not in self.exemptions)


def applied(*deviations: Deviation) -> AbstractContextManager[None]:
    """Compute with the deviations, inside of a `with`."""
    return replaced([pair for deviation in deviations for pair in deviation.replacements])


def deviation(
    *steps: Function,
    rules: tuple[str, ...],
    domain: tuple[str, ...],
    where: Callable[..., bool] = everywhere,
    exemptions: Mapping[str, str] | None = None,
) -> Callable[[Function], Deviation]:
    """Make a function the deviation of the same name, which replaces these steps.

    The first argument of the function is the step; the others are the arguments of the step.
    """

    def decorate(function: Function) -> Deviation:
        summary = (function.__doc__ or "").strip()
        changes = tuple(Change(step, function, where) for step in steps)
        return Deviation(function.__name__, summary, rules, domain, changes, exemptions or {})

    return decorate
