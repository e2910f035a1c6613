"""Records of results: what they have in common."""

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mor_ref.tracing import untraced

if TYPE_CHECKING:
    from mor_ref.record_pictures import Picture

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
        names = [field.name for field in fields(self) if not field.name.startswith("_")]  # type: ignore[arg-type]
        return all(_is_same(getattr(self, name), getattr(other, name)) for name in names)

    if not TYPE_CHECKING:  # type checkers know the attributes

        def __getattr__(self, name: str) -> Any:
            """Make the fields that are made later, or else refuse an attribute, with a hint."""
            own = self.__dict__
            if _LATER in own:
                _make_fields(self)
            if name in own:
                return own[name]
            from mor_ref.habits import hint_of_field

            hint = hint_of_field(name, type(self))
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                f"{f'; {hint}' if hint else ''}"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _names_of(self)}

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Refuse to become one array, as it would be the pickle of an object."""
        del dtype, copy
        names = ", ".join(field.name for field in fields(self))  # type: ignore[arg-type]
        raise TypeError(
            f"a record of type {type(self).__name__} is not one array; give one of its fields: "
            f"{names}"
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the record to a .safetensors or .npz file, whose arrays have the fields' names.

        `mor_ref.load(path)` returns it again. Records in a field have names such as `error.sum`.
        What is no array is in the metadata, or in the array `record`, as JSON.
        """
        from mor_ref.record_files import write_record

        write_record(self, path)


Made = TypeVar("Made", bound=Record)
Values = Iterator[Any]  # of the fields of a record, in their order
_LATER = "_values"


def made_later(
    kind: type[Made], ready: dict[str, Any], values: Callable[[], Iterable[Any]]
) -> Made:
    """Return a record whose fields are made when one is asked for that is not ready.

    Many callers need the codes of a small tensor alone. `values` returns the values of all fields,
    in their order, whatever happened in between: to the modes of the processor, too.
    """
    record = kind.__new__(kind)
    own = record.__dict__
    own.update(ready)
    own[_LATER] = values
    return record


@untraced
def _make_fields(record: Record) -> None:
    """Make the fields that were to be made later."""
    own = record.__dict__
    values = own.get(_LATER)
    if values is not None:  # no other thread was first
        own.update(zip(_names_of(record), values(), strict=True))
        own.pop(_LATER, None)


def _names_of(record: Record) -> tuple[str, ...]:
    kind: Any = type(record)
    return _names(kind)


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


class NumbersRecord(Record):
    """A result that stands for numbers: as an array, it is what `dequantize` returns.

    So it has their shape. A subclass whose numbers have no `codes` each says which array has an
    entry for each number.
    """

    dequantize: Any  # a method of each subclass
    _ENTRIES: ClassVar[str] = "codes"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the numbers."""
        return tuple(getattr(self, self._ENTRIES).shape)

    @property
    def ndim(self) -> int:
        """How many axes the numbers have."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(
                f"a record of type {type(self).__name__} of one number has no length; its size is 1"
            )
        return self.shape[0]

    @property
    def T(self) -> "Transposed":  # noqa: N802  # as arrays have it
        """The transpose, as `mor_ref.transposed` returns it for `matmul`."""
        return Transposed(self)

    def _repr_html_(self) -> str:
        """Return the record for a notebook: what its text says, and a picture."""
        from mor_ref.record_pictures import html_of

        return html_of(repr(self), self._picture())

    def _picture(self) -> "Picture":
        """Return what a picture shows: the choices of several units, or else the magnitudes."""
        from mor_ref.record_pictures import picture_of_choices, picture_of_magnitudes

        choice, names = self._choices()
        if choice is None or choice.size == 1:
            return picture_of_magnitudes(self.size, lambda: np.asarray(self))
        return picture_of_choices(choice, names)

    def _choices(self) -> tuple[NDArray[np.uint8] | None, tuple[str, ...]]:
        """Return which representation each unit took, and their names; None if there is one."""
        return None, ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the numbers as NumPy asks for them, such as in `np.save("y.npy", record)`."""
        if copy is False:
            raise ValueError(
                f"copy is False, but the numbers of a record of type {type(self).__name__} are "
                "made when they are asked for; leave copy out"
            )
        if dtype is not None and np.dtype(dtype).name.startswith(_WHOLE):
            names = [field.name for field in fields(self)]  # type: ignore[arg-type]
            has_codes = hasattr(self, "codes")
            use = ".codes" if has_codes else f"one of {', '.join(f'.{n}' for n in names)}"
            raise TypeError(
                f"dtype is {np.dtype(dtype).name}, but as an array, a record of type "
                f"{type(self).__name__} is its numbers, which are floats; use {use}"
            )
        return np.asarray(on_host(self.dequantize()), dtype)


@dataclass(frozen=True, eq=False, repr=False)
class Transposed(NumbersRecord):
    """A record or an array whose columns `matmul` takes as rows.

    >>> import mor_ref, numpy as np
    >>> record = mor_ref.quantize(np.float32([[0.5, -1.0, 2.0]]), "e4m3")
    >>> record.T.shape, record.T.dequantize().tolist(), record.T.T is record
    ((3, 1), [[0.5], [-1.0], [2.0]], True)
    """

    of: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the transpose."""
        of = self.of if hasattr(self.of, "shape") else self.of.dequantize()
        return tuple(of.shape)[::-1]

    @property
    def codes(self) -> NDArray[Any]:
        """The codes of the record, transposed."""
        codes: NDArray[Any] = self.of.codes.T
        return codes

    @property
    def T(self) -> Any:  # noqa: N802  # as arrays have it
        """The record or the array itself."""
        return self.of

    def dequantize(self) -> NDArray[Any]:
        """Return the numbers of the record, transposed."""
        y = self.of if hasattr(self.of, "dtype") else self.of.dequantize()
        transposed: NDArray[Any] = y.T
        return transposed

    def __repr__(self) -> str:
        is_record = isinstance(self.of, Record)
        of = repr(self.of) if is_record else f"an array of {'x'.join(map(str, self.of.shape))}"
        return f"<transpose of {of}>"


def on_host(value: Any) -> Any:
    """Return an array of a GPU as one of NumPy, and anything else as it is."""
    return value.get() if hasattr(value, "__cuda_array_interface__") else value


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two values of a field have the same bits."""
    one, other = on_host(one), on_host(other)
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
