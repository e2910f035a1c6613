"""Dot products of rows of codes: the public functions and their record."""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.border import public
from mor_ref.api.coded_blocks import Coded
from mor_ref.api.plans import Plans
from mor_ref.arrays import Bits, code_dtype, codes_in, numbers_from, unsigned_from
from mor_ref.counts_in_words import counted
from mor_ref.definitions import dot_arguments as checks
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.dot import WITHOUT_C, DotProfile
from mor_ref.definitions.dot_arguments import DotArguments, Formats, Shape
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import FormatLike
from mor_ref.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from mor_ref.engine.dot import Loop
    from mor_ref.engine.dot_operands import Scales
    from mor_ref.engine.dot_rounding import Chunks


@dataclass(frozen=True, eq=False, repr=False)
class DotChunks(Record):
    """The chunks of dot products: each field has one more axis than the result, of chunks.

    `c` is the sum after each chunk. `exponent` is the largest exponent of a chunk, and `cut_sum`
    the sum of its cut terms; both are None if the profile cuts nothing. In profiles of integers,
    `cut_sum` is the sum as int32 holds it.
    """

    profile: DotProfile
    exponent: NDArray[np.int32] | None
    cut_sum: NDArray[np.int64] | None
    c: NDArray[np.float32]

    def __repr__(self) -> str:
        *rows, chunks = self.c.shape
        shape = "x".join(map(str, rows)) or "one"
        return f"<{shape} dot products by {self.profile.name}, of {counted(chunks, 'chunk')}>"


@public
def dot(
    a: "ArrayLike",
    b: "ArrayLike",
    c: "ArrayLike | None" = None,
    *,
    formats: Formats = ("e4m3", "e4m3"),
    scales: "tuple[ArrayLike, ArrayLike] | None" = None,
    scale_format: FormatLike | None = None,
    block: int | None = None,
    profile: str | DotProfile = "exact",
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Return c plus the products of rows of codes, as a matrix instruction adds them up.

    `a` and `b` are codes of the two `formats`, of shape (n, K). `c` and the result are float32, of
    shape (n,); c is 0 if it is not given. Axes in front of K are kept. `profile` is "exact",
    "hopper_fp8", "blackwell_nvfp4", or another row of `mor_ref.definitions.dot.DOT_PROFILES`.
    Profiles with scales take the codes of the scales, (n, K / block) of each operand. If they are
    omitted, `scale_format` and `block` follow from the profile; the profile exact needs
    `scale_format`.

    >>> import mor_ref, numpy as np
    >>> a = mor_ref.encode(np.array([[448, 1, -448, 2.0**-6]], np.float32), "e4m3")
    >>> b = mor_ref.encode(np.array([[16, 1, 16, 2.0**-4]], np.float32), "e4m3")
    >>> mor_ref.dot(a, b), mor_ref.dot(a, b, profile="hopper_fp8")
    (array([1.0009766], dtype=float32), array([1.], dtype=float32))
    """
    own = a, b, c, formats, scales, scale_format, block, profile
    sums, _, _ = _summed(*own, keeps=False, threads=threads)
    return sums


@public
def dot_chunks(
    a: "ArrayLike",
    b: "ArrayLike",
    c: "ArrayLike | None" = None,
    *,
    formats: Formats = ("e4m3", "e4m3"),
    scales: "tuple[ArrayLike, ArrayLike] | None" = None,
    scale_format: FormatLike | None = None,
    block: int | None = None,
    profile: str | DotProfile = "exact",
    threads: int | None = None,
) -> DotChunks:
    """Return every chunk of dot products, with the arguments of `dot`.

    >>> import mor_ref, numpy as np
    >>> ones = mor_ref.encode(np.ones((1, 40), np.float32), "e4m3")
    >>> chunks = mor_ref.dot_chunks(ones, ones, profile="hopper_fp8")
    >>> chunks, chunks.c.tolist(), chunks.exponent.tolist(), chunks.cut_sum.tolist()
    (<1 dot products by hopper_fp8, of 2 chunks>, [[32.0, 40.0]], [[0, 5]], [[262144, 10240]])
    """
    own = a, b, c, formats, scales, scale_format, block, profile
    sums, chunks, rule = _summed(*own, keeps=True, threads=threads)
    shape = *sums.shape, chunks.c.shape[1]
    return DotChunks(
        rule,
        chunks.exponent.reshape(shape) if rule.is_cut else None,
        chunks.cut_sum.reshape(shape) if rule.has_sums else None,
        chunks.c.reshape(shape),
    )


_ROWS_AND_COLUMNS, _NUMBER, _NO_SCALES = 2, np.dtype(np.float32), (None, None, None)


class _Summing(NamedTuple):
    """The loop of the engine, and the scales of both operands as it takes them."""

    loop: "Loop"
    scales: "tuple[Scales, Scales]"


class _Plan(NamedTuple):
    """What follows from the formats and the profile, and how operands without scales are summed.

    None are summed if the profile needs scales.
    """

    rule: DotProfile
    a: Format
    b: Format
    unscaled: _Summing | None


def _plan(formats: Formats, profile: str | DotProfile) -> _Plan:
    from mor_ref.engine.dot import loop_of  # imports Numba
    from mor_ref.engine.dot_operands import NO_SCALES

    rule = checks.dot_profile(profile)
    both = checks.operand_formats(formats, rule)
    if rule.needs_scales:
        return _Plan(rule, *both, None)
    return _Plan(rule, *both, _Summing(loop_of(rule, *both), (NO_SCALES, NO_SCALES)))


_plans = Plans(_plan)


@cache
def _engine() -> "tuple[Callable[..., Chunks], Callable[..., Bits]]":
    from mor_ref.engine.dot import add_up  # imports Numba
    from mor_ref.engine.dot_operands import binary32_of

    return add_up, binary32_of


def _summed(
    a: "ArrayLike",
    b: "ArrayLike",
    c: "ArrayLike | None",
    formats: Formats,
    scales: "tuple[ArrayLike, ArrayLike] | None",
    scale_format: FormatLike | None,
    block: int | None,
    profile: str | DotProfile,
    *,
    keeps: bool,
    threads: int | None,
) -> "tuple[NDArray[np.float32], Chunks, DotProfile]":
    """Return the sums in their shape, the chunks of the engine, and the profile."""
    rule, fmt_a, fmt_b, summing = _plans(formats, profile)
    codes_a, codes_b = codes_from(a, fmt_a, "a"), codes_from(b, fmt_b, "b")
    shape = codes_a.shape
    checks.check_shapes(shape, codes_b.shape)
    sums = np.zeros(shape[:-1], _NUMBER) if c is None else _start(c, shape[:-1], rule)
    if summing is None or (scales, scale_format, block) != _NO_SCALES:
        arguments = DotArguments(a, b, c, formats, scales, scale_format, block, profile)
        if arguments.has_scales or summing is None:
            summing = _with_scales(arguments, shape, fmt_a, fmt_b)
    flat = sums
    if len(shape) != _ROWS_AND_COLUMNS:
        flat, whole = sums.reshape(-1), rows_and_columns(shape)
        codes_a, codes_b = codes_a.reshape(whole), codes_b.reshape(whole)
    add_up, binary32_of = _engine()
    loop, of_both = summing
    if not loop.has_codes:
        codes_a = binary32_of(codes_a, fmt_a, rule.ignored_bits)
        codes_b = binary32_of(codes_b, fmt_b, rule.ignored_bits)
    return sums, add_up(loop, codes_a, codes_b, of_both, flat, keeps=keeps, threads=threads), rule


def _with_scales(arguments: DotArguments, shape: Shape, fmt_a: Format, fmt_b: Format) -> _Summing:
    """Return the loop and the scales of rows of this shape."""
    from mor_ref.engine.dot import loop_of  # imports Numba
    from mor_ref.engine.dot_operands import range_of, scale_numbers, scales_of

    rule = arguments.rule
    fmt = checks.scale_format_of(arguments.scale_format, rule)
    codes_a, codes_b = (codes_from(x, fmt, f"scales[{n}]") for n, x in enumerate(arguments.scales))
    checks.check_scale_shapes(codes_a.shape, codes_b.shape, shape[:-1])
    block = arguments.block_of(codes_a.shape[-1], fmt, shape[-1])
    checks.check_terms(rule, (fmt_a, fmt_b), fmt)
    whole, lowest = rows_and_columns(codes_a.shape), fmt.smallest_exponent
    numbers = (scale_numbers(codes.reshape(whole), fmt) for codes in (codes_a, codes_b))
    scales_a, scales_b = (scales_of(own, block, lowest) for own in numbers)
    loop = loop_of(rule, fmt_a, fmt_b, range_of(fmt), range_of(fmt))
    return _Summing(loop, (scales_a, scales_b))


def codes_from(x: object, fmt: Format, argument: str) -> Bits:
    """Return codes, from integers or an array whose dtype is the format."""
    if type(x) is np.ndarray and x.dtype.kind == "u":
        return unsigned_from(x, fmt.bits, code_dtype(fmt), argument)
    if isinstance(x, Coded):
        kind = type(x).__name__
        raise TypeError(f"{argument} is of type {kind}; give its codes, or the record to matmul")
    entries = codes_in(x)
    if entries.packed or entries.format not in (None, fmt.name):
        raise ValueError(
            f"{argument} has dtype {getattr(x, 'dtype', None)}, which is not the format "
            f"{fmt.name}; give one code of {fmt.name} in each entry"
        )
    bits: Any = entries.bits
    if dtype_kind(bits) == "f":
        raise TypeError(
            f"{argument} has dtype {bits.dtype}; give the dtype of {fmt.name}, or codes of "
            f"{fmt.name} as unsigned integers"
        )
    if fmt.sign == "twos-complement" and getattr(bits, "dtype", None) == np.int8:
        bits = np.asarray(bits).view(np.uint8)
    return unsigned_from(bits, fmt.bits, code_dtype(fmt), argument)


def dtype_kind(x: object) -> str | None:
    """Return the kind of the dtype of a NumPy array, such as "f"; None for anything else."""
    return getattr(getattr(x, "dtype", None), "kind", None)


def _start(c: "ArrayLike", shape: tuple[int, ...], profile: DotProfile) -> NDArray[np.float32]:
    """Return c for each row, which the format of the result has (DOT-001)."""
    if type(c) is int and abs(c) < 1 << 128 and float(c) == c:
        c = float(c)
    numbers = numbers_from(c, "c")
    if numbers.shape not in ((), shape):
        raise ValueError(f"c has the shape {numbers.shape}; give {shape}, or a single number")
    dtype = np.float16 if profile.start == "f16" else np.float32
    with np.errstate(all="ignore"):
        start = numbers.bits.view(numbers.dtype).astype(np.float64)
        rounded = start.astype(dtype).astype(np.float64)
    if not np.array_equal(start, rounded, equal_nan=True):
        wrong = start[(start != rounded) & ~np.isnan(start)][0]
        raise ValueError(
            f"c has {wrong}, which {profile.start} does not have; give numbers of "
            f"{profile.start}, because {profile.name} adds to these"
        )
    if profile.family in WITHOUT_C and (start.any() or np.signbit(start).any()):
        raise ValueError(f"{profile.name} does not add to a given c; leave c out")
    return np.broadcast_to(start.astype(np.float32).reshape(numbers.shape), shape).copy()
