"""Encoding: the public function."""

from typing import TYPE_CHECKING, Any

import numpy as np

from mor_ref.api.border import public_in_every_mode
from mor_ref.api.plans import Plans
from mor_ref.argument_checks import whole_number
from mor_ref.arrays import (
    Bits,
    RandomWords,
    code_dtype,
    numbers_from,
    room_for,
    unsigned_from,
)
from mor_ref.definitions.encoding import (
    Nan,
    Overflow,
    RandomBits,
    Rounding,
    SpecialCases,
    rounding_for,
    takes_random_bits,
)
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import FormatLike, as_format, random_bits_for, special_cases_for
from mor_ref.definitions.table_format import ElementFormat

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@public_in_every_mode
def encode(
    x: "ArrayLike",
    fmt: FormatLike,
    *,
    rounding: Rounding | None = None,
    overflow: Overflow | None = None,
    nan: Nan | None = None,
    profile: str | None = None,
    random_bits: "ArrayLike | None" = None,
    n_random_bits: int | str | None = None,
    out: Bits | None = None,
    threads: int | None = None,
) -> Bits:
    """Return the codes of the numbers in `x`, in the smallest unsigned dtype that holds them.

    `x` is float64, float32, float16, bfloat16 (ml_dtypes) or a CPU torch tensor, of any shape; a
    float64 is rounded once. `rounding` is "rne" (the default), "rtz", "rtp", "rtn", "rna", "rto"
    or "sr"; e8m0 takes "rtp" (its default), "rtz", "rna" and "rne". "sr" needs `random_bits`, a
    word below 2**n_random_bits for each element. With "cuda" for `n_random_bits`, two or four
    elements next to each other share a word of 32 bits, as the instruction `cvt.rs` has it; with
    "te", four do, as Transformer Engine has it where that instruction is missing.
    `overflow` is "satfinite" (the default) or "ieee".
    `nan` is "canonical" (the default) or "signed". In place of these two, `profile` names a library
    to follow: "cuda", "ml_dtypes" or "torch". By default, `threads` is all that can run.

    >>> import mor_ref
    >>> mor_ref.encode([0.3, -500.0, float("nan")], "e4m3")
    array([ 42, 254, 127], dtype=uint8)
    >>> mor_ref.encode([0.3, -500.0, float("nan")], "e4m3", profile="ml_dtypes")
    array([ 42, 255, 127], dtype=uint8)
    """
    plan = _plans(fmt, rounding, overflow, nan, profile)
    numbers = numbers_from(x, "x", widest=np.float64)
    words: RandomWords | None = None
    inputs: tuple[Bits, ...] = (numbers.bits,)
    if plan.rounding == "sr" or not random_bits is n_random_bits is None:
        words = _random_words(plan, random_bits, n_random_bits, numbers.shape)
        inputs += () if words is None else (words.words,)
    codes, store = room_for(out, numbers.shape, plan.dtype, inputs)
    plan.encode_into(codes, numbers, plan[numbers.dtype], words, threads)
    return store(codes)


class _Plan(dict[np.dtype[Any], Any]):
    """What follows from the arguments without numbers: the rules, and the loop of each dtype."""

    def __init__(self, fmt: Format, rounding: Rounding, special: SpecialCases) -> None:
        from mor_ref.engine import encoding  # imports Numba

        super().__init__()
        self.fmt, self.rounding, self.dtype = fmt, rounding, code_dtype(fmt)
        self.encode_into = encoding.encode_into
        self._special, self._loop_for = special, encoding.loop_for

    def __missing__(self, dtype: np.dtype[Any]) -> Any:
        """Return the loop of the engine for numbers of a dtype, which is kept."""
        loop = self[dtype] = self._loop_for(self.fmt, self.rounding, self._special, dtype)
        return loop


def _plan(
    fmt: FormatLike,
    rounding: str | None,
    overflow: str | None,
    nan: str | None,
    profile: str | None,
) -> _Plan:
    target = as_format(fmt)
    special = special_cases_for(target, overflow, nan, profile)
    return _Plan(target, rounding_for(target, rounding, special), special)


_plans = Plans(_plan)


def _random_words(
    plan: _Plan, random_bits: object, n_random_bits: object, shape: tuple[int, ...]
) -> RandomWords | None:
    if not takes_random_bits(plan.rounding, random_bits=random_bits, n_random_bits=n_random_bits):
        return None
    return words_for(random_bits, n_random_bits, shape, plan.fmt)


def _shared_words(random_bits: object, bits: RandomBits, shape: tuple[int, ...]) -> RandomWords:
    """Return the random words of elements that share words of 32 bits (ENC-017)."""
    words = unsigned_from(random_bits, 32, np.dtype(np.uint32), "random_bits")
    count = len(bits.places)
    wanted = (*shape[:-1], shape[-1] // count) if shape and shape[-1] % count == 0 else None
    if wanted is None:
        raise ValueError(
            f"x has shape {shape}, but {count} elements share a random word; give a multiple of "
            f"{count} in the last dimension of x"
        )
    if words.shape != wanted:
        raise ValueError(
            f"random_bits has shape {words.shape}, but {count} elements share a word; give {wanted}"
        )
    from mor_ref.engine.encoding import shared_words  # imports Numba

    return RandomWords(shared_words(words, bits).reshape(-1), bits.count)


def words_for(
    random_bits: object, n_random_bits: object, shape: tuple[int, ...], fmt: ElementFormat
) -> RandomWords:
    """Return the random words of a tensor of this shape, for codes of a format; refuse others."""
    if isinstance(n_random_bits, str):
        return _shared_words(random_bits, random_bits_for(n_random_bits, fmt), shape)
    n = whole_number("n_random_bits", n_random_bits, 1, 32)
    words = unsigned_from(random_bits, n, _dtype_of_words(random_bits), "random_bits")
    if words.shape != shape:
        raise ValueError(
            f"random_bits has shape {words.shape}, but x has {shape}; give a word for each element"
        )
    flat = words if len(shape) == 1 else words.reshape(-1)
    return tuple.__new__(RandomWords, (flat, n))  # its own takes twice as long


def _dtype_of_words(random_bits: object) -> np.dtype[Any]:
    """Return the dtype for random words; a narrow one stays: there is less to read."""
    return _NARROW_WORDS.get(getattr(random_bits, "dtype", None), _WORDS)


_WORDS: np.dtype[Any] = np.dtype(np.uint32)
_NARROW_WORDS: dict[Any, np.dtype[Any]] = {
    dtype: dtype for dtype in (np.dtype(np.uint8), np.dtype(np.uint16))
}
