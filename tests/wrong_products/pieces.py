"""Wrong pieces: their order, their factors, their sums, and blocks that are upcast."""

import functools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mor_ref.exact import dot, matmul
from mor_ref.exact.arithmetic import FLT_MAX, nearest_in, quotient, rn32, rn32_of_binary64
from mor_ref.exact.dot_binary32 import fused, product, total
from mor_ref.exact.dot_terms import rounded
from wrong_products.kernel import (
    BF16,
    F32,
    ONE,
    always,
    divides,
    has_overall,
    has_scales,
    wrong,
)


def in_loop(loop):
    """Return steps in which a loop adds all pieces."""

    def pieces(reference, a, b):
        return [(reference(a, b), None)]

    def add_piece(reference, one, _, c, profile):
        return loop(one, lambda pair, c: reference(*pair, c, profile), c, profile)

    return ((matmul.pieces, pieces), (matmul.add_piece, add_piece))


def _in_order(order):
    def loop(pieces, add, c, _):
        return functools.reduce(lambda c, pair: add(pair, c), order(pieces), c)

    return in_loop(loop)


def _swapped(pieces):
    return [pieces[k ^ 1] if k ^ 1 < len(pieces) else pieces[k] for k in range(len(pieces))]


ORDERS = {
    "reversed": lambda x: x[::-1],
    "the last one first": lambda x: x[-1:] + x[:-1],
    "the first one last": lambda x: x[1:] + x[:1],
    "neighbours swapped": _swapped,
    "even, then odd": lambda x: x[::2] + x[1::2],
}
for _name, _order in ORDERS.items():
    wrong(f"pieces: {_name}", lambda kind: kind.in_pieces, *_in_order(_order))


def _accumulators(groups):
    """Return a loop with several sums, which are added up."""

    def loop(pieces, add, c, _):
        sums = [
            functools.reduce(lambda c, pair: add(pair, c), part, 0.0) for part in groups(pieces)
        ]
        return functools.reduce(total, sums, c)

    return in_loop(loop)


def _tree(pieces, add, c, _):
    row = [add(pair, 0.0) for pair in pieces]
    while len(row) > 1:
        row = [functools.reduce(total, row[k : k + 2]) for k in range(0, len(row), 2)]
    return total(c, row[0]) if row else c


wrong("pieces: two sums", lambda kind: kind.in_pieces, *_accumulators(lambda x: (x[::2], x[1::2])))
wrong(
    "pieces: halves",
    lambda kind: kind.in_pieces,
    *_accumulators(lambda x: (x[: len(x) // 2], x[len(x) // 2 :])),
)
wrong(
    "pieces: two sums from the end",
    lambda kind: kind.has_factors,
    *_accumulators(lambda x: (x[-1:], x[:-1])),
)
wrong("pieces: a tree", lambda kind: kind.in_pieces, *in_loop(_tree))
wrong(
    "pieces: unscaled sums are stored apart",
    lambda kind: kind.in_pieces,
    *_accumulators(lambda x: [[one] for one in x][::-1]),
)


def _merged(pieces, add, c, _):
    """Add neighbours with equal factors as one piece."""
    found = []
    for one, other in pieces:
        key = (one.fmt, other.fmt, matmul.factor(one), matmul.factor(other))
        if found and found[-1][0] == key:
            first, second = found[-1][1]
            found[-1] = (
                key,
                tuple(
                    replace(x, codes=[*x.codes, *y.codes], upcast=[*x.upcast, *y.upcast])
                    for x, y in ((first, one), (second, other))
                ),
            )
        else:
            found.append((key, (one, other)))
    return functools.reduce(lambda c, pair: add(pair, c), [pair for _, pair in found], c)


def part_of(block, part):
    return replace(block, codes=block.codes[part], upcast=block.upcast[part])


def _split(pieces, add, c, profile):
    """Add a piece for each chunk."""
    length = dot.chunk_length(profile)
    for one, other in pieces:
        for k in range(0, len(one.codes), length):
            part = slice(k, k + length)
            c = add((part_of(one, part), part_of(other, part)), c)
    return c


def _carried(reference, one, other, c, profile):
    """Go on with c in the instruction if there is no factor."""
    if matmul.needs_upcast(one, other, profile):
        one, other, profile = matmul.upcast(one), matmul.upcast(other), matmul.wide(profile)
    if product(matmul.factor(one), matmul.factor(other)) != 1:
        return reference(one, other, c, profile)
    return dot.dot(one.codes, other.codes, c, profile, (one.fmt, other.fmt))


def _chunks_in_blocks(kind):
    """Return whether a piece has several chunks."""
    return kind.in_pieces and kind.record.divides


wrong("pieces: merged if factors are equal", lambda kind: kind.in_pieces, *in_loop(_merged))
wrong("pieces: one for each chunk", _chunks_in_blocks, *in_loop(_split))
wrong(
    "pieces: c goes into the instruction",
    lambda kind: kind.in_pieces and not kind.record.element,
    (matmul.add_piece, _carried),
)


def _without_tail(given):
    """Return arrays whose last block is zeros if it is short."""
    width, count = given["a"].shape[1], given["choice_a"].shape[1]
    block = next(b for b in (16, 32, 64, 128, 256) if -(-width // b) == count)
    start = width // block * block
    for name in "ab":
        given[name][:, start:] = 0
        given[f"y_{name}"][:, start:] = 0
        if start < width:
            given[f"scale_{name}"][:, -1] = ONE
    return given


wrong("blocks: a short one is dropped", always, arrays=_without_tail)


def flushed(x):
    """Return a number, or a zero of its sign if it is subnormal."""
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


def clamped(x):
    """Return a number, or the largest one instead of an infinity."""
    return math.copysign(FLT_MAX, x) if math.isinf(x) else x


def toward_zero(x):
    """Return a fraction in binary32, rounded toward zero."""
    if not isinstance(x, Fraction):
        return x
    return rounded(x, 23, F32, "rtz") if x else 0.0


def in_bf16(x):
    return nearest_in(x, BF16)


def _in_double(one, other, partial, c):
    return rn32_of_binary64(product(one, other) * partial + c)


def _toward_zero(one, other, partial, c):
    d = product(one, other)
    if not all(map(math.isfinite, (d, partial, c))):
        return fused(d, partial, c)
    found = Fraction(d) * Fraction(partial) + Fraction(c)
    return toward_zero(found) if found else fused(d, partial, c)


def _exact_factor(one, other, partial, c):
    if not all(map(math.isfinite, (one, other, partial, c))):
        return fused(product(one, other), partial, c)
    found = Fraction(one) * Fraction(other) * Fraction(partial) + Fraction(c)
    return rn32(found) if found else fused(product(one, other), partial, c)


def _factor_toward_zero(one, other, partial, c):
    if not (math.isfinite(one) and math.isfinite(other)):
        return fused(product(one, other), partial, c)
    d = Fraction(one) * Fraction(other)
    return fused(toward_zero(d) if d else product(one, other), partial, c)


def _skipped(is_skipped):
    def scaled_sum(one, other, partial, c):
        return c if is_skipped(one, other, partial) else fused(product(one, other), partial, c)

    return scaled_sum


def _isolated(one, other, partial, c):
    """Add to c unless c is infinite."""
    return c if math.isinf(c) else fused(product(one, other), partial, c)


SUMS = {  # for all pieces, or for those with factors
    "unfused": (1, lambda d, e, p, c: total(product(product(d, e), p), c)),
    "d_a first": (1, lambda d, e, p, c: fused(e, product(d, p), c)),
    "d_b first": (1, lambda d, e, p, c: fused(d, product(e, p), c)),
    "d_a, then d_b": (1, lambda d, e, p, c: total(product(e, product(d, p)), c)),
    "in binary64": (4, _in_double),
    "toward zero": (0, _toward_zero),
    "factor is exact": (1, _exact_factor),
    "factor toward zero": (4, _factor_toward_zero),
    "factor flushed": (1, lambda d, e, p, c: fused(flushed(product(d, e)), p, c)),
    "factor clamped": (1, lambda d, e, p, c: fused(clamped(product(d, e)), p, c)),
    "factors flushed": (1, lambda d, e, p, c: fused(product(flushed(d), flushed(e)), p, c)),
    "d_a clamped": (4, lambda d, e, p, c: fused(product(clamped(d), e), p, c)),
    "d_b clamped": (4, lambda d, e, p, c: fused(product(d, clamped(e)), p, c)),
    "factor in bf16": (1, lambda d, e, p, c: fused(in_bf16(product(d, e)), p, c)),
    "partial in bf16": (0, lambda d, e, p, c: fused(product(d, e), in_bf16(p), c)),
    "partial clamped": (6, lambda d, e, p, c: fused(product(d, e), clamped(p), c)),
    "partial flushed": (2, lambda d, e, p, c: fused(product(d, e), flushed(p), c)),
    "c in bf16": (0, lambda d, e, p, c: fused(product(d, e), p, in_bf16(c))),
    "c clamped": (0, lambda d, e, p, c: clamped(fused(product(d, e), p, c))),
    "c flushed": (0, lambda d, e, p, c: flushed(fused(product(d, e), p, c))),
    "an infinite c stays": (0, _isolated),
    "0 times infinity is skipped": (1, _skipped(lambda *of: of[2] == 0)),
    "a factor of 0 is skipped": (5, _skipped(lambda *of: 0 in of[:2])),
    "NaN is skipped": (0, _skipped(lambda d, e, p: math.isnan(d * e * p))),
    "infinity is skipped": (6, _skipped(lambda *of: math.isinf(of[2]))),
    "an infinite factor is skipped": (1, _skipped(lambda *of: math.isinf(product(*of[:2])))),
    "c is +0 if it is 0": (3, lambda d, e, p, c: fused(product(d, e), p, c) + 0.0),
}
_DOMAINS = (
    lambda kind: kind.in_pieces,
    lambda kind: kind.has_factors,
    lambda kind: kind.adds_bf16,
    lambda kind: kind.has_factors,
    lambda kind: kind.has_factors and kind.record.name != "mx",  # its factors have one bit
    lambda kind: kind.has_factors and kind.record.divides,  # no other one has an infinity next to 0
    lambda kind: kind.in_pieces and not kind.record.element,
)
for _name, (_domain, _sum) in SUMS.items():
    wrong(
        f"sum: {_name}",
        _DOMAINS[_domain],
        (matmul.scaled_sum, lambda _, *args, sum_of=_sum: sum_of(*args)),
    )

wrong(
    "d: flushed",
    lambda kind: has_scales(kind) and not (kind.record.element or kind.profile.needs_scales),
    (matmul.decode_scale, lambda reference, block: flushed(reference(block))),
)
wrong(
    "d: toward zero",
    divides,
    (
        matmul.decode_scale,
        lambda reference, block: (
            toward_zero(1 / Fraction(block.scale))
            if math.isfinite(block.scale) and block.scale
            else reference(block)
        ),
    ),
)
wrong(
    "d: up",
    divides,
    (
        matmul.decode_scale,
        lambda reference, block: (
            float(np.nextafter(np.float32(reference(block)), np.float32(math.inf)))
            if math.isfinite(block.scale) and block.scale
            else reference(block)
        ),
    ),
)
wrong(
    "d: overall is left out",
    lambda kind: has_overall(kind) and kind.in_pieces,
    (matmul.factor, lambda _, block: matmul.decode_scale(block)),
)
wrong(
    "d: not rounded",
    lambda kind: has_overall(kind) and kind.in_pieces,
    (matmul.factor, lambda _, block: matmul.exact_factor(block)),
)


def _divided(reference, one, other, c, profile):
    if not one.divides or matmul.needs_upcast(one, other, profile):
        return reference(one, other, c, profile)
    partial = reference(replace(one, scale=1.0), replace(other, scale=1.0), -0.0, profile)
    return total(quotient(partial, product(one.scale, other.scale)), c)


def _both(reference, one, other, c, profile):
    if not one.divides:
        return reference(one, other, c, profile)
    both = product(one.scale, other.scale)
    return reference(replace(one, scale=both), replace(other, scale=1.0), c, profile)


wrong(
    "d: sums are divided",
    lambda kind: kind.has_factors and kind.record.divides,
    (matmul.add_piece, _divided),
)
wrong(
    "d: reciprocal of both",
    lambda kind: kind.has_factors and kind.record.divides,
    (matmul.add_piece, _both),
)
wrong(
    "c: the first sum is stored",
    lambda kind: kind.in_pieces and kind.profile.name != "hopper_bf16",
    (matmul.first_c, lambda _: -0.0),
)


def _at_the_end(pieces, add, c, _):
    """Add sums without factors; those of the first block multiply the result."""
    plain = [tuple(replace(x, scale=1.0, overall=1.0) for x in pair) for pair in pieces]
    c = functools.reduce(lambda c, pair: add(pair, c), plain, c)
    one, other = pieces[0]
    return product(product(matmul.factor(one), matmul.factor(other)), c)


def _rescaled(pieces, add, c, profile):
    """Keep c in units of the factors of a piece, as if c were divided and multiplied."""
    for pair in pieces:
        d = product(matmul.factor(pair[0]), matmul.factor(pair[1]))
        plain = [replace(x, scale=1.0, overall=1.0) for x in pair]
        if math.isfinite(d) and d and not matmul.needs_upcast(*pair, profile):
            with np.errstate(all="ignore"):
                c = product(add(plain, float(np.float32(c) / np.float32(d))), d)
        else:
            c = add(pair, c)
    return c


wrong("d: multiplied at the end", lambda kind: kind.has_factors, *in_loop(_at_the_end))
wrong(
    "d: c is divided by it",
    lambda kind: kind.has_factors and kind.record.name != "mx",
    *in_loop(_rescaled),
)


def _or_both(_, one, other, profile):
    return one.fmt.name not in profile.formats and other.fmt.name not in profile.formats


def _upcast_alone(reference, one, other, c, profile):
    """Upcast only the block whose format the profile lacks; the other one keeps its factor."""
    if not matmul.needs_upcast(one, other, profile):
        return reference(one, other, c, profile)
    wide = matmul.wide(profile)

    def taken(block):
        if block.fmt.name not in profile.formats:
            return matmul.upcast(block)
        codes = [code_in_bf16(block.fmt.value(code)) for code in block.codes]
        return replace(block, codes=codes, fmt=BF16)

    return reference(taken(one), taken(other), c, wide)


def code_in_bf16(x):
    return int(np.float32(x).view(np.uint32)) >> 16


wrong(
    "upcast: everything",
    lambda kind: kind.in_pieces and kind.upcasts and kind.has_factors,
    (matmul.needs_upcast, lambda *_: True),
)
wrong(
    "upcast: keeps its scale",
    lambda kind: kind.upcasts,
    (
        matmul.upcast,
        lambda reference, block: replace(
            reference(block), scale=block.scale, overall=block.overall, divides=block.divides
        ),
    ),
)
wrong(
    "upcast: only the block that needs it",
    lambda kind: kind.upcasts and bool(kind.takes - {"bf16"}),
    (matmul.add_piece, _upcast_alone),
)
