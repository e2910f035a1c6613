"""Records of results: what they have in common."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

_WHOLE = ("int", "uint", "bool")  # names of dtypes begin so, also those of ml_dtypes


class Record:
    """A result. It equals another of its kind whose fields have the same bits.

    So -0 is not 0, and a NaN equals itself. The name of a subclass is for its dataclass, which has
    `eq=False`.
    """

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # its arrays can change

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]  # of a dataclass
        return all(_is_same(getattr(self, name), getattr(other, name)) for name in names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Refuse to become one array, as it would be the pickle of an object."""
        del dtype, copy
        names = ", ".join(field.name for field in fields(self))  # type: ignore[arg-type]
        raise TypeError(
            f"a record of type {type(self).__name__} is not one array; give one of its fields: "
            f"{names}"
        )


class NumbersRecord(Record):
    """A result that stands for numbers: as an array, it is what `dequantize` returns."""

    dequantize: Any  # a method of each subclass

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the numbers as NumPy asks for them, such as in `np.save("y.npy", record)`."""
        if copy is False:
            raise ValueError(
                f"copy is False, but the numbers of a record of type {type(self).__name__} are "
                "made when they are asked for; leave copy out"
            )
        if dtype is not None and np.dtype(dtype).name.startswith(_WHOLE):
            names = [field.name for field in fields(self)]  # type: ignore[arg-type]
            use = ".codes" if "codes" in names else f"one of {', '.join(f'.{n}' for n in names)}"
            raise TypeError(
                f"dtype is {np.dtype(dtype).name}, but as an array, a record of type "
                f"{type(self).__name__} is its numbers, which are floats; use {use}"
            )
        return np.asarray(self.dequantize(), dtype)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values of a field have the same bits."""
    if isinstance(one, np.ndarray | np.generic) or isinstance(other, np.ndarray | np.generic):
        a, b = np.asarray(one), np.asarray(other)
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.hasobject:
            return bool(np.all(a == b))
        return a.tobytes() == b.tobytes()
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return bool(one == other)
