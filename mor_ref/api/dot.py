"""Dot products of rows of codes: the public functions and their record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.api.tracing import untraced
from mor_ref.argument_checks import whole_number
from mor_ref.arrays import Bits, code_dtype, codes_in, numbers_from, unsigned_from
from mor_ref.definitions.blocks import rows_and_columns
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile, operand_format
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import as_format

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from mor_ref.engine.dot import Sums


_WITHOUT_C = ("int32", "switchback")


@dataclass(frozen=True, eq=False, repr=False)
class DotChunks:
    """The chunks of dot products: each field has one more axis than the result, of chunks.

    `c` is the sum after each chunk. `exponent` is the largest exponent of a chunk, and `cut_sum`
    the sum of its cut terms; both are None if the profile cuts nothing.
    """

    profile: DotProfile
    exponent: NDArray[np.int32] | None
    cut_sum: NDArray[np.int64] | None
    c: NDArray[np.float32]

    def __repr__(self) -> str:
        *rows, chunks = self.c.shape
        shape = "x".join(map(str, rows)) or "one"
        return f"<{shape} dot products by {self.profile.name}, of {chunks} chunks>"


@untraced
def dot(
    a: "ArrayLike",
    b: "ArrayLike",
    c: "ArrayLike | None" = None,
    *,
    formats: tuple[str | Format, str | Format] = ("e4m3", "e4m3"),
    scales: "tuple[ArrayLike, ArrayLike] | None" = None,
    scale_format: str | Format | None = None,
    block: int | None = None,
    profile: str | DotProfile = "exact",
    threads: int | None = None,
) -> NDArray[np.float32]:
    """Return c plus the products of rows of codes, as a matrix instruction adds them up.

    `a` and `b` are codes of the two `formats`, of shape (n, K). `c` and the result are float32, of
    shape (n,); c is 0 if it is not given. Axes in front of K are kept. `profile` is "exact",
    "hopper_fp8", "blackwell_nvfp4", or another row of `mor_ref.definitions.dot.DOT_PROFILES`.
    Profiles with scales take their codes, (n, K / block) of each operand. `scale_format` and
    `block` are those of the profile; the profile exact needs the former.

    >>> import mor_ref, numpy as np
    >>> a = mor_ref.encode(np.array([[448, 1, -448, 2.0**-6]], np.float32), "e4m3")
    >>> b = mor_ref.encode(np.array([[16, 1, 16, 2.0**-4]], np.float32), "e4m3")
    >>> mor_ref.dot(a, b), mor_ref.dot(a, b, profile="hopper_fp8")
    (array([1.0009766], dtype=float32), array([1.], dtype=float32))
    """
    found = _sums(a, b, c, formats, scales, scale_format, block, profile, False, threads)
    return found.c.reshape(found.shape)


@untraced
def dot_chunks(
    a: "ArrayLike",
    b: "ArrayLike",
    c: "ArrayLike | None" = None,
    *,
    formats: tuple[str | Format, str | Format] = ("e4m3", "e4m3"),
    scales: "tuple[ArrayLike, ArrayLike] | None" = None,
    scale_format: str | Format | None = None,
    block: int | None = None,
    profile: str | DotProfile = "exact",
    threads: int | None = None,
) -> DotChunks:
    """Return every chunk of dot products: the arguments are those of `dot`.

    >>> import mor_ref, numpy as np
    >>> ones = mor_ref.encode(np.ones((1, 40), np.float32), "e4m3")
    >>> found = mor_ref.dot_chunks(ones, ones, profile="hopper_fp8")
    >>> found, found.c.tolist(), found.exponent.tolist(), found.cut_sum.tolist()
    (<1 dot products by hopper_fp8, of 2 chunks>, [[32.0, 40.0]], [[0, 5]], [[262144, 10240]])
    """
    found = _sums(a, b, c, formats, scales, scale_format, block, profile, True, threads)
    chunks, rule = found.sums.chunks, dot_profile(profile)
    shape = (*found.shape, chunks.c.shape[1])
    return DotChunks(
        rule,
        chunks.exponent.reshape(shape) if rule.is_cut else None,
        chunks.cut_sum.reshape(shape) if rule.is_cut else None,
        chunks.c.reshape(shape),
    )


@dataclass(frozen=True)
class _Found:
    sums: "Sums"
    shape: tuple[int, ...]

    @property
    def c(self) -> NDArray[np.float32]:
        return self.sums.c


def _sums(
    a: "ArrayLike",
    b: "ArrayLike",
    c: "ArrayLike | None",
    formats: tuple[str | Format, str | Format],
    scales: "tuple[ArrayLike, ArrayLike] | None",
    scale_format: str | Format | None,
    block: int | None,
    profile: str | DotProfile,
    keeps: bool,
    threads: int | None,
) -> _Found:
    """Return the results of the engine."""
    rule = dot_profile(profile)
    of = operand_formats(formats, rule)
    codes = [codes_from(x, fmt, name) for x, fmt, name in zip((a, b), of, "ab", strict=True)]
    shape = codes[0].shape
    if codes[1].shape != shape:
        raise ValueError(f"b has the shape {codes[1].shape}; give that of a, {shape}")
    if not shape:
        raise ValueError("a and b are single codes; give rows of codes, (n, K)")
    start = _start(c, shape[:-1], rule)
    of_scales, two, side = _scales(scales, scale_format, block, rule, shape)
    from mor_ref.engine.dot import dot as summed  # imports Numba
    from mor_ref.engine.dot_operands import operand_of

    rows, columns = rows_and_columns(shape)
    one, other = (
        operand_of(x.reshape(rows, columns), fmt, rule, of_one, of_scales, side)
        for x, fmt, of_one in zip(codes, of, two, strict=True)
    )
    found = summed(one, other, start, rule, keeps=keeps, threads=threads)
    return _Found(found, shape[:-1])


def dot_profile(profile: str | DotProfile) -> DotProfile:
    """Return the profile itself, or the one of that name."""
    return profile if isinstance(profile, DotProfile) else DOT_PROFILES[profile]


def operand_formats(
    formats: tuple[str | Format, str | Format], profile: DotProfile
) -> tuple[Format, Format]:
    """Return the formats of a and b, if the profile has them (DOT-002)."""
    if not isinstance(formats, tuple | list) or len(formats) != 2:
        raise TypeError(f"formats is {formats!r}; give a pair, those of a and of b")
    one, other = (operand_format(fmt) for fmt in formats)
    for fmt in (one, other):
        if profile.formats and fmt.name not in profile.formats:
            raise ValueError(
                f"formats has {fmt.name!r}, which {profile.name} does not take; give "
                f"{' or '.join(profile.formats)}"
            )
    return one, other


def codes_from(x: object, fmt: Format, argument: str) -> Bits:
    """Return codes, from integers or an array whose dtype is the format."""
    found = codes_in(x)
    if found.packed or found.format not in (None, fmt.name):
        raise ValueError(
            f"{argument} has dtype {getattr(x, 'dtype', None)}, which is not the format "
            f"{fmt.name}; give one code of it in each entry"
        )
    bits: Any = found.bits
    if fmt.sign == "twos-complement" and getattr(bits, "dtype", None) == np.int8:
        bits = np.asarray(bits).view(np.uint8)
    return unsigned_from(bits, fmt.bits, code_dtype(fmt), argument)


def _start(
    c: "ArrayLike | None", shape: tuple[int, ...], profile: DotProfile
) -> NDArray[np.float32]:
    """Return c for each row, which the format of the result has (DOT-001)."""
    size = int(np.prod(shape))
    if c is None:
        return np.zeros(size, np.float32)
    numbers = numbers_from(c, "c")
    if numbers.shape not in ((), shape):
        raise ValueError(f"c has the shape {numbers.shape}; give {shape}, or a single number")
    dtype = np.float16 if profile.result == "f16" else np.float32
    with np.errstate(all="ignore"):
        given = numbers.bits.view(numbers.dtype).astype(np.float64)
        exact = given.astype(dtype).astype(np.float64)
    if not np.array_equal(given, exact, equal_nan=True):
        wrong = given[(given != exact) & ~np.isnan(given)][0]
        raise ValueError(
            f"c has {wrong}, which {profile.result} does not have; give numbers of "
            f"{profile.result}, as {profile.name} adds to them"
        )
    if profile.family in _WITHOUT_C and (given.any() or np.signbit(given).any()):
        raise ValueError(f"{profile.name} does not add to a given c; leave c out")
    return np.broadcast_to(given.astype(np.float32), size).copy()


def _scales(
    scales: "tuple[ArrayLike, ArrayLike] | None",
    scale_format: str | Format | None,
    block: int | None,
    profile: DotProfile,
    shape: tuple[int, ...],
) -> tuple[Format | None, tuple[Bits | None, Bits | None], int]:
    """Return the format of scales, the codes of both operands, and the length of a block."""
    if scales is None:
        if profile.needs_scales:
            raise ValueError(f"{profile.name} needs scales; give a pair, those of a and of b")
        return None, (None, None), 1
    if profile.family != "exact" and not profile.scales:
        raise ValueError(f"{profile.name} has no scales; leave them out")
    if not isinstance(scales, tuple | list) or len(scales) != 2:
        raise TypeError(f"scales is of type {type(scales).__name__}; give a pair, for a and b")
    fmt = scale_format_of(scale_format, profile)
    one, other = (codes_from(x, fmt, f"scales[{n}]") for n, x in enumerate(scales))
    if one.shape != other.shape or one.shape[:-1] != shape[:-1] or not one.shape:
        raise ValueError(
            f"scales have the shapes {one.shape} and {other.shape}; give codes for the blocks of "
            f"each row, {(*shape[:-1], 'blocks')}"
        )
    side = _block_of(one.shape[-1], fmt, block, profile, shape[-1])
    rows, count = rows_and_columns(one.shape)
    return fmt, (one.reshape(rows, count), other.reshape(rows, count)), side


def scale_format_of(scale_format: str | Format | None, profile: DotProfile) -> Format:
    """Return the format of scales: that of the profile, unless it has several."""
    known = tuple(dict.fromkeys(name for name, _ in profile.scales))
    if scale_format is None:
        if len(known) != 1:
            raise ValueError(f"{profile.name} takes scales of several formats; give scale_format")
        return as_format(known[0])
    fmt = as_format(scale_format)
    if known and fmt.name not in known:
        raise ValueError(
            f"scale_format is {fmt.name!r}, which {profile.name} does not take; give "
            f"{' or '.join(known)}"
        )
    return fmt


def _block_of(count: int, fmt: Format, block: int | None, profile: DotProfile, columns: int) -> int:
    """Return the length of a block; a row has so many blocks (DOT-006)."""
    known = [side or max(columns, 1) for name, side in profile.scales if name == fmt.name]
    if block is not None:
        side = whole_number("block", block, 1, 1 << 62)
        if known and side not in known:
            raise ValueError(
                f"block is {side}; {profile.name} takes {' or '.join(map(str, known))}"
            )
        known = [side]
    if not known and count and columns % count == 0:
        known = [max(columns // count, 1)]
    for side in known:
        if -(-columns // side) == count:
            return side
    wanted = f"blocks of {' or '.join(map(str, known))}" if known else "equal blocks, or block"
    raise ValueError(f"scales have {count} blocks for {columns} products; give scales of {wanted}")
