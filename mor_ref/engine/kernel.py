"""`step`, `kernel` and `integer_kernel`: how functions are compiled, and where they are kept.

Numba keeps a compiled function on disk for as long as the file of that function does not change.
That is not enough. A kernel is also made of the steps that it calls, of constants, and of the order
of the fields in a row, and these are in other files. And a file may differ from the loaded code.
Here the place on disk is named after a digest of all code of the engine as it is loaded in this
process. Other code has another place, and no kernel of the old code can be found there. All
modules are loaded first: the digest does not depend on earlier calls of the process.
"""

import functools
import hashlib
import importlib
import operator
import os
import pickle
import pkgutil
import re
import shutil
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    NullCache,
    _Cache,
)
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.registry import CPUDispatcher

from mor_ref.definitions.catalogue import Catalogue
from mor_ref.processor_modes import check_processor
from mor_ref.schemes import SCHEMES
from mor_ref.signals import signals_later

_DIGESTS_KEPT = 16
_DIGEST = hashlib.sha256().digest_size
_OF_THE_ENGINE = re.compile(r"mor_ref\.(engine\.\w+|schemes\.\w+\.engine\w*)")


def code_digest() -> str:
    """Return a digest of all that kernels come from: the engine's code, and the compilers."""
    named = {"numba ": numba.__version__, "llvmlite ": llvmlite.__version__} | {
        f"{module}.{name} ": value
        for module in engine_modules()
        for name, value in vars(sys.modules[module]).items()
        if not name.startswith("__")
    }
    places = tuple(map(id, named.values()))
    if places not in _LATEST:  # the modules have other values than when it was last asked
        _LATEST.clear()
        _LATEST[places] = named, _digest_of(named)
    return _LATEST[places][1]


# It keeps references to the values, so that their ids stay unique.
_LATEST: dict[tuple[int, ...], tuple[dict[str, object], str]] = {}


def _digest_of(named: dict[str, object]) -> str:
    """Return a digest of values and of their names."""
    digest = hashlib.sha256()
    known: dict[int, bytes] = {}  # by their places in memory: modules share most of the values
    for name, value in sorted(named.items(), key=operator.itemgetter(0)):
        if id(value) not in known:
            known[id(value)] = _digest_of_value(value)
        if known[id(value)]:  # else it is nothing that a kernel is made of
            digest.update(name.encode() + known[id(value)])
    return digest.hexdigest()[:32]


@functools.cache
def engine_modules() -> tuple[str, ...]:
    """Return the names of all modules of the engine and of those of schemes, which are imported.

    A digest of some modules is of another place on disk than one of all.
    """
    packages = ("mor_ref.engine", *(f"mor_ref.schemes.{scheme}" for scheme in SCHEMES))
    names = [
        module.name
        for package in packages
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
        if _OF_THE_ENGINE.fullmatch(module.name)
    ]
    for name in names:
        importlib.import_module(name)
    return tuple(sorted(names))


def _digest_of_value(value: object) -> bytes:
    """Return a digest of a value that kernels may be made of, and nothing for others."""
    parts = [f"{len(part)} {part}" for part in _parts_of_value(value)]
    return hashlib.sha256("".join(parts).encode()).digest() if parts else b""


def _parts_of_value(value: object) -> Iterator[str]:
    """Return the parts of a constant, a function or a class that kernels are made of."""
    if isinstance(value, int | float | str | bytes | tuple | np.generic):
        yield repr(value)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    elif isinstance(value, Dispatcher):
        yield from _parts_of_value(value.py_func)
    elif isinstance(value, _Intrinsic):
        yield from _parts_of_value(value._defn)
    elif isinstance(value, FunctionType) and _OF_THE_ENGINE.match(value.__module__):
        yield from _parts_of_code(value.__code__)
        for content in _enclosed_by(value):
            yield from _parts_of_value(content)
    elif isinstance(value, type) and _OF_THE_ENGINE.match(value.__module__):
        yield repr(getattr(value, "_fields", None))
        for name, member in vars(value).items():
            if not name.startswith("__"):
                yield from _parts_of_value(member.fget if isinstance(member, property) else member)


def _enclosed_by(function: FunctionType) -> Iterator[object]:
    """Yield the values of a closure, but for the class of a method that calls super()."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name != "__class__":  # which has this method
            yield cell.cell_contents


@functools.cache  # code never changes
def _parts_of_code(code: CodeType) -> tuple[str, ...]:
    parts = [f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"]
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            parts += _parts_of_code(constant)
        else:
            parts.append(repr(sorted(constant) if isinstance(constant, frozenset) else constant))
    return tuple(parts)


def cache_directory() -> Path:
    """Return the directory that keeps the kernels of the loaded code between processes.

    It lies under NUMBA_CACHE_DIR if that is set, else under XDG_CACHE_HOME or ~/.cache.
    """
    root = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "mor_ref-kernels" / code_digest()


def _forget_old_code(parent: Path) -> None:
    ours = [path for path in parent.iterdir() if re.fullmatch("[0-9a-f]{32}", path.name)]
    by_age = sorted(ours, key=lambda path: path.stat().st_mtime, reverse=True)
    for directory in by_age[_DIGESTS_KEPT:]:
        shutil.rmtree(directory, ignore_errors=True)


class _Locator:
    """One directory, in the protocol of Numba's cache locators."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get_cache_path(self) -> str:
        return str(self._directory)

    def ensure_cache_path(self) -> None:
        if not self._directory.is_dir():
            self._directory.mkdir(parents=True, exist_ok=True)
            _forget_old_code(self._directory.parent)

    def get_source_stamp(self) -> str:
        return self._directory.name

    def get_disambiguator(self) -> str:
        return ""


class _Implementation(CompileResultCacheImpl):
    """Numba's, without its search for a locator, which its settings may send elsewhere."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(cache_directory())
        self._filename_base = self.get_filename_base(
            f"{function.__module__}.{function.__qualname__}", ""
        )


class _CheckedFiles(IndexDataCacheFile):
    """Files that begin with a digest of the rest: machine code with a wrong bit would crash.

    The digest is of the place as well: a file at the place of another is no kernel. The name of
    machine code is a digest of what it is for. So two processes that add to an index at once can
    lose an entry, and never lead to the code of another.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep machine code, and list it in the index."""
        name = self._name_of(key)
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})

    def load(self, key: Any) -> Any:
        """Return machine code; None if the index does not list it."""
        return self._load_data(self._name_of(key)) if key in self._load_index() else None

    def _name_of(self, key: Any) -> str:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()
        return f"{Path(self._index_path).stem}.{digest[:32]}.nbc"

    def _load_index(self) -> Any:
        path = Path(self._index_path)
        return self._checked(path) if path.is_file() else {}

    def _save_index(self, overloads: Any) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(_checked_content(Path(self._index_path), self._dump(overloads)))

    def _save_data(self, name: str, data: Any) -> None:
        path = self._data_path(name)
        with self._open_for_write(path) as file:
            file.write(_checked_content(Path(path), self._dump(data)))

    def _load_data(self, name: str) -> Any:
        return self._checked(Path(self._data_path(name)))

    def _checked(self, path: Path) -> Any:
        content = path.read_bytes()
        kept = content[_DIGEST:]
        if _checked_content(path, kept) != content:
            raise ValueError(f"{path} is damaged")
        return pickle.loads(kept)  # noqa: S301  # Numba wrote it, and it is as it was written


def _checked_content(path: Path, content: bytes) -> bytes:
    place = f"{path.parent.name}/{path.name}"
    return hashlib.sha256(place.encode() + content).digest() + content


class _FilesOfNow(FunctionCache):
    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _CheckedFiles(self._cache_path, self._impl.filename_base, stamp)


class _KernelCache(_Cache):
    """Numba's cache of one kernel, for the code that is loaded at the time of the call.

    The cache is optional: if it cannot be read or written (no home, no room, a damaged file), the
    kernel is compiled again.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    @property
    def cache_path(self) -> str:
        return str(cache_directory())

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        try:
            return _FilesOfNow(self._function).load_overload(signature, target_context)
        except Exception:  # noqa: BLE001  # unpickling damaged bytes can raise anything
            self.flush()
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        if compiled.library.has_dynamic_globals:
            name = self._function.__qualname__
            raise RuntimeError(f"kernel {name} has an address of this process, and cannot be kept")
        try:
            _FilesOfNow(self._function).save_overload(signature, compiled)
        except Exception:  # noqa: BLE001  # as above
            self.flush()

    def enable(self) -> None:
        """Do nothing: the cache is always enabled."""

    def disable(self) -> None:
        """Do nothing: a kernel that is not wanted on disk is not decorated with `kernel`."""

    def flush(self) -> None:
        try:
            shutil.rmtree(cache_directory(), ignore_errors=True)
        except RuntimeError:
            return  # there is no home, and so there is nothing


# With the error model "numpy", a division by zero follows IEEE 754 and raises nothing.
_WITHOUT_WRAPPERS: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
step = numba.njit(error_model="numpy", **_WITHOUT_WRAPPERS)
"""A scalar step of a rule; it is compiled into the kernels that call it, and not for Python."""


class _Kernel(CPUDispatcher):
    """A kernel that is loaded or compiled whole: callbacks of LLVM would lose an interrupt."""

    def compile(self, signature: Any) -> Any:
        with signals_later():
            return super().compile(signature)


class _CheckedKernel(_Kernel):
    """A kernel that refuses to run in a thread whose modes would change its results."""

    def __call__(self, *arguments: Any) -> Any:
        check_processor()
        return super().__call__(*arguments)


class Direct:
    """A kernel that is told the same in each call but for some arrays; it checks no modes.

    Of those arrays, some were given to the caller, and their `kind` tells them apart: there is a
    compiled function for each. It has what may differ of dtypes, dimensions and order, such as
    `x.dtype, x.flags.num`; numbers and codes of users lie in order before they come here. The
    caller has just made the others, by `np.empty` or `np.zeros`, and their dtypes and dimensions
    follow from those that were given. All else that it tells is the same as well. So there is an
    object for each place that calls, and for each row. The first arrays are those that the kernel
    only reads, as many as `reads`.
    """

    def __init__(self, kernel: Any, *row: Any, reads: int = 1) -> None:
        self.kernel, self.row, self._reads = kernel, row, reads
        self._functions: dict[Any, Any] = {}

    def __call__(self, kind: Hashable, *arguments: Any) -> Any:
        """Run the kernel with these arguments, some of which are of that kind, and with the row."""
        function = self._functions.get(kind)
        if function is None:
            given = arguments[: self._reads]
            function = compiled_for(self.kernel, (*arguments, *self.row), given)
            self._functions[kind] = function
        return function(*(arguments + self.row))


def compiled_for(
    kernel: Any, arguments: Sequence[Any], given: Sequence[Any] = ()
) -> Callable[..., Any]:
    """Return the compiled function of a kernel for arguments of these types.

    What no public function gives to a kernel is refused: its loops read arrays in order. Those that
    are given are only read, so that one function takes them whether they can be written or not.
    """
    for array in arguments:
        if not isinstance(array, np.ndarray):
            continue
        flags, dtype = array.flags, array.dtype
        if not (flags.c_contiguous and flags.aligned and dtype.isnative and dtype.kind in "buif"):
            raise TypeError(
                f"an array of dtype {dtype.str} and strides {array.strides} lies in no order that "
                "kernels take; give a contiguous and aligned copy"
            )
    types = (_type_of(argument, given) for argument in arguments)
    function: Callable[..., Any] = kernel.compile(tuple(types))
    return function


def _type_of(argument: Any, given: Sequence[Any]) -> Any:
    """Return the type of an argument; an array that is given is one that nobody writes to."""
    own: Any = numba.typeof(argument)
    is_given = any(argument is array for array in given)
    return own.copy(readonly=True) if is_given and isinstance(argument, np.ndarray) else own


_names: set[str] = set()  # of the kernels that were made


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop over arrays when it is first called; cache it on disk; release the GIL.

    Each call checks the modes of its own thread: other threads may have others.
    """
    return _compiled(function, _CheckedKernel)


def integer_kernel(function: Callable[..., Any]) -> Any:
    """Make a kernel whose results no mode of the processor can change: it does not check."""
    return _compiled(function, _Kernel)


def passing_kernel(function: Callable[..., Any]) -> Any:
    """Make a kernel that this process alone has: it calls functions that no digest covers."""
    dispatcher = _compiled(function, _CheckedKernel)
    dispatcher._cache = NullCache()
    return dispatcher


def _compiled(function: Callable[..., Any], dispatcher_class: type[_Kernel]) -> Any:
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # made when Numba is imported
        raise RuntimeError(
            "NUMBA_DISABLE_JIT is set, but the engine's kernels only run compiled; unset it, or "
            "use mor_ref.exact, which is plain Python"
        )
    name = f"{function.__module__}.{function.__qualname__}"
    if name in _names:  # its module is loaded again, and what is kept of calls has the old kernel
        Catalogue.changes += 1
    _names.add(name)
    options = {"nopython": True, "nogil": True, "error_model": "numpy"}
    dispatcher: Any = dispatcher_class(function, targetoptions=options)
    dispatcher._cache = _KernelCache(function)
    return dispatcher
