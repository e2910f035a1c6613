"""A digest of a user's own code and data, so that a text that names them says which they were."""

import hashlib
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

_OURS = __name__.partition(".")[0]
_PLAIN = (bool, int, float, str, bytes, type(None))
_DIGITS = 16


def code_digest(row: object) -> str:
    """Return a digest of a row: of its fields, and of the functions and the classes of a user.

    A function counts with its source, the values that it encloses, and the functions and plain
    values of its module that it names. What is of other modules does not count, nor do comments.
    """
    text = "\n".join(_parts(row, set()))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    value = _unwrapped(value)
    if isinstance(value, _PLAIN):
        yield repr(value)
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, FunctionType):
        yield from _function(value, seen)
    elif _is_array(value):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, Mapping):
        for key, own in value.items():
            yield repr(key)
            yield from _parts(own, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        yield type(value).__name__
        for own in sorted(value, key=repr) if isinstance(value, set | frozenset) else value:
            yield from _parts(own, seen)
    elif isinstance(value, type):
        yield from _class(value, seen)
    else:
        yield getattr(value, "__qualname__", "")  # of a built-in function
        yield from _class(type(value), seen)
        yield from _fields(value, seen)


def _unwrapped(value: Any) -> Any:
    """Return the function that Numba compiles, and what a method or a partial function binds."""
    if isinstance(value, MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, partial):
        return (value.func, value.args, value.keywords)
    return getattr(value, "py_func", value)


def _fields(value: Any, seen: set[int]) -> Iterator[str]:
    if is_dataclass(value):
        own = {f.name: getattr(value, f.name) for f in fields(value) if f.compare}
    else:
        own = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("__")}
    for name, content in own.items():
        yield name
        yield from _parts(content, seen)


def _class(cls: type, seen: set[int]) -> Iterator[str]:
    """Yield the name of a class, and the functions and the plain values of one of a user."""
    yield cls.__qualname__
    for base in cls.__mro__:
        if base is object or base.__module__.partition(".")[0] in (_OURS, "typing", "abc"):
            continue
        for name, member in sorted(vars(base).items()):
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            is_of_user = (
                isinstance(function, FunctionType) and function.__module__ == base.__module__
            )
            if is_of_user or (isinstance(member, _PLAIN) and not name.startswith("__")):
                yield name
                yield from _parts(function, seen)


def _function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    if (function.__module__ or "").partition(".")[0] == _OURS:
        yield f"{function.__module__}.{function.__qualname__}"
        return
    yield from _code(function.__code__)
    yield from _parts(function.__defaults__ or (), seen)
    for cell in function.__closure__ or ():
        yield from _parts(cell.cell_contents, seen)
    for name in sorted(_names(function.__code__)):
        named = function.__globals__.get(name)
        plain = getattr(named, "py_func", named)
        if _counts(plain, str(function.__module__)):
            yield name
            yield from _parts(plain, seen)


def _is_array(value: object) -> bool:
    """Return whether a value is an array or a scalar of NumPy, which nothing here imports."""
    is_type = isinstance(value, type)
    return not is_type and all(hasattr(value, name) for name in ("dtype", "shape", "tobytes"))


def _counts(value: object, module: str) -> bool:
    """Return whether what a module names is its own, or a value."""
    if isinstance(value, FunctionType | type):
        return value.__module__ == module
    is_value = isinstance(
        value, (*_PLAIN, Mapping, list, tuple, set, frozenset, MethodType, partial)
    )
    return (
        is_value or _is_array(value) or type(value).__module__.partition(".")[0] in (module, _OURS)
    )


def _code(code: CodeType) -> Iterator[str]:
    """Yield the source of a function without comments; its compiled code if there is no source."""
    try:
        import ast

        source = textwrap.dedent(inspect.getsource(code))
        yield ast.dump(ast.parse(source))
    except (OSError, TypeError, SyntaxError):
        yield code.co_code.hex()
        yield repr([each for each in code.co_consts if not isinstance(each, CodeType)])
        for each in code.co_consts:
            if isinstance(each, CodeType):
                yield from _code(each)


def _names(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, inner))
