"""Encoding: every format and rounding, at the inputs at which encoders differ."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from mor_ref.definitions.encoding import (
    DETERMINISTIC_ROUNDINGS,
    POWER_OF_TWO_ROUNDINGS,
    Nan,
    Overflow,
    Rounding,
)
from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import encoding_profiles, formats
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.encoding import floor_log2, in_units_of
from mor_ref.golden.inputs.edges import (
    NANS,
    SPECIALS,
    Bits,
    amaxes,
    edges_and_random,
    edges_of,
    wide,
)
from mor_ref.golden.inputs.other_sources import binary64, sixteen_bits
from mor_ref.golden.model.suite import Case, Size, suite
from mor_ref.operations.bits import f32_bits, numbers_of
from mor_ref.operations.random_words import random_words

_LATER = ("e2m1_ieee",)
_ALL_PATTERNS = ("e4m3", "e5m2")  # formats that all patterns of 16 bits are encoded to
_CORE = ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "e8m0", "int8_mx")
_EVERY = 7  # of the inputs that are dull: every bit that is cut changes
_EXTREMES = (*NANS, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x00000001, 0x00FFFFFF)
_FEW = 211  # of the patterns of 16 bits, beside the edges of a format


def _smallest(fmt: Format) -> Fraction:
    return Fraction(2) ** (fmt.smallest_exponent - fmt.mantissa_bits)


def _beyond(fmt: Format, x: Bits) -> Bits:
    """Return the inputs around zero and from half of the largest number on, and some others.

    Overflow is decided after rounding: it changes no code of smaller numbers (ENC-006).
    """
    magnitude = x & np.uint32(0x7FFFFFFF)
    is_chosen = magnitude >= f32_bits(rn32(Fraction(fmt.largest) / 2))
    is_chosen |= magnitude <= max(f32_bits(rn32(_smallest(fmt) * Fraction(3, 4))), 1)
    is_chosen[::_EVERY] = True
    return np.concatenate([x[is_chosen], _single_bits(fmt)])


def _single_bits(fmt: Format) -> Bits:
    """Return numbers that differ from a large power of two, and from a tie, in one bit."""
    exponent = floor_log2(Fraction(fmt.largest)) - 1
    cut = 23 - fmt.mantissa_bits + max(fmt.smallest_exponent - exponent, 0)
    power = f32_bits(rn32(Fraction(2) ** exponent))
    found: list[int] = []
    for bit in (1, 15, 16):
        if bit < cut - 1:
            found += [power | 1 << bit, power | 1 << bit | 0x80000000]
            found += [power | 1 << (cut - 1) | 1 << bit] if not fmt.is_power_of_two else []
    return np.array(found, np.uint32)


def _encode_cases(size: Size) -> Iterator[Case]:
    """Yield the cases of each format; those of a format that came later are at the end."""
    every = [formats[name] for name in formats.specified]
    yield from _of_formats([fmt for fmt in every if fmt.name not in _LATER], size)
    yield from _to_wide_formats()
    yield from _of_formats([fmt for fmt in every if fmt.name in _LATER], size)


def _of_formats(chosen: list[Format], size: Size) -> Iterator[Case]:
    for fmt in chosen:
        x = edges_and_random(fmt, size)
        for rounding in POWER_OF_TWO_ROUNDINGS if fmt.is_power_of_two else DETERMINISTIC_ROUNDINGS:
            yield _case(fmt, "f32", x, rounding)
            yield _case(fmt, "f32", _beyond(fmt, x), rounding, "ieee")
        yield _case(fmt, "f32", _beyond(fmt, x), None, "satfinite", "signed")
    for fmt in chosen:
        if fmt.bits <= 8:
            yield from _from_other_sources(fmt)


def _from_other_sources(fmt: Format) -> Iterator[Case]:
    step = 1 if fmt.name in _ALL_PATTERNS else _FEW if fmt.name in _CORE else 1 << 16
    patterns = np.arange(0, 1 << 16, step, dtype=np.uint16)
    for source in ("bf16", "f16"):
        yield _case(fmt, source, np.union1d(patterns, sixteen_bits(fmt, source)))
    yield _case(fmt, "f64", binary64(fmt, edges_of(fmt)))


def _to_wide_formats() -> Iterator[Case]:
    for name in ("bf16", "f16", "f32"):
        fmt = formats[name]
        x = _beyond(fmt, edges_and_random(fmt, Size()))
        yield _case(fmt, "f64", binary64(fmt, x, ties=name == "f32"), None, "ieee")
    directed: tuple[tuple[str, Rounding], ...] = (
        ("bf16", "rtz"), ("f32", "rtz"), ("e8m0", "rtz"), ("f32", "rtp"),
    )  # fmt: skip
    for name, rounding in directed:
        fmt = formats[name]
        some = np.concatenate([np.array(SPECIALS, np.uint32), amaxes()[::_EVERY]])
        x = binary64(fmt, some, ties=name == "f32")
        yield _case(fmt, "f64", x, rounding, "ieee")
    for name, source in (("bf16", "f16"), ("f16", "bf16")):
        fmt = formats[name]
        tie = f32_bits(rn32(_smallest(fmt) / 2))
        edges = np.array([*SPECIALS, tie, tie | 0x80000000], np.uint32)
        patterns = np.arange(0, 1 << 16, _FEW // 5 | 1, dtype=np.uint16)
        yield _case(fmt, source, np.union1d(patterns, sixteen_bits(fmt, source, edges)))


def _case(
    fmt: Format,
    source: str,
    x: np.ndarray,
    rounding: Rounding | None = None,
    overflow: Overflow = "satfinite",
    nan: Nan = "canonical",
) -> Case:
    mode: Rounding = rounding or ("rtp" if fmt.is_power_of_two else "rne")
    return Case(
        f"{fmt.name}.{source}.{mode}.{overflow}.{nan}",
        {"format": fmt.name, "source": source, "rounding": mode, "overflow": overflow, "nan": nan},
        {"x": x},
    )


def _profile_cases(size: Size) -> Iterator[Case]:
    for profile, rows in encoding_profiles.items():
        for name in rows:
            yield Case(
                f"{profile}.{name}",
                {"format": name, "source": "f32", "preset": profile},
                {"x": edges_and_random(formats[name], size)},
            )


def _stochastic_cases(size: Size) -> Iterator[Case]:
    for name in ("e4m3", "e5m2", "e2m1", "bf16", "f16"):
        fmt = formats[name]
        edges = edges_of(fmt) if fmt.bits <= 8 else amaxes()
        x = np.concatenate([edges[:: max(1, edges.size // 300)], wide(100, size.seed, 2)])
        x = np.append(x, _near_zero(fmt))
        for n in (1, 2, 3, 8, 16, 23, 24, 31, 32):
            yield _stochastic(fmt, np.append(x, _below_a_word(fmt, n)), n, size)
        few = [x[::3], _near_zero(fmt), _below_a_word(fmt, 8), _above_the_largest(fmt)]
        yield _stochastic(fmt, np.concatenate(few), 8, size, "ieee")
    for name in ("e2m3", "e3m2", "int8_mx", "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "e4m3_ieee"):
        fmt = formats[name]
        edges = edges_of(fmt)
        x = np.concatenate([edges[:: max(1, edges.size // 80)], wide(30, size.seed, 2)])
        x = np.append(x, _near_zero(fmt))
        for n in (1, 8, 24):
            yield _stochastic(fmt, np.append(x, _below_a_word(fmt, n)), n, size)


def _near_zero(fmt: Format) -> Bits:
    """Return both zeros, and numbers below the smallest and below its half."""
    parts = [f32_bits(rn32(_smallest(fmt) * Fraction(k, 8))) for k in (3, 5, 7)]
    return np.array([0, 0x80000000, *parts, parts[0] | 0x80000000], np.uint32)


def _stochastic(fmt: Format, x: Bits, n: int, size: Size, overflow: Overflow = "satfinite") -> Case:
    """Return each input with the last word that rounds down, the first up, and a random one.

    Infinities, NaNs, and the largest and the smallest numbers of binary32 are inputs of each case.
    """
    x = np.concatenate([x, np.setdiff1d(np.array(_EXTREMES, np.uint32), x)])
    random = (random_words(x.size, size.seed, 3 + n) >> np.uint64(64 - n)).tolist()
    inputs, words = [], []
    for bits, value, word in zip(x.tolist(), numbers_of(x, "f32"), random, strict=True):
        for candidate in sorted({word, *_decisive(value, fmt, n)}):
            inputs.append(bits)
            words.append(candidate)
    return Case(
        f"{fmt.name}.{n}" if overflow == "satfinite" else f"{fmt.name}.{n}.{overflow}",
        {"format": fmt.name, "source": "f32", "n_random_bits": n, "overflow": overflow},
        {"x": np.array(inputs, np.uint32), "random_word": np.array(words, np.uint32)},
    )


def _below_a_word(fmt: Format, n: int) -> Bits:
    """Return the smallest number that a word of n bits rounds up, and the next below, if any.

    The sum of the largest word and the number below takes more bits than binary64 has.
    """
    smallest = _smallest(fmt) / 2**n
    at = f32_bits(rn32(smallest)) if smallest > Fraction(2) ** -126 else 0
    return np.array([at, at - 1] if at else [], np.uint32)


def _above_the_largest(fmt: Format) -> Bits:
    """Return numbers between the largest and the next: a word decides whether they overflow."""
    largest = Fraction(fmt.largest)
    unit = Fraction(2) ** (floor_log2(largest) - fmt.mantissa_bits)
    points = [f32_bits(rn32(largest + unit * Fraction(k, 8))) for k in range(9)]
    near = [points[0] + 1, *points[1:-1], points[-1] - 1]
    return np.array([bits | sign for bits in near for sign in (0, 0x80000000)], np.uint32)


def _decisive(value: float, fmt: Format, n: int) -> set[int]:
    """Return the last word that rounds a number down, and the first that rounds it up."""
    if value == 0:  # zeros are not rounded
        return {0}
    if value - value != 0:  # neither are infinities and NaN
        return set()
    exponent = max(floor_log2(abs(value)), fmt.smallest_exponent)
    _, rest, whole = in_units_of(exponent - fmt.mantissa_bits, abs(value))
    first = (1 << n) - (rest << n) // whole
    return {word for word in (first - 1, first) if 0 <= word < 1 << n}


STEPS = (
    suite("encode", "Numbers to codes", "encode", ("FMT-011",), _encode_cases),
    suite(
        "encode_presets",
        "Numbers to codes as CUDA, ml_dtypes and torch have them",
        "encode_preset",
        (),
        _profile_cases,
        normative=False,
    ),
    suite(
        "encode_stochastic",
        "Numbers to codes, with random bits",
        "encode_stochastic",
        (),
        _stochastic_cases,
    ),
)
