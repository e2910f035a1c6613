"""Dot products of tensor cores in NumPy, from the specification: a right program, and mistakes."""

from dataclasses import dataclass, replace

import numpy as np

from mor_ref import formats
from mor_ref.definitions.dot import DOT_PROFILES
from wrong.kernel import Kernel

NAN = np.uint32(0x7FFFFFFF)
ONE_CHUNK = "a row is one chunk"
NO_SCALES = ("dot_chunks", "dot")


@dataclass(frozen=True)
class Steps:
    """The steps in which implementations differ; the defaults are right."""

    name: str
    mistake: str = ""
    more_bits: int = 0  # bits added to F
    cut: str = "zero"
    carried: str = "in the sum"
    tail: bool = True
    result: str = "zero"
    flushes: bool = False
    exponent: str = "of factors"
    largest_shift: int = 4000
    sum_bits: int = 64
    scale_every: int = 1
    special: bool = True
    reversed: bool = False
    overflow: str = "infinite"
    zeros: str = "positive"
    unseen: tuple[tuple[str, str], ...] = ()


def wide(bits):
    """Return binary32 numbers in binary64."""
    with np.errstate(invalid="ignore"):
        return bits.view(np.float32).astype(np.float64)


def values_of(codes, fmt, ignored):
    """Return the numbers of codes in binary64."""
    if fmt.bits > 16:
        kept = codes >> np.uint32(ignored) << np.uint32(ignored)
        return wide(kept)
    table = np.array([fmt.value(code) for code in range(fmt.code_count)])
    return table[codes]


def exponents(x, fmt):
    """Return the exponents of numbers; the least is the exponent of the smallest normal number."""
    lowest = fmt.smallest_exponent
    with np.errstate(invalid="ignore"):
        found = np.frexp(x)[1] - 1
    return np.where((x == 0) | ~np.isfinite(x), lowest, np.maximum(found, lowest))


def to_units(x, units, how):
    """Return numbers in units of powers of two, as integers."""
    with np.errstate(all="ignore"):
        scaled = np.ldexp(x, -units)
    cut = {"zero": np.trunc, "down": np.floor, "nearest": np.rint}[how.cut](scaled)
    return np.where(np.isfinite(cut), cut, 0).astype(np.int64)


def rounded(sums, units, profile, how):
    """Return sums of units in the format of the result."""
    fmt = formats[profile.result]
    bits = profile.kept_bits if profile.result == "f32" else fmt.mantissa_bits
    if how.result == "23 bits":
        bits = fmt.mantissa_bits
    magnitude = np.abs(sums).astype(np.float64)
    exponent = np.where(sums == 0, 0, np.frexp(magnitude)[1] - 1 + units)
    place = np.maximum(exponent, fmt.smallest_exponent) - bits
    with np.errstate(all="ignore"):
        kept = np.ldexp(magnitude, units - place)
        to_nearest = profile.result == "f16" or how.result == "nearest"
        kept = np.rint(kept) if to_nearest else np.trunc(kept)
        found = np.ldexp(kept, place)
    if how.flushes:
        found = np.where(found < 2.0**fmt.smallest_exponent, 0, found)
    too_large = np.inf if how.overflow == "infinite" else fmt.largest
    found = np.where(found > fmt.largest, too_large, found)
    return np.where(sums < 0, -found, found) + (0.0 if how.result != "signed" else -0.0)


def chunk(terms, exponent, c, is_first, profile, how):
    """Return the largest exponent, the cut sum and the next c of chunks."""
    of_c = exponents(c, formats[profile.start if is_first else profile.result])
    of_c = np.where(c == 0, profile.zero_exponent, of_c)
    inside = how.carried == "in the sum"
    all_terms = np.column_stack([terms, c if inside else np.zeros_like(c)])
    all_exponents = np.column_stack(
        [exponent, of_c if inside else np.full_like(of_c, profile.zero_exponent)]
    )
    largest = all_exponents.max(axis=1)
    units = largest - profile.fraction_bits - how.more_bits
    lost = largest[:, None] - all_exponents > how.largest_shift
    n = np.where(lost, 0, to_units(all_terms, units[:, None], how))
    sums = n.sum(axis=1)
    if how.sum_bits == 32:
        sums = sums.astype(np.int32).astype(np.int64)
    found = rounded(sums, units, profile, how)
    if how.zeros == "IEEE":
        keeps = ((all_terms == 0) & np.signbit(all_terms)).all(axis=1)
        found = np.where(keeps, -0.0, found)
    with np.errstate(all="ignore"):
        if not inside:
            found = (found + c).astype(np.float32).astype(np.float64)
        special = all_terms.sum(axis=1) if inside else np.column_stack([terms, c]).sum(axis=1)
    is_special = ~np.isfinite(np.column_stack([terms, c])).all(axis=1)
    if not how.special:
        special = np.where(np.isnan(special), np.inf, special)
    found = np.where(is_special, special, found)
    return np.where(is_special, 0, largest), np.where(is_special, 0, sums), found


def padded(x, width):
    """Fill rows with zeros."""
    return np.pad(x, ((0, 0), (0, width - x.shape[1])))


def run(how, operation, parameters, arrays):
    """Return the fields of dot products; None for other operations and other families."""
    if operation not in ("dot", "dot_scaled"):
        return None
    profile = DOT_PROFILES[parameters["dot_profile"]]
    if profile.family not in ("t_fdpa", "st_fdpa", "gst_fdpa"):
        return None
    of = [formats[parameters[f"format_{k}"]] for k in "ab"]
    a, b = (
        values_of(arrays[name], fmt, profile.ignored_bits)
        for name, fmt in zip("ab", of, strict=True)
    )
    rows, columns = a.shape
    length = profile.chunk
    width = -(-columns // length) * length if how.tail else columns // length * length
    width = width or length
    a, b = (padded(x, max(width, columns))[:, :width] for x in (a, b))
    e = exponents(a, of[0]) + exponents(b, of[1])
    of_scales, e_scales = np.ones((rows, width)), np.zeros((rows, width), np.int64)
    if operation == "dot_scaled":
        fmt, block = formats[parameters["scale_format"]], parameters["scale_block"]
        mask = np.uint8(0x7F if fmt.name == "e4m3" else 0xFF)
        for name in ("scale_a", "scale_b"):
            s = values_of(arrays[name] & mask, fmt, 0)
            places = np.minimum(np.arange(width) // (block * how.scale_every), s.shape[1] - 1)
            with np.errstate(all="ignore"):
                of_scales = of_scales * s[:, places]
            e_scales = e_scales + exponents(s, fmt)[:, places]
    c = wide(arrays["c"])
    starts = range(0, width, length)
    for start in reversed(starts) if how.reversed else starts:
        part = slice(start, start + length)
        largest, sums, c = chunk(
            *terms_of(a, b, e, of_scales, e_scales, part, profile, how), c, start == 0, profile, how
        )
    bits = np.where(np.isnan(c), NAN, c.astype(np.float32).view(np.uint32))
    return {
        "exponent": largest.astype(np.int32).view(np.uint32),
        "cut_sum": sums.view(np.uint64),
        "result": bits,
    }


def terms_of(a, b, e, of_scales, e_scales, part, profile, how):
    """Return the terms of chunks, and their exponents."""
    with np.errstate(all="ignore"):
        products = a[:, part] * b[:, part]
        if profile.family == "gst_fdpa":
            products = products.reshape(len(a), -1, 16)
            zero = (products == 0).all(axis=2) | (of_scales[:, part][:, ::16] == 0)
            negative = ((products == 0) & np.signbit(products)).all(axis=2)
            terms = np.where(negative, -0.0, products.sum(axis=2)) * of_scales[:, part][:, ::16]
            exponent = e_scales[:, part][:, ::16]
        else:
            terms = products * of_scales[:, part]
            zero = terms == 0
            exponent = e[:, part] + e_scales[:, part]
        if how.exponent == "of products":
            exponent = np.frexp(np.where(np.isfinite(terms), terms, 1))[1] - 1
    return terms, np.where(zero, profile.zero_exponent, exponent)


RIGHT = Steps("dot_by_frexp")
_WRONG = (
    replace(RIGHT, name="dot_f_more", mistake="F is one bit more", more_bits=1),
    replace(RIGHT, name="dot_f_less", mistake="F is one bit less", more_bits=-1),
    replace(RIGHT, name="dot_rounds_terms", mistake="terms are rounded", cut="nearest"),
    replace(RIGHT, name="dot_shifts_terms", mistake="negative terms are shifted", cut="down"),
    replace(RIGHT, name="dot_adds_c_last", mistake="c is added to the rounded sum", carried="last"),
    replace(
        RIGHT,
        name="dot_without_tail",
        mistake="the last chunk is left out if it is not whole",
        tail=False,
        unseen=(("dot_chunks", ONE_CHUNK),),
    ),
    replace(RIGHT, name="dot_to_nearest", mistake="sums are rounded to nearest", result="nearest"),
    replace(
        RIGHT,
        name="dot_flushes",
        mistake="subnormal sums become zero",
        flushes=True,
    ),
    replace(
        RIGHT, name="dot_products", mistake="exponents are of products", exponent="of products"
    ),
    replace(RIGHT, name="dot_shift_15", mistake="shifts above 15 lose the term", largest_shift=15),
    replace(RIGHT, name="dot_int32", mistake="the sum is kept in 32 bits", sum_bits=32),
    replace(
        RIGHT,
        name="dot_scales_of_two_blocks",
        mistake="two blocks take the scale of the first one",
        scale_every=2,
        unseen=tuple((suite, "it has no scales") for suite in NO_SCALES),
    ),
    replace(RIGHT, name="dot_nan_is_infinite", mistake="NaN becomes an infinity", special=False),
    replace(
        RIGHT,
        name="dot_backwards",
        mistake="chunks are taken from the last one on",
        reversed=True,
        unseen=(("dot_chunks", ONE_CHUNK),),
    ),
    replace(RIGHT, name="dot_ieee_zeros", mistake="-0 and products of -0 are -0", zeros="IEEE"),
    replace(RIGHT, name="dot_saturates", mistake="an overflow saturates", overflow="largest"),
    replace(
        RIGHT,
        name="dot_23_bits",
        mistake="sums of FP8 have 23 bits",
        result="23 bits",
        unseen=(("dot_scaled", "instructions with scales have 23 bits"),),
    ),
)


def _kernel(how):
    return Kernel(
        how.name,
        lambda operation, parameters, arrays: run(how, operation, parameters, arrays),
        how.mistake,
        dict(how.unseen),
    )


KERNELS = [_kernel(how) for how in (RIGHT, *_WRONG)]
