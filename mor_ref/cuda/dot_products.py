"""Dot products on a device."""

from typing import NamedTuple

import numpy as np

from mor_ref.cuda import structures as rows
from mor_ref.cuda.launching import Array, Device, launch
from mor_ref.definitions.dot import PERIOD, ROUNDED_ONCE, STEPS_OF_INT8, DotProfile
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats

CODES = np.dtype(
    [
        ("codes", "u8"), ("from", rows.DECODING), ("bytes", "u4"), ("mask", "u4"),
        ("smallest_exponent", "i4"),
    ],
    align=True,
)  # fmt: skip
_OPERANDS = np.dtype(
    [
        ("a", CODES), ("b", CODES), ("scale_a", CODES), ("scale_b", CODES),
        ("columns", "u8"), ("block", "u8"), ("blocks", "u8"),
    ],
    align=True,
)  # fmt: skip
_RESULT = rows.structure("i4 kept_bits,smallest_exponent,largest_exponent; u4 is_nearest")
RULE = np.dtype(
    [
        ("chunk", "u4"), ("flushed_every", "u4"), ("fraction_bits", "i4"), ("zero_exponent", "i4"),
        ("first_exponent", "i4"), ("unscale", "f4"), ("result", _RESULT),
    ],
    align=True,
)  # fmt: skip
_FIELDS = rows.structure("u8 exponent,cut_sum,c")
_KERNELS = {"st_fdpa": "t_fdpa", "int32": "integers", "switchback": "integers"}
_ALL = 0xFFFF_FFFF


class Scales(NamedTuple):
    """The codes of the scales of two operands, of shape (n, blocks)."""

    a: Array
    b: Array
    fmt: Format
    block: int


class Chunks(NamedTuple):
    """Results, (n,), and the fields of chunks, (n, chunks): without columns if nobody asked."""

    result: Array
    exponent: Array
    cut_sum: Array
    c: Array


def codes_of(
    device: Device, codes: Array, fmt: Format, mask: int, exponents: Format | None = None
) -> rows.Row:
    """Return codes as kernels read them; their exponents can be those of another format."""
    return rows.row(
        CODES,
        codes=device.address(codes),
        **{"from": rows.decoding(fmt)},
        bytes=codes.itemsize,
        mask=mask,
        smallest_exponent=(exponents or fmt).smallest_exponent,
    )


def rule_of(profile: DotProfile) -> rows.Row:
    """Return the numbers of a profile."""
    to = formats[profile.result]
    is_binary32 = profile.result == "f32"
    result = rows.row(
        _RESULT,
        kept_bits=profile.result_bits,
        smallest_exponent=to.smallest_exponent,
        largest_exponent=int(np.frexp(to.largest)[1]) - 1,
        is_nearest=not (is_binary32 and profile.family in ROUNDED_ONCE),
    )
    return rows.row(
        RULE,
        chunk=profile.chunk,
        flushed_every=profile.flushed_every,
        fraction_bits=profile.fraction_bits,
        zero_exponent=profile.zero_exponent,
        first_exponent=formats[profile.start].smallest_exponent,
        unscale=np.float32(1) / np.float32(STEPS_OF_INT8**2),
        result=result,
    )


def kernel_of(profile: DotProfile) -> str:
    """Return the name of the kernel that the family of a profile has."""
    return _KERNELS.get(profile.family, profile.family)


def chunks_of(profile: DotProfile, columns: int) -> tuple[int, int]:
    """Return the number of chunks of a row, and their length; 0 if all products are one chunk."""
    length = {"f32_fma": 1, "promoted": PERIOD}.get(profile.family, profile.chunk)
    return (-(-columns // length) if length else 1), length


def dot(
    device: Device,
    a: Array,
    b: Array,
    c: Array,
    profile: DotProfile,
    fmts: tuple[Format, Format],
    scales: Scales | None = None,
    *,
    keeps: bool = False,
) -> Chunks:
    """Return c, binary32 bits, plus the products of rows of codes.

    With `keeps`, every chunk has its fields.
    """
    height, width = a.shape
    count, length = chunks_of(profile, width)
    shape = (height, count if keeps else 0)
    kinds = (np.uint32, np.uint64, np.uint32)
    chunks = Chunks(
        device.empty((height,), np.uint32), *(device.empty(shape, kind) for kind in kinds)
    )
    codes_and_fmts = {"a": (a, fmts[0]), "b": (b, fmts[1])}
    read = _ALL >> profile.ignored_bits << profile.ignored_bits
    operands = {name: codes_of(device, *pair, read) for name, pair in codes_and_fmts.items()}
    for name in "ab":
        operands[f"scale_{name}"] = _scales(device, scales, name)
    operand_row = rows.row(
        _OPERANDS,
        **operands,
        columns=width,
        block=scales.block if scales else 1,
        blocks=scales.a.shape[1] if scales else 0,
    )
    places = chunks._asdict()
    del places["result"]
    address = {name: device.address(x) if keeps else 0 for name, x in places.items()}
    name = f"dot_{kernel_of(profile)}"
    sizes = map(np.uint64, (height, count, length))
    fields = rows.row(_FIELDS, **address)
    launch(
        device, "dot", name, height, *sizes, c, operand_row, rule_of(profile), fields, chunks.result
    )
    return chunks


def _scales(device: Device, scales: Scales | None, name: str) -> rows.Row:
    if scales is None:
        return np.zeros(1, CODES)
    unsigned = scales.fmt.sign_bit - 1 if scales.fmt.name == "e4m3" else _ALL  # DOT-006
    return codes_of(device, getattr(scales, name), scales.fmt, unsigned)
