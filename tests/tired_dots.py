"""Whole programs of dot products with one mistake each: `dots_by_text` with another step."""

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from unittest import mock

import dots_by_text as by_text
import matmul_by_text
from dots_by_text import FAMILIES, add, by_ieee, chunks, multiply, rounded, t_fdpa
from matmul_by_text import in_pieces

from mor_ref.definitions.dot import DOT_PROFILES

ALONE, SCALED, PRODUCTS = ("dot_chunks", "dot"), ("dot_scaled",), ("matmul",)
SUITES = (*ALONE, *SCALED, *PRODUCTS)
OF_NVIDIA = ("t_fdpa", "st_fdpa", "gst_fdpa")
PERIOD = 128
IN_F16 = ("f16",)  # the last entry of a row whose first c is in f16
FILL = ((0.0, 0.0, 1.0, 1.0), (0, 0, 0, 0))


@dataclass(frozen=True)
class Program:
    """A wrong program: its steps, and the suites that show it."""

    suites: tuple[str, ...]
    families: Callable = dict  # returns the functions of families
    chunks: Callable = chunks
    fallback: Callable = by_ieee
    pieces: Callable = in_pieces

    def answer(self, suite, case):
        """Return the fields of a case."""
        with ExitStack() as stack:
            for module, name, value in self._patches(case):
                stack.enter_context(mock.patch.object(module, name, value))
            if suite == "matmul":
                return matmul_by_text.entries(case.parameters, case.arrays)
            return by_text.dot(case.parameters, case.arrays)

    def _patches(self, case):
        def run(products, c, row):
            return self.chunks(products, c, row, case.parameters.get("scale_block", 0))

        changed = chunks if self.chunks is chunks else run
        yield by_text, "FAMILIES", {**FAMILIES, **self.families()}
        yield by_text, "chunks", changed
        yield matmul_by_text, "chunks", changed
        yield matmul_by_text, "exact", self.families().get("exact", FAMILIES["exact"])
        yield matmul_by_text, "in_pieces", self.pieces
        yield by_text, "by_ieee", self.fallback


def flushed(x, low):
    """Return a number, or a zero of its sign if it is below 2^low."""
    return math.copysign(0.0, x) if abs(x) < 2.0**low else x


def low_of(row):
    """Return the exponent of the smallest normal number of the results of a row."""
    return -14 if row and row[3] == 10 else -126


# ---------------------------------------------------------------- sums and c


def flushing(of_sum, lows=(-14, -126)):
    """Return families that change sums which are subnormal in some formats."""

    def changed(function):
        def chunk(products, c, row, **more):
            e, n, r = function(products, c, row, **more)
            is_subnormal = low_of(row) in lows and abs(r) < 2.0 ** low_of(row)
            return e, n, of_sum(r) if is_subnormal else r

        return chunk

    return lambda: {name: changed(function) for name, function in FAMILIES.items()}


def flushing_operations(of_sum):
    """Return the operations of binary32, each followed by a change of subnormal numbers."""

    def flush(x):
        return of_sum(x) if abs(x) < 2.0**-126 else x

    def chunk(products, c, row):
        if row[0] != "f32_pairwise":
            e, n, r = by_ieee(products, c, row)
            return e, n, r if row[0] == "ftz_mul_add" else flush(r)  # which flushes already
        sums = [flush(multiply(v[0], v[1])) for v, _ in products]
        while len(sums) > 1:
            pairs = [flush(add(*sums[i : i + 2])) for i in range(0, len(sums) - 1, 2)]
            sums = pairs + sums[len(pairs) * 2 :]
        return 0, 0, flush(add(c, sums[0])) if sums else c

    return chunk


def to_zero(_):
    return 0.0


def to_signed_zero(x):
    return math.copysign(0.0, x)


def taking_c(function):
    """Return a family that flushes its c."""

    def chunk(products, c, row, **more):
        return function(products, flushed(c, -14 if more else low_of(row)), row, **more)

    return chunk


def flushing_the_given_c(products, c, row, _):
    return chunks(products, flushed(c, -14 if row[6:] == IN_F16 else low_of(row)), row)


# ---------------------------------------------------------------- loops over K


def from_the_last_chunk(products, c, row, _):
    """Fill the last chunk in place, as a loop does whose index counts down."""
    length = {"f32_fma": 1, "promoted": PERIOD}.get(row[0], row[1]) or len(products)
    products = products + [FILL] * (-len(products) % length)
    starts = range(0, len(products), length)[::-1]
    fields = (0, 0, c)
    for n, k in enumerate(starts):
        if row[5:6] > (0,) and n * length % row[5] == 0 and abs(fields[2]) < 2.0**-126:
            fields = (0, 0, 0.0)
        more = {"is_first": True} if n == 0 and row[6:] == IN_F16 else {}
        family = FAMILIES.get(row[0], by_ieee)
        if row[0] == "promoted":
            family = promoted_in_order
        fields = family(products[k : k + length], fields[2], row, **more)
    return fields


def promoted_in_order(products, c, row):
    """Add 128 products with its instructions in order."""
    _, _, s_a, s_b = products[0][0]
    p = chunks(without_scales(products), 0.0, instruction_of(row))[2]
    return 0, 0, add(multiply(s_a, s_b) * p, c)


def without_scales(products):
    """Return products of elements alone."""
    return [((*v[:2], 1.0, 1.0), (*e[:2], 0, 0)) for v, e in products]


def instruction_of(row):
    """Return the row of the instruction that promoted takes."""
    return ("t_fdpa", *row[1:])


def leaving_the_last_sum_unscaled(products, c, row, _):
    """Scale sums where they are promoted; a last one is added behind the loop."""
    whole = len(products) // PERIOD * PERIOD
    if row[0] != "promoted" or whole == len(products):
        return chunks(products, c, row)
    c = chunks(products[:whole], c, row)[2]
    p = chunks(without_scales(products[whole:]), 0.0, instruction_of(row))[2]
    return 0, 0, add(p, c)


def keeping_the_accumulator(products, c, row, _):
    """Promote the accumulator each time, and never clear it."""
    if row[0] != "promoted":
        return chunks(products, c, row)
    p = 0.0
    for k in range(0, len(products), PERIOD):
        part = products[k : k + PERIOD]
        p = chunks(without_scales(part), p, instruction_of(row))[2]
        c = add(multiply(*part[0][0][2:]) * p, c)
    return 0, 0, c


def scaling_blocks(combine):
    """Return a loop that adds up blocks without scales, and scales each sum and adds it to c."""

    def run(products, c, row, block):
        if row[0] not in ("exact", "st_fdpa", "gst_fdpa"):
            return chunks(products, c, row)
        e = n = 0
        for k in range(0, len(products), block):
            part = products[k : k + block]
            e, n, p = chunks(without_scales(part), 0.0, row)
            if not math.isfinite(c):  # DOT-003
                e = n = 0
            c = add(combine(p, *part[0][0][2:]), c)
        return e, n, c

    return run


def scaled_exactly(p, x, y):
    """Return the sum times RN32(x * y), which is exact in binary64: add is then a fused one."""
    return multiply(x, y) * p


# ---------------------------------------------------------------- loops that are right for a few


def rotating_four_stages(products, c, row, _):
    """Take chunk k - 4 again instead of chunk k, as if no stage of four were filled later."""
    if row[0] not in OF_NVIDIA:
        return chunks(products, c, row)
    size = 4 * row[1]
    again = products[:size] + products[: max(len(products) - size, 0)]
    return chunks(again[: len(products)], c, row)


def keeping_eight_chunks(products, c, row, _):
    """Lose the chunks behind the eighth one."""
    return chunks(products[: 8 * row[1]] if row[0] in OF_NVIDIA else products, c, row)


def splitting_k_of_eight_chunks(products, c, row, _):
    """Add two halves of K, the second one from 0, if a row has eight chunks or more."""
    if row[0] not in OF_NVIDIA or len(products) < 8 * row[1]:
        return chunks(products, c, row)
    half = (len(products) // row[1] + 1) // 2 * row[1]
    first, (e, n, second) = chunks(products[:half], c, row), chunks(products[half:], 0.0, row)
    if not math.isfinite(first[2] + second):
        return e, n, first[2] + second
    limits = (10, -14, 16) if row[3] == 10 else ()
    return e, n, rounded(Fraction(first[2]) + Fraction(second), *limits)


def in_trees_of(count):
    """Return a loop that adds trees of so many products in order."""

    def run(products, c, row, _):
        if row[0] != "f32_pairwise" or not products:
            return chunks(products, c, row)
        parts = [products[k : k + count] for k in range(0, len(products), count)]
        first, *others = (chunks(part, -0.0, row)[2] for part in parts)
        return 0, 0, add(c, reduce(add, others, first))

    return run


def splitting_fma(products, c, row, _):
    """Add two halves of K, the second one from 0, if a row has more than 64 products."""
    if row[0] != "f32_fma" or len(products) <= 64:
        return chunks(products, c, row)
    half = len(products) // 2
    return 0, 0, add(chunks(products[:half], c, row)[2], chunks(products[half:], 0.0, row)[2])


def rounding_each_64(products, c, row, _):
    """Round an exact sum after each 64 products."""
    if row[0] != "exact":
        return chunks(products, c, row)
    for k in range(0, len(products), 64):
        c = chunks(products[k : k + 64], c, row)[2]
    return 0, 0, c


def promoting_each_512(products, c, row, _):
    """Promote three times after 128 products, and after 512 from there on."""
    if row[0] != "promoted":
        return chunks(products, c, row)
    early = min(3 * PERIOD, len(products))
    for k in range(0, early, PERIOD):
        c = promoted_in_order(products[k : k + PERIOD][: early - k], c, row)[2]
    for k in range(early, len(products), 4 * PERIOD):
        c = promoted_in_order(products[k : k + 4 * PERIOD], c, row)[2]
    return 0, 0, c


# ---------------------------------------------------------------- infinities


def with_pairs(change):
    """Return a loop over products whose infinite ones are changed."""

    def run(products, c, row, _):
        return chunks([(paired(change, v, e), e) for v, e in products], c, row)

    return run


def paired(change, v, e):
    """Return the numbers of a product, the one next to an infinity changed."""
    a, b, *scales = v
    if math.isinf(a) and math.isfinite(b):
        return (a, change(b, e[1]), *scales)
    return (change(a, e[0]), b, *scales) if math.isinf(b) and math.isfinite(a) else v


def without_subnormal(x, e):
    """Return a number, or 0 if it is subnormal."""
    return 0.0 if abs(x) < 2.0**e else x


def keeping_an_infinite_c():
    """Return families of NVIDIA that return an infinite c, whatever comes to it."""

    def chunk(products, c, row, **more):
        return (0, 0, c) if math.isinf(c) else t_fdpa(products, c, row, **more)

    return dict.fromkeys(OF_NVIDIA, chunk)


SPECIAL = {
    "the sign of an infinite operand": Program(SUITES, chunks=with_pairs(lambda x, _: abs(x))),
    "infinity times 0 is infinite": Program(SUITES, chunks=with_pairs(lambda x, _: x or 1.0)),
    "infinity times a subnormal number": Program(SUITES, chunks=with_pairs(without_subnormal)),
    "an infinite c": Program(SUITES, keeping_an_infinite_c),
}


def taking_fp4_as_fp8(a, b, profile):
    """Multiply blocks of FP4 by the instruction of FP8, and their factors with the sum."""
    own = DOT_PROFILES[profile]
    known = (*own.formats, "e2m1") if "e4m3" in own.formats else own.formats
    rows = {row.name: row for row in DOT_PROFILES.values()} | {profile: replace(own, formats=known)}
    with mock.patch.object(matmul_by_text, "DOT_PROFILES", rows):
        return in_pieces(a, b, profile)


IN_ALL = ("dot", *SCALED, *PRODUCTS)
# The families of each program that is right for a few chunks; no deviation is for it.
LONG = {
    "four_stages_rotate": (OF_NVIDIA, Program(IN_ALL, chunks=rotating_four_stages)),
    "eight_chunks_at_most": (OF_NVIDIA, Program(IN_ALL, chunks=keeping_eight_chunks)),
    "split_k": (OF_NVIDIA, Program(IN_ALL, chunks=splitting_k_of_eight_chunks)),
    "trees_of_32": (("f32_pairwise",), Program(("dot",), chunks=in_trees_of(32))),
    "trees_of_16": (("f32_pairwise",), Program(("dot",), chunks=in_trees_of(16))),
    "fma_in_halves": (("f32_fma",), Program(("dot",), chunks=splitting_fma)),
    "exact_in_parts": (("exact",), Program(("dot", *SCALED), chunks=rounding_each_64)),
    "promoted_each_512": (("promoted",), Program(IN_ALL, chunks=promoting_each_512)),
}


PROGRAMS = {
    "dot_subnormal_sums_flushed": Program(
        SUITES, flushing(to_zero, [-126]), fallback=flushing_operations(to_zero)
    ),
    "dot_f16_subnormal_sums_flushed": Program((*ALONE, *PRODUCTS), flushing(to_zero, [-14])),
    "dot_subnormal_sums_flushed_with_sign": Program(
        SUITES, flushing(to_signed_zero), fallback=flushing_operations(to_signed_zero)
    ),
    "dot_subnormal_c_flushed": Program(
        SUITES,
        lambda: {name: taking_c(function) for name, function in FAMILIES.items()},
        fallback=taking_c(by_ieee),
    ),
    "dot_subnormal_given_c_flushed": Program((*ALONE, *SCALED), chunks=flushing_the_given_c),
    "dot_chunks_reversed": Program(("dot", *SCALED, *PRODUCTS), chunks=from_the_last_chunk),
    "dot_promoted_tail_without_scales": Program(SCALED, chunks=leaving_the_last_sum_unscaled),
    "dot_promoted_sums_go_on": Program(("dot", *SCALED, *PRODUCTS), chunks=keeping_the_accumulator),
    "dot_blocks_scaled_by_fma": Program(
        (*SCALED, *PRODUCTS), chunks=scaling_blocks(scaled_exactly)
    ),
}
