"""The arguments of kernels that are structures: field by field as the device code declares them."""

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.cuda.conversions import conversion, conversion_to_powers
from mor_ref.definitions.blocks import Partition
from mor_ref.definitions.encoding import Rounding, SpecialCases
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import BLOCK_SCALE_RULES, Nvfp4Profile

Row = NDArray[np.void]  # with one entry, for that is how CuPy takes a structure by value
_NEVER = 0xFFFF_FFFF
_ROUNDINGS: tuple[Rounding, ...] = ("rne", "rna", "rtz", "rtp", "rtn", "rto", "sr")
_METRICS = ("mean_relative_error", "not_worse_than", "fits_range")
_TILE_RULES = tuple(BLOCK_SCALE_RULES)


def structure(text: str) -> np.dtype[np.void]:
    """Make a structure from text such as "i4 mantissa_bits,bias; u4 nan:2": kinds and fields."""
    fields: list[Any] = []
    for part in text.split(";"):
        kind, names = part.split()
        for name in names.split(","):
            plain, _, count = name.partition(":")
            fields.append((plain, kind, (int(count),)) if count else (plain, kind))
    return np.dtype(fields, align=True)


ENCODING = structure(
    "i4 mantissa_bits,smallest_exponent; u4 rounding,largest,overflow:2,infinity,negative,"
    "negative_zero,nan:2,complement,conversion"
)
POWER_ENCODING = structure(
    "i4 bias; u4 rounding,rounding_above_smallest,largest,overflow,infinity,zero,nan,"
    "has_negative,negative,conversion"
)
DECODING = structure(
    "i4 mantissa_bits,bias; u4 negative,first_field,infinity,first_nan,nan,complement,conversion"
)
NEAREST = structure(
    "f4 down,up; u4 largest,smallest,raise,drop; i4 slope; u4 negative; i4 first_negative; u4 nan; "
    "f4 nan_value; u4 conversion"
)
SCALED = np.dtype([("nearest", NEAREST), ("decoding", DECODING), ("largest", "u4")], align=True)
CUT = structure(
    "u8 rows,columns,block_rows,block_columns,grid_rows,grid_columns,group_rows,group_columns,"
    "groups_across,piece_rows,piece_columns,pieces_down,pieces_across"
)
PROFILE = np.dtype(
    [
        ("rule", "u4"), ("range", "f4"), ("divides", "u4"), ("element_codes", NEAREST),
        ("scale_codes", NEAREST), ("element_values", DECODING), ("scale_values", DECODING),
    ],
    align=True,
)  # fmt: skip
TILES = structure("u8 rows,columns,down,across,scales_per_row")
BY_SCALE = np.dtype([("scales", "u8"), ("to", SCALED)], align=True)
BY_TILE = np.dtype(
    [
        ("encodes", "u8"), ("decodes", "u8"), ("tile_rows", "u8"), ("tiles_across", "u8"),
        ("profile", PROFILE),
    ],
    align=True,
)  # fmt: skip
BY_VALUE = structure("u8 y,columns")
ERROR_SUMS = structure("u8 sum,nonzero,nonfinite")
UNIT_SUMS = structure("u8 words,unmeasured,largest,amax,across")
NATURAL = structure("u8 words; u4 count")
FACTORS = np.dtype([("errors", NATURAL), ("numbers", NATURAL)], align=True)
RUNG = structure("u4 metric,limit; f4 largest,smallest")
MX_FORMAT = np.dtype(
    [
        ("divides", "u4"), ("element", SCALED), ("largest_exponent", "i4"), ("up_from", "u4"),
        ("scale_codes", POWER_ENCODING),
    ],
    align=True,
)  # fmt: skip


def row(dtype: np.dtype[np.void], **fields: Any) -> Row:
    """Return a structure with these fields; each has to be given."""
    if set(fields) != set(dtype.names or ()):
        raise TypeError(f"the structure has {dtype.names}, and {tuple(fields)} are given")
    filled = np.zeros(1, dtype)
    for name, value in fields.items():
        filled[name] = value
    filled.flags.writeable = False
    return filled


# ---------------------------------------------------------------------- formats


def encoding(fmt: Format, rounding: Rounding = "rne", special: SpecialCases | None = None) -> Row:
    """Return the structure that encodes numbers in a format with significands."""
    special = special or SpecialCases()
    has_sign = fmt.sign != "none"
    toward_zero = {False: ("rtz", "rto", "rtn"), True: ("rtz", "rto", "rtp")}
    infinity = _infinity(fmt, special)
    keeps_zero = fmt.sign == "sign-magnitude" and fmt.specials != "fnuz"
    is_plain = rounding == "rne" and infinity == fmt.largest_code and special.nan == "canonical"
    return row(
        ENCODING,
        mantissa_bits=fmt.mantissa_bits,
        smallest_exponent=fmt.smallest_exponent,
        rounding=_ROUNDINGS.index(rounding),
        largest=fmt.largest_code,
        overflow=[
            fmt.largest_code if rounding in toward_zero[sign] else infinity
            for sign in (False, True)
        ],
        infinity=infinity,
        negative=fmt.sign_bit,
        negative_zero=fmt.sign_bit if keeps_zero else 0,
        nan=_nan(fmt, special) if has_sign else [_nan(fmt, special)[0]] * 2,
        complement=fmt.code_count if fmt.sign == "twos-complement" else 0,
        conversion=conversion(fmt) if is_plain else 0,
    )


def power_encoding(fmt: Format, rounding: Rounding, special: SpecialCases) -> Row:
    """Return the structure that encodes numbers in a format of powers of two."""
    infinity = _infinity(fmt, special)
    is_plain = infinity == fmt.largest_code and not isinstance(special.nan, tuple)
    is_plain = is_plain and not special.zero_code and special.negative_code is None
    goes_up = special.above_smallest_goes_up and rounding == "rna"
    return row(
        POWER_ENCODING,
        bias=fmt.bias,
        rounding=_ROUNDINGS.index(rounding),
        rounding_above_smallest=_ROUNDINGS.index("rtp" if goes_up else rounding),
        largest=fmt.largest_code,
        overflow=fmt.largest_code if rounding == "rtz" else infinity,
        infinity=infinity,
        zero=special.zero_code or 0,
        nan=_nan(fmt, special)[0],
        has_negative=special.negative_code is not None,
        negative=special.negative_code or 0,
        conversion=conversion_to_powers(fmt, rounding) if is_plain else 0,
    )


def _infinity(fmt: Format, special: SpecialCases) -> int:
    """ENC-008: return the code of an infinite magnitude."""
    if special.overflow == "ieee":
        if fmt.infinity_code is not None:
            return fmt.infinity_code
        if fmt.specials == "fn" and fmt.canonical_nan_code is not None:
            return fmt.canonical_nan_code
        if fmt.specials == "fnuz":
            return fmt.sign_bit
    return fmt.largest_code


def _nan(fmt: Format, special: SpecialCases) -> list[int]:
    """ENC-009 and ENC-010: return the codes of NaN without and with a sign bit (FMT-011)."""
    if isinstance(special.nan, tuple):
        return list(special.nan)
    if fmt.sign == "twos-complement":
        return [0, 0]
    code = fmt.largest_code if fmt.canonical_nan_code is None else fmt.canonical_nan_code
    return [code, code | fmt.sign_bit if special.nan == "signed" else code]


@functools.cache
def decoding(fmt: Format) -> Row:
    """Return the structure with which kernels decode a format."""
    nans = fmt.nan_codes
    return row(
        DECODING,
        mantissa_bits=fmt.mantissa_bits,
        bias=fmt.bias,
        negative=fmt.sign_bit,
        first_field=0 if fmt.is_power_of_two else 1,
        infinity=_NEVER if fmt.infinity_code is None else fmt.infinity_code,
        first_nan=nans[0][0] if nans and fmt.specials != "fnuz" else _NEVER,
        nan=fmt.sign_bit if fmt.specials == "fnuz" else _NEVER,
        complement=fmt.code_count if fmt.sign == "twos-complement" else 0,
        conversion=conversion(fmt),
    )


@functools.cache
def nearest(fmt: Format) -> Row:
    """Return the structure that encodes, with rne, by one addition, to at most 8 bits."""
    drop = 23 - fmt.mantissa_bits
    highest = max(math.frexp(fmt.largest)[1] - 1, fmt.smallest_exponent)
    down = math.ldexp(1.0, min(0, 127 - drop - highest))
    complements = fmt.sign == "twos-complement"
    keeps_zero = fmt.sign == "sign-magnitude" and fmt.specials != "fnuz"
    nan = _nan(fmt, SpecialCases())[0]
    return row(
        NEAREST,
        down=down,
        up=1 / down,
        largest=bits_of(fmt.largest * down),
        smallest=bits_of(math.ldexp(down, fmt.smallest_exponent)),
        drop=drop,
        slope=-1 if complements else 1,
        negative=fmt.code_count if complements else fmt.sign_bit,
        first_negative=0 if keeps_zero else 1,
        nan=nan,
        nan_value=fmt.value(nan),
        conversion=conversion(fmt),
        **{"raise": drop << 23},
    )


@functools.cache
def scaled(fmt: Format) -> Row:
    """Return the structure of a format that numbers are scaled to (QNT-001)."""
    return row(SCALED, nearest=nearest(fmt), decoding=decoding(fmt), largest=bits_of(fmt.largest))


def bits_of(number: float) -> int:
    """Return the bits of a binary32 number."""
    return int(np.float32(number).view(np.uint32))


# ---------------------------------------------------------------------- tensors

_PIECE = 1 << 14  # elements; each of 256 threads has 256 of them at most
_PIECE_COLUMNS = 1 << 12  # of a piece of several rows


def cut(partition: Partition) -> Row:
    """Return the structure of a partition: blocks, groups, and pieces for thread teams."""
    block_rows, block_columns = partition.block
    columns = min(block_columns, _PIECE if block_rows == 1 else _PIECE_COLUMNS)
    rows = min(block_rows, max(1, _PIECE // columns))
    down, across = partition.grid
    return row(
        CUT,
        rows=partition.rows,
        columns=partition.columns,
        block_rows=block_rows,
        block_columns=block_columns,
        grid_rows=down,
        grid_columns=across,
        group_rows=partition.group[0],
        group_columns=partition.group[1],
        groups_across=partition.group_grid[1],
        piece_rows=rows,
        piece_columns=columns,
        pieces_down=-(-block_rows // rows),
        pieces_across=-(-block_columns // columns),
    )


def team(partition: Partition) -> int:
    """Return the number of threads that share a piece, by the size of a block."""
    size = partition.block[0] * partition.block[1]
    return 1 if size <= 64 else 32 if size <= 1024 else 256


def profile(nvfp4_profile: Nvfp4Profile) -> Row:
    """Return the structure of a profile of NVFP4."""
    e2m1, e4m3 = formats["e2m1"], formats["e4m3"]
    return row(
        PROFILE,
        rule=_TILE_RULES.index(nvfp4_profile.rule),
        range=nvfp4_profile.range,
        divides=nvfp4_profile.divides,
        element_codes=nearest(e2m1),
        scale_codes=nearest(e4m3),
        element_values=decoding(e2m1),
        scale_values=decoding(e4m3),
    )


def mx_format(fmt: Format, rule: str) -> Row:
    """Return the structure of a format of MX elements with a scale rule."""
    return row(
        MX_FORMAT,
        divides=SCALE_RULES[rule].up_from is None,
        element=scaled(fmt),
        largest_exponent=int(np.frexp(fmt.largest)[1]) - 1,
        up_from=SCALE_RULES[rule].up_from_of(fmt),
        scale_codes=power_encoding(formats["e8m0"], "rtp", SpecialCases()),
    )


def rung(metric: str, *, limit: int = 0, fmt: Format | None = None) -> Row:
    """Return the metric of a rung, and its numbers."""
    return row(
        RUNG,
        metric=_METRICS.index(metric),
        limit=limit,
        largest=fmt.largest if fmt else 0,
        smallest=(fmt.smallest_normal or 0) if fmt else 0,
    )
