"""Wrong exact sums, instructions with scales, and results."""

import functools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mor_ref.exact import dot_binary32, matmul
from mor_ref.exact.arithmetic import rn32, rn32_of_binary64
from mor_ref.exact.dot_binary32 import product, total
from mor_ref.exact.dot_terms import Chunk
from wrong_products.kernel import (
    always,
    same,
    wrong,
)
from wrong_products.pieces import (
    clamped,
    flushed,
    in_bf16,
    toward_zero,
)


def _terms(part):
    return [
        one.element_product * one.scale_product
        if all(map(math.isfinite, (one.element_product, one.scale_product)))
        else math.nan
        for one in part
    ]


def _exact_as(total_of):
    def exact_chunk(reference, part, c, profile):
        terms = _terms(part)
        if any(isinstance(x, float) and math.isnan(x) for x in terms):
            return reference(part, c, profile)
        return Chunk(None, None, total_of(terms))

    return (dot_binary32.exact_chunk, exact_chunk)


def _double(x):
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)


def _long(terms):
    """Add in 64 bits of significand."""
    found = Fraction(0)
    for x in terms:
        found += x
        if found:
            unit = Fraction(2) ** (_log2(found) - 63)
            found = round(found / unit) * unit
    return rn32(found)


def _log2(x):
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if abs(x) >= Fraction(2) ** e else e - 1


def _f32(terms):
    return functools.reduce(total, [rn32(x) for x in terms], 0.0)


def _fma(terms):
    return functools.reduce(
        lambda c, x: rn32(x + Fraction(c)) if math.isfinite(c) else c, terms, 0.0
    )


def _window(bits):
    def found(terms):
        top = max((_log2(x) for x in terms if x), default=0)
        unit = Fraction(2) ** (top - bits)
        return rn32(sum((math.trunc(x / unit) for x in terms), 0) * unit)

    return found


def _fixed(bits):
    def found(terms):
        unit = Fraction(2) ** -bits
        return rn32(Fraction(sum(math.trunc(x / unit) for x in terms)) * unit)

    return found


def _is_exact(kind):
    return kind.is_exact


_EXACT = {
    "fsum": lambda terms: rn32_of_binary64(_fsum([_double(x) for x in terms])),
    "a sum in binary64": lambda terms: rn32_of_binary64(sum(_double(x) for x in terms) + 0.0),
    "a sum in 64 bits": _long,
    "a sum in binary32": _f32,
    "fused operations": _fma,
    "toward zero": lambda terms: toward_zero(sum(terms, Fraction(0))),
    "flushed": lambda terms: flushed(rn32(sum(terms, Fraction(0)))) + 0.0,
    "clamped": lambda terms: clamped(rn32(sum(terms, Fraction(0)))),
    "through binary64": lambda terms: rn32_of_binary64(_double(sum(terms, Fraction(0)))),
}


def _fsum(terms):
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.inf


for _name, _total in _EXACT.items():
    wrong(f"exact: {_name}", _is_exact, _exact_as(_total))
wrong(
    "exact: a window of 64 bits",
    lambda kind: kind.is_exact and not kind.record.has_overall,
    _exact_as(_window(64)),
)
wrong(
    "exact: fixed point of 2^-150",
    lambda kind: kind.is_exact and kind.record.name != "nvfp4",
    _exact_as(_fixed(150)),
)


def _blocks_rounded(_, a, b, profile):
    """Round the sum of each piece to binary32."""
    c = 0.0
    for pair in matmul.pieces(a, b):
        c = total(c, matmul.exact_entry.__wrapped__([pair[0]], [pair[1]], profile))
    return c


def _dequantized(change):
    def exact_entry(_, a, b, __):
        terms = []
        for one, other in matmul.pieces(a, b):
            for i, j in zip(one.codes, other.codes, strict=True):
                two = [product_of(code, block) for code, block in ((i, one), (j, other))]
                terms.append(tuple(map(change, two)))
        if not all(math.isfinite(x * y) for x, y in terms):
            return sum(x * y for x, y in terms)
        return rn32(sum((Fraction(x) * Fraction(y) for x, y in terms), Fraction(0)))

    return (matmul.exact_entry, exact_entry)


def product_of(code, block):
    return product(block.fmt.value(code), matmul.factor(block))


wrong("exact: pieces are rounded", _is_exact, (matmul.exact_entry, _blocks_rounded))
wrong(
    "exact: y is flushed",
    lambda kind: kind.is_exact and kind.record.name != "nvfp4",
    _dequantized(flushed),
)
wrong(
    "exact: y in binary32",
    lambda kind: kind.is_exact and kind.record.name != "mx",
    _dequantized(same),
)
wrong("exact: y in bf16", _is_exact, _dequantized(in_bf16))
wrong(
    "exact: factor rounded",
    lambda kind: kind.is_exact and kind.record.name == "nvfp4",
    (matmul.exact_factor, lambda _, block: matmul.factor(block)),
)


def _on_overall(change):
    def entry_with_scales(reference, a, b, profile):
        plain = [[replace(block, overall=1.0) for block in row] for row in (a, b)]
        return change(reference(*plain, profile), a[0].overall, b[0].overall)

    return (matmul.entry_with_scales, entry_with_scales)


def _nvfp4(kind):
    return kind.profile.name == "blackwell_nvfp4"


wrong("overall: g_a, then g_b", _nvfp4, _on_overall(lambda c, g, h: product(product(c, g), h)))
wrong("overall: g_b, then g_a", _nvfp4, _on_overall(lambda c, g, h: product(product(c, h), g)))
wrong("overall: left out", _nvfp4, _on_overall(lambda c, *_: c))
wrong("overall: of A twice", _nvfp4, _on_overall(lambda c, g, _: product(c, product(g, g))))
wrong("overall: in binary64", _nvfp4, _on_overall(lambda c, g, h: rn32_of_binary64(c * (g * h))))
wrong(
    "overall: result flushed",
    _nvfp4,
    _on_overall(lambda c, g, h: flushed(product(c, product(g, h)))),
)
wrong(
    "overall: factor flushed",
    _nvfp4,
    _on_overall(lambda c, g, h: product(c, flushed(product(g, h)))),
)
wrong(
    "overall: factor clamped",
    _nvfp4,
    _on_overall(lambda c, g, h: product(c, clamped(product(g, h)))),
)
wrong(
    "overall: result clamped",
    _nvfp4,
    _on_overall(lambda c, g, h: clamped(product(c, product(g, h)))),
)
wrong("overall: no -0", _nvfp4, _on_overall(lambda c, g, h: product(c, product(g, h)) + 0.0))
wrong(
    "overall: 0 stays",
    _nvfp4,
    _on_overall(lambda c, g, h: c if c == 0 else product(c, product(g, h))),
)


wrong(
    "NaN: 0x7FC00000",
    always,
    result=lambda bits: np.where(bits == 0x7FFFFFFF, np.uint32(0x7FC00000), bits),
)
wrong(
    "result: no -0",
    lambda kind: kind.has_factors or kind.profile.name == "blackwell_nvfp4",
    result=lambda bits: np.where(bits == 0x80000000, np.uint32(0), bits),
)
wrong(
    "result: infinities are the largest",
    always,
    result=lambda bits: np.where(bits & 0x7FFFFFFF == 0x7F800000, bits - np.uint32(1), bits),
)
wrong(
    "result: subnormal is 0",
    lambda kind: kind.name != "blackwell_mxfp4.mx",
    result=lambda bits: np.where(bits & 0x7F800000 == 0, bits & np.uint32(0x80000000), bits),
)


wrong(
    "result: infinities without sign",
    always,
    result=lambda bits: np.where(bits == 0xFF800000, np.uint32(0x7F800000), bits),
)
