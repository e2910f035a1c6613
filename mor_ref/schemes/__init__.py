"""The schemes with a chapter of their own: a directory each, with all that is of the scheme alone.

MX, NVFP4 and scaled formats are in the core. `fp8` and `fp4` are rows of block formats; the others
are none.
Dot products are in the core, too: they take the codes and scales of every representation, and
training and `matmul` are made of them.

`SCHEMES` is the one list of them, in the order of the specification, with their public functions
and records. All directories have the same names of files, as far as they need them: `definition`,
`exact`, `engine`, `functions` (what users call), `cuda`, `representation`, `recipe`, `operation`,
`suites`, `inputs`, `deviations` and `domain`. A second file of a
name has a word more, as `exact_groups`.

No scheme needs another, but for `selection`: its rest is quantized by `affine` or `levels`.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, TypeVar

Value = TypeVar("Value")

SCHEMES = {
    "shared": ("Shared", "quantize_shared"),
    "levels": ("Levels", "quantize_levels"),
    "affine": ("Affine", "quantize_affine"),
    "selection": ("select",),
    "mixed": ("Mixed", "mix_formats", "mix_layer"),
    "fp8lm": (),
    "fp8": (),
    "fp4": ("fp4_with_reciprocals",),
}


@functools.cache
def in_schemes(file: str) -> tuple[ModuleType, ...]:
    """Return the modules of all schemes that have a name such as `exact`, or begin with it."""
    return tuple(
        importlib.import_module(name)
        for scheme in SCHEMES
        for name in _modules_of(scheme)
        if f"{name.rpartition('.')[2]}_".startswith(f"{file}_")
    )


def values_in_schemes(file: str, kind: type[Value]) -> Iterator[Value]:
    """Yield the values of a type that these modules have, such as operations."""
    for module in in_schemes(file):
        yield from (value for value in vars(module).values() if isinstance(value, kind))


def collected_later(package: str, catalogue: str) -> Callable[[str], Any]:
    """Return `__getattr__` of a package whose module `catalogue` has a table of this name.

    The table is collected when it is first asked for: files of schemes import the package.
    """

    def attribute(name: str) -> Any:
        if name != catalogue:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.catalogue"), name)

    return attribute


def _modules_of(scheme: str) -> list[str]:
    package = importlib.import_module(f"{__name__}.{scheme}")
    return sorted(
        f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)
    )
