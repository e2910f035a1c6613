"""Names of earlier versions: each answers with the name of today, and a warning that says it."""

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T")
_UNTIL = "0.4"


def sentence(former: str, now: str) -> str:
    """Return the sentence that names the new name of a former one."""
    return f"{former} is {now} now; the former name goes in version {_UNTIL}"


def warn_of(former: str, now: str, level: int) -> None:
    """Warn that a name is a former one; `level` is how many calls away it was used."""
    warnings.warn(sentence(former, now), DeprecationWarning, stacklevel=level + 1)


class FormerAttribute:
    """An attribute that has another name now."""

    def __init__(self, now: str) -> None:
        self._now = now
        self._former = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._former = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        name = owner.__name__
        warn_of(f"{name}.{self._former}", f"{name}.{self._now}", 2)
        return getattr(instance, self._now)


def renamed(
    function: str, arguments: Mapping[str, Any], former: str, now: str, level: int
) -> dict[str, Any]:
    """Return arguments with the name of today for a former one, and warn of it."""
    if now in arguments:
        raise TypeError(f"{former} and {now} are given, but are the same; give {now}")
    warn_of(f"argument {former} of {function}", now, level)
    return {now if name == former else name: value for name, value in arguments.items()}


def with_former_field(former: str, now: str) -> Callable[[type[_T]], type[_T]]:
    """Make a class take a field under its former name, too; a `FormerAttribute` reads it."""

    def decorate(owner: type[_T]) -> type[_T]:
        make = owner.__init__

        @functools.wraps(make)
        def init(self: _T, *args: Any, **arguments: Any) -> None:
            if former in arguments:
                arguments = renamed(owner.__name__, arguments, former, now, 3)
            make(self, *args, **arguments)

        type.__setattr__(owner, "__init__", init)
        return owner

    return decorate


def with_former_name(former: str, now: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a function take an argument under its former name, too."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: Any, **arguments: Any) -> _R:
            if former in arguments:
                arguments = renamed(function.__name__, arguments, former, now, 3)
            return function(*args, **arguments)

        return call

    return decorate
