"""Records with an entry in each list and a value in each field, made from their declarations.

A run that goes well leaves lists of a report empty; a filled record shows the keys of their
entries, whatever the lists are of.
"""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_PLAIN: dict[type, Any] = {str: "e4m3", int: 1, float: 1.0, bool: True}  # any text names a format


def filled(kind: Any, around: tuple[Any, ...] = ()) -> Any:
    """Return an instance of a record or of another type; records of their own kind end at two."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):
        return _first_filled(arguments, around)
    if origin is Literal:
        return arguments[0]
    if origin is tuple and arguments[-1] is not ...:
        return tuple(filled(argument, around) for argument in arguments)
    if origin is not None and issubclass(origin, Mapping):
        return {"e4m3": filled(arguments[1], around)}
    if origin is not None:
        return origin([filled(arguments[0], around)])
    if kind is Any:
        return {}
    return kind(**{name: filled(k, (*around, kind)) for name, k in _fields(kind).items()})


def _first_filled(kinds: tuple[Any, ...], around: tuple[Any, ...]) -> Any:
    kind = next(kind for kind in kinds if kind is not types.NoneType)
    return None if around.count(kind) > 1 else filled(kind, around)


def _fields(kind: Any) -> dict[str, Any]:
    """Return the types of the arguments of a record."""
    hints = get_type_hints(kind)
    if not dataclasses.is_dataclass(kind):
        return {name: hints[name] for name in kind._fields}
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}
