"""A digest of a user's own code and data, so that a text that names them says which they were."""

import ast
import gc
import hashlib
import inspect
import sys
import sysconfig
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

_OURS = __name__.partition(".")[0]
_PLAIN = (bool, int, float, complex, Fraction, Decimal, range, str, bytes, type(None))
_VALUES = (*_PLAIN, Mapping, list, tuple, set, frozenset, SimpleNamespace, MethodType, partial)
_DIGITS = 16
_MAKERS = ("__init__", "__post_init__", "__new__")  # methods that write the first fields
_INSTALLED = {"site-packages", "dist-packages"}
# Methods by which code writes to a list, a dict, a set or a deque.
_WRITERS = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem"),
    *("popleft", "remove", "setdefault", "update"),
}


def code_digest(row: object) -> str:
    """Return a digest of a row: of its fields, and of the functions and the classes of a user.

    A function counts with its source, the values that it encloses, and the functions and plain
    values that it names, of its module and of other files of the user. Installed packages do not
    count, nor do comments, nor what the function itself writes to, such as a list of its calls.
    """
    text = "\n".join(_parts(row, {}))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"


def _parts(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    value = _unwrapped(value)
    if isinstance(value, _PLAIN):
        yield repr(value)
        return
    if id(value) in seen:
        return
    seen[id(value)] = value  # which keeps the id of what was made here its own
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
    """Return the function that Numba compiles, or that NumPy or a cache calls.

    What others bind is theirs with it: these are methods and partial functions.
    """
    if isinstance(value, MethodType):
        return (value.__func__, value.__self__)
    if isinstance(value, partial):
        return (value.func, value.args, value.keywords)
    if isinstance(value, FunctionType | type):
        return value
    if type(value).__name__ == "ufunc":  # of np.frompyfunc, which has no name for its function
        return next((_unwrapped(own) for own in gc.get_referents(value) if callable(own)), value)
    names = ("py_func", "pyfunc", "__wrapped__")
    return next((getattr(value, name) for name in names if hasattr(value, name)), value)


def _fields(value: Any, seen: dict[int, Any]) -> Iterator[str]:
    if is_dataclass(value):
        own = {f.name: getattr(value, f.name) for f in fields(value) if f.compare}
    else:
        own = {k: v for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("__")}
    written = set() if isinstance(value, SimpleNamespace) else _written_fields(type(value))
    for name, content in own.items():
        if name not in written:
            yield name
            yield from _parts(content, seen)


def _class(cls: type, seen: dict[int, Any]) -> Iterator[str]:
    """Yield the name of a class, and the functions and the plain values of one of a user."""
    yield cls.__qualname__
    for base in cls.__mro__:
        if base is object or base.__module__.partition(".")[0] in (_OURS, "typing", "abc"):
            continue
        for name, member in sorted(vars(base).items()):
            function = _function_of(member)
            is_of_user = (
                isinstance(function, FunctionType) and function.__module__ == base.__module__
            )
            if is_of_user or (_is_value(member) and not name.startswith("__")):
                yield name
                yield from _parts(function, seen)


def _function_of(member: Any) -> Any:
    """Return the function of a method, a property or another member of a class."""
    if isinstance(member, FunctionType):
        return member
    found = (getattr(member, name, None) for name in ("fget", "__func__", "func", "py_func"))
    return next((own for own in found if isinstance(own, FunctionType)), member)


def _function(function: FunctionType, seen: dict[int, Any]) -> Iterator[str]:
    if (function.__module__ or "").partition(".")[0] == _OURS:
        yield f"{function.__module__}.{function.__qualname__}"
        return
    code = function.__code__
    tree = _tree(code)
    yield from _code(code, tree)
    yield from _parts(function.__defaults__ or (), seen)
    yield from _parts(function.__kwdefaults__ or {}, seen)
    written = _written(tree)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            if name not in written:
                yield from _parts(cell.cell_contents, seen)
        except ValueError:  # it is empty as yet
            continue
    names = sorted(_names(code))
    for name, value in _named(names, function.__globals__):
        plain = _unwrapped(value)
        if name not in written and _counts(plain, str(function.__module__)):
            yield name
            yield from _parts(plain, seen)


def _named(names: list[str], known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values that code names, and those of a user's modules that it may name there."""
    for name in names:
        value = known.get(name)
        yield name, value
        if isinstance(value, ModuleType) and _is_of_user(value.__name__):
            yield from ((f"{name}.{own}", vars(value).get(own)) for own in names)


def _is_array(value: object) -> bool:
    """Return whether a value is an array or a scalar of NumPy, which nothing here imports."""
    is_type = isinstance(value, type)
    return not is_type and all(hasattr(value, name) for name in ("dtype", "shape", "tobytes"))


def _counts(value: object, module: str) -> bool:
    """Return whether what a module names is a user's, or a value."""
    if isinstance(value, FunctionType | type):
        return value.__module__ == module or _is_of_user(value.__module__)
    of = type(value).__module__
    is_own = of == module or of.partition(".")[0] in (module, _OURS) or _is_of_user(of)
    return is_own or _is_value(value)


def _is_of_user(module: str | None) -> bool:
    """Return whether a module is a user's file, and not one of Python or of a package."""
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None or (module or "").partition(".")[0] == _OURS:
        return False
    path = Path(file).resolve()
    return not (_INSTALLED & {*path.parts} or path.is_relative_to(_LIBRARY))


_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()


def _is_value(value: object) -> bool:
    return isinstance(value, _VALUES) or _is_array(value)


def _code(code: CodeType, tree: ast.Module | None) -> Iterator[str]:
    """Yield the source of a function without comments; its compiled code if there is no source.

    The source of a lambda is that of its lines, which may have others: then both count.
    """
    if tree is None:
        yield from _compiled(code)
        return
    yield ast.dump(tree)
    lambdas = sum(isinstance(node, ast.Lambda) for node in ast.walk(tree))
    if code.co_name == "<lambda>" and lambdas > 1:
        yield from _compiled(code)


def _compiled(code: CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames))
    yield repr([each for each in code.co_consts if not isinstance(each, CodeType)])
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _compiled(each)


def _names(code: CodeType) -> set[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _tree(code: CodeType) -> ast.Module | None:
    """Return the source of a function as a tree; None if there is no source."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError):
        return None


def _written(tree: ast.Module | None) -> set[str]:
    """Return what a function writes to, by its name, or as `self.log`: none if it has no source."""
    return set() if tree is None else set(_targets(tree))


def _written_fields(cls: type) -> set[str]:
    """Return the fields that methods write to when an object has been made."""
    methods = (
        member
        for base in cls.__mro__
        for name, member in vars(base).items()
        if isinstance(member, FunctionType)
        and name not in _MAKERS
        and member.__module__ == base.__module__
    )
    found = set[str]()
    for method in methods:
        own = f"{next(iter(method.__code__.co_varnames), '')}."  # such as self.
        if (method.__module__ or "").partition(".")[0] != _OURS:
            found |= {
                n.removeprefix(own) for n in _written(_tree(method.__code__)) if n.startswith(own)
            }
    return found


def _targets(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from names
            case ast.Call(func=ast.Attribute(value=target, attr=attr)) if attr in _WRITERS:
                yield _dotted(target)
            case (
                ast.Subscript(ctx=ast.Store() | ast.Del())
                | ast.Attribute(ctx=ast.Store() | ast.Del())
            ):
                yield _dotted(node)


def _dotted(node: ast.expr) -> str:
    """Return the name of a variable or of its attribute, of which an item may be meant."""
    while isinstance(node, ast.Subscript):
        node = node.value
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return f"{name}.{attr}"
    return ""
