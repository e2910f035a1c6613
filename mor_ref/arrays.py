"""Arrays of users, turned into contiguous bit patterns, or refused with a reason."""

import mmap
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from mor_ref.argument_checks import check_lists, items_of, shown
from mor_ref.definitions.format_names import DTYPES
from mor_ref.definitions.table_format import ElementFormat

Bits = NDArray[np.unsignedinteger[Any]]

BF16 = np.dtype(ml_dtypes.bfloat16)
_WORDS: dict[Any, np.dtype[np.unsignedinteger[Any]]] = {
    np.dtype(np.float64): np.dtype(np.uint64),
    np.dtype(np.float32): np.dtype(np.uint32),
    np.dtype(np.float16): np.dtype(np.uint16),
    BF16: np.dtype(np.uint16),
}
_CODES = "unsigned integers"
_SMALL_INTEGERS = ("int2", "int4", "uint2", "uint4")  # of ml_dtypes
_NO_NUMBERS = {  # by kinds of dtypes
    "b": "truth values",
    "c": "complex numbers",
    "M": "dates",
    "m": "times",
    "O": "objects",
    "S": "text",
    "U": "text",
}
_TAKEN = "float64, float32, float16, bfloat16 or a CPU torch tensor of one of these"


class Numbers(NamedTuple):
    """The bit patterns of numbers in row-major order, and their dtype and shape."""

    bits: Bits
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def is_bf16(self) -> bool:
        """Whether they were bfloat16, whose bits are the upper half of a binary32's."""
        return bool(self.dtype == BF16)

    @property
    def described(self) -> str:
        """Their shape and dtype, such as "64x128 bfloat16"."""
        return described(self.shape, self.dtype)

    def rows(self, first: int, last: int) -> "Numbers":
        """Return some of its rows, as a matrix; leading axes fold (BLK-001)."""
        columns = self.shape[-1]
        some = self.bits[first * columns : last * columns]
        return Numbers(some, self.dtype, (some.size // columns, columns))


class Codes(NamedTuple):
    """The bit patterns in somebody's array, and the format of its dtype; None if it has none.

    If they are `packed`, a byte has two codes.
    """

    bits: Any
    format: str | None = None
    packed: bool = False


class RandomWords(NamedTuple):
    """The caller's random bits for stochastic rounding: one word below 2^n for each element."""

    words: Bits
    n: int


@lru_cache(maxsize=1024)
def described(shape: tuple[int, ...], dtype: np.dtype[Any]) -> str:
    """Return a shape and a dtype as text, such as "64x128 bfloat16"."""
    return f"{'x'.join(map(str, shape)) or 'scalar'} {dtype}"


def numbers_from(
    x: object, argument: str, taken: str = _TAKEN, widest: type[np.floating[Any]] = np.float32
) -> Numbers:
    """Return the bit patterns of the numbers in `x`, copied only if they do not lie in order.

    Integers, and floats of 8 bits and fewer, become float32, or the `widest` if it is needed:
    nothing is rounded.
    """
    array = x if type(x) is np.ndarray else _array_from(x, argument, np.floating, taken)
    word = _WORDS.get(array.dtype)
    if word is None:  # of another byte order, or another dtype
        if array.dtype.newbyteorder("=") in _WORDS:
            array = array.astype(array.dtype.newbyteorder("="))
        else:
            array = _exactly(array, argument, taken, widest)
        word = _WORDS[array.dtype]
    flags, shape = array.flags, array.shape
    if not (flags.c_contiguous and flags.aligned):
        array = in_order(array)
    bits = (array if len(shape) == 1 else array.reshape(-1)).view(word)
    return tuple.__new__(Numbers, (bits, array.dtype, shape))  # its own takes twice as long


def in_order(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array whose entries lie in order, and aligned; a copy only if they do not."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.require(array, None, ["C", "A"])


def _exactly(
    array: NDArray[Any], argument: str, taken: str, widest: type[np.floating[Any]]
) -> NDArray[Any]:
    """Return numbers of another dtype as floats that are exactly these; refuse any others."""
    name = array.dtype.name
    if name in DTYPES:
        return array.astype(np.float32)
    if array.dtype.kind in "iu" or name in _SMALL_INTEGERS:
        wide = array.astype(np.int64) if name in _SMALL_INTEGERS else array
        for dtype in dict.fromkeys((np.dtype(np.float32), np.dtype(widest))):
            is_exact = _has_integers(dtype, wide)
            if is_exact.all():
                floats: NDArray[Any] = wide.astype(dtype)
                return floats
        raise TypeError(
            f"{argument} holds {wide[~is_exact].flat[0]}, which {dtype} does not have; convert it "
            f"yourself and give {taken}: mor_ref does not round silently"
        )
    what = _NO_NUMBERS.get(array.dtype.kind)
    if what is not None:
        raise TypeError(f"{argument} holds {what} (dtype {array.dtype}); give {taken}")
    raise TypeError(
        f"{argument} has dtype {array.dtype}; convert it yourself and give {taken}: mor_ref does "
        "not round silently"
    )


def _has_integers(dtype: np.dtype[Any], integers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether a dtype of floats has each integer: its bits from first to last are few."""
    bits = np.finfo(dtype).nmant + 1
    words = integers.astype(np.uint64)
    magnitudes = np.where(integers < 0, ~words + np.uint64(1), words)
    lowest = magnitudes & (~magnitudes + np.uint64(1))
    is_short = lowest >> np.uint64(64 - bits) > 0
    exact: NDArray[np.bool_] = (magnitudes < lowest << np.uint64(bits)) | is_short
    exact |= magnitudes == 0
    return exact


def codes_in(x: Any) -> Codes:
    """Return the bit patterns of an array whose dtype is a format; anything else as it is.

    >>> codes_in(np.array([1.5], np.float32))
    Codes(bits=array([1069547520], dtype=uint32), format='f32', packed=False)
    >>> codes_in([1, 2])
    Codes(bits=[1, 2], format=None, packed=False)
    """
    name = str(getattr(x, "dtype", "")).removeprefix("torch.")
    fmt, packed = DTYPES.get(name), name.endswith("_x2")
    if _is_torch_tensor(x):
        torch = sys.modules["torch"]
        there = x.detach().cpu().contiguous()
        if fmt is not None:
            there = there.view(getattr(torch, f"int{8 * there.itemsize}"))
        array = there.numpy()
        return Codes(array if fmt is None else array.view(f"u{array.itemsize}"), fmt, packed)
    if fmt is None:
        return Codes(x)
    array = np.require(x, requirements="C")
    return Codes(array.view(f"u{array.itemsize}"), fmt)


def let_go(x: NDArray[Any]) -> None:
    """Let the pages of a user's mapped file go that have been read: they count as memory."""
    base: Any = x
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def code_dtype(fmt: ElementFormat) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the smallest unsigned dtype that holds the codes of a format."""
    return _CODE_DTYPES[fmt.bits]


_CODE_DTYPES = tuple(
    np.dtype(f"uint{next(width for width in (8, 16, 32) if bits <= width)}") for bits in range(33)
)


def codes_from(x: object, fmt: ElementFormat, argument: str) -> Bits:
    """Return codes of a format: unsigned integers, or an array whose dtype is the format."""
    if type(x) is np.ndarray and x.dtype.kind in "ui":
        return unsigned_from(x, fmt.bits, code_dtype(fmt), argument)
    dtype = str(getattr(x, "dtype", ""))
    own = DTYPES.get(dtype.removeprefix("torch."))
    is_elsewhere = _is_torch_tensor(x) and x.device.type != "cpu"  # type: ignore[attr-defined]
    if own is not None and not dtype.endswith("_x2") and not is_elsewhere:
        if own != fmt.name:
            raise TypeError(
                f"{argument} has dtype {dtype}, which is {own}, and the format is {fmt.name!r}; "
                f"give {own!r}, or the codes by a view"
            )
        x = codes_in(x).bits
    return unsigned_from(x, fmt.bits, code_dtype(fmt), argument)


def unsigned_from(x: object, bits: int, dtype: np.dtype[Any], argument: str) -> Bits:
    """Return integers of at most so many bits (DEC-004), in order, with that dtype."""
    array = x if type(x) is np.ndarray else _array_from(x, argument, np.integer, _CODES)
    given = array.dtype
    if given is not dtype or 8 * dtype.itemsize > bits:
        if given.kind != "u" or 8 * given.itemsize > bits:
            _check_codes(array, bits, argument, is_list=isinstance(x, list | tuple))
        array = array.astype(dtype, copy=False)
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else in_order(array)


def _check_codes(array: NDArray[Any], bits: int, argument: str, *, is_list: bool) -> None:
    """Refuse codes that are not integers of at most so many bits (DEC-004)."""
    kind = array.dtype.kind
    if kind not in "ui" and not (is_list and array.size == 0):
        view = " (.view() shows the codes of a small float dtype)" if kind == "V" else ""
        raise TypeError(f"{argument} has dtype {array.dtype}; give unsigned integers{view}")
    if array.size:
        # In a quarter of the time that min() and max() take for few codes.
        lowest = 0 if kind == "u" else array.item(array.argmin())
        highest = array.item(array.argmax())
        if lowest < 0 or highest >> bits:
            wrong = lowest if lowest < 0 else highest
            raise ValueError(
                f"{argument} holds {wrong}, which does not fit {bits} bits; "
                f"give integers from 0 to {(1 << bits) - 1}"
            )


def check_out(out: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an `out` that codes of that shape and dtype cannot be written to."""
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray | np.matrix):
        raise TypeError(f"out is of type {type(out).__name__}; give a numpy.ndarray of {dtype}")
    if out.dtype != dtype or out.shape != shape:
        raise ValueError(
            f"out has dtype {out.dtype} and shape {out.shape}; give dtype {dtype} and shape {shape}"
        )
    if not out.flags.writeable:
        raise ValueError("out is read-only; give an array that can be written")
    if any(stride == 0 and side > 1 for stride, side in zip(out.strides, shape, strict=True)):
        raise ValueError("out has elements at the same address; give an array with room for each")


def room_for(
    out: NDArray[Any] | None,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    inputs: Sequence[NDArray[Any]],
) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
    """Return flat room for a result, and a function from there to the array that is returned."""
    if out is None:
        room: NDArray[Any] = np.empty(shape, dtype)
        return room if len(shape) == 1 else room.reshape(-1), lambda _: room
    return _room_in(out, shape, dtype, inputs)


def _room_in(
    out: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any], inputs: Sequence[NDArray[Any]]
) -> tuple[NDArray[Any], Callable[[NDArray[Any]], NDArray[Any]]]:
    check_out(out, shape, dtype)
    is_plain = out.flags.c_contiguous and out.flags.aligned
    if is_plain and not any(np.may_share_memory(out, each) for each in inputs):
        return out.reshape(-1), lambda _: out

    def copied(found: NDArray[Any]) -> NDArray[Any]:
        out[...] = found.reshape(shape)
        return out

    return np.empty(out.size, dtype), copied


def copied_to(out: NDArray[Any] | None, y: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of y; it goes to `out`, if that is given."""
    if out is None:
        return y.copy()
    check_out(out, y.shape, y.dtype)
    out[...] = y
    return out


def _array_from(x: object, argument: str, kind: type, taken: str) -> NDArray[Any]:
    """Return an array of the items of `x`; the caller checks its dtype."""
    if _is_torch_tensor(x):
        return _from_torch(x, argument, taken)
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{argument} is a masked array; give x.filled(..) or x.data")
    if isinstance(x, list | tuple):
        for item in items_of(x):
            _check_item(item, argument, kind, taken)
    return array_given(argument, x, taken)


def array_given(argument: str, x: object, taken: str) -> NDArray[Any]:
    """Return what is given as an array of whatever dtype NumPy finds for it."""
    check_lists(argument, x)
    try:
        return np.asarray(x)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{argument} is not an array ({error}); give {taken}") from error


def _check_item(item: object, argument: str, kind: type, taken: str) -> None:
    """Refuse an item of a list if NumPy, which finds one dtype for the whole list, converts it."""
    if isinstance(item, np.ma.MaskedArray) or _is_torch_tensor(item):
        raise TypeError(f"{argument} holds a {type(item).__name__}; give one array of {taken}")
    if isinstance(item, np.ndarray | np.generic):
        is_integer = kind is np.floating and issubclass(item.dtype.type, np.integer)
        if not is_integer and not issubclass(item.dtype.type, kind | BF16.type):
            raise TypeError(
                f"{argument} holds an array or scalar of {item.dtype}; give {taken}: mor_ref "
                "does not convert silently"
            )
        if is_integer and not all(_has(number) for number in item.reshape(-1).tolist()):
            raise TypeError(
                f"{argument} holds {shown(item)}, of which binary64 lacks an integer; give "
                f"{taken}: mor_ref does not convert silently"
            )
    elif isinstance(item, int | float | complex):
        own = int if kind is np.integer else int | float
        is_number = isinstance(item, own) and not isinstance(item, bool)
        if not is_number or (isinstance(item, int) and kind is np.floating and not _has(item)):
            raise TypeError(
                f"{argument} holds the {type(item).__name__} {item!r}; give {taken}: mor_ref "
                "does not convert silently"
            )


def _has(item: int) -> bool:
    """Return whether binary64, which a list with floats becomes, has an integer."""
    try:
        return int(float(item)) == item
    except OverflowError:
        return False


def _is_torch_tensor(x: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _from_torch(x: Any, argument: str, taken: str) -> NDArray[Any]:
    """Return the memory of a tensor as an array; torch cannot show NumPy a bfloat16."""
    torch = sys.modules["torch"]
    if x.device.type != "cpu" or x.layout != torch.strided:
        raise TypeError(
            f"{argument} is a torch tensor of layout {x.layout} on {x.device}; "
            "give a dense one on the CPU: x.to_dense().cpu()"
        )
    try:
        plain = x.detach().resolve_conj().resolve_neg()
        name = str(plain.dtype).removeprefix("torch.")
        if plain.dtype == torch.bfloat16:
            array: NDArray[Any] = plain.view(torch.int16).numpy().view(BF16)
        elif taken != _CODES and name in DTYPES and plain.dtype.itemsize == 1:
            array = plain.float().numpy()  # exactly
        else:
            array = plain.numpy()
    except (TypeError, RuntimeError) as error:
        if _has_dtype_of_numpy(x):
            raise TypeError(
                f"{argument} is a {type(x).__name__} without numbers, as torch.export, vmap and "
                "other tracing of torch have them; call mor_ref outside of traced code"
            ) from error
        is_of_codes = taken == _CODES and plain.dtype.is_floating_point
        view = " (.view(torch.uint8) shows the codes of a small float dtype)" if is_of_codes else ""
        raise TypeError(f"{argument} is a torch tensor of {x.dtype}; give {taken}{view}") from error
    return array


def _has_dtype_of_numpy(x: Any) -> bool:
    try:
        sys.modules["torch"].empty(0, dtype=x.dtype).numpy()
    except (TypeError, RuntimeError):
        return False
    return True


def dequantized_dtype(dtype: object) -> np.dtype[Any]:
    """Return the dtype to dequantize to: float32 or bfloat16."""
    try:
        wanted = None if dtype is None else np.dtype(dtype)  # type: ignore[call-overload]
    except TypeError:
        wanted = None
    for known in (np.dtype(np.float32), BF16):
        if wanted == known:
            return known
    given = dtype if wanted is None else wanted
    raise TypeError(f"dtype is {given}; give float32, or bfloat16 of ml_dtypes")
