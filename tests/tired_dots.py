"""Whole programs of dot products with one mistake each: `dots_by_text` with another step."""

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from unittest import mock

import dots_by_text as by_text
import matmul_by_text
from dots_by_text import FAMILIES, add, by_ieee, chunks, multiply, t_fdpa

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
        yield by_text, "by_ieee", self.fallback


def flushed(x, low):
    """Return a number, or a zero of its sign if it is below 2^low."""
    return math.copysign(0.0, x) if abs(x) < 2.0**low else x


def low_of(row):
    """Return the exponent of the smallest normal number of the results of a row."""
    return -14 if row[3] == 10 else -126


# ---------------------------------------------------------------- sums and c


def flushing(of_sum, lows=(-14, -126)):
    """Return families of NVIDIA that change sums which are subnormal in some formats."""

    def chunk(products, c, row, **more):
        e, n, r = t_fdpa(products, c, row, **more)
        is_subnormal = low_of(row) in lows and abs(r) < 2.0 ** low_of(row)
        return e, n, of_sum(r) if is_subnormal else r

    return lambda: dict.fromkeys(OF_NVIDIA, chunk)


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


def scaling_by_fma(products, c, row, block):
    """Take a block without scales, then acc = fmaf(scale_a * scale_b, sum, acc)."""
    if row[0] not in ("st_fdpa", "gst_fdpa"):
        return chunks(products, c, row)
    e = n = 0
    for k in range(0, len(products), block):
        part = products[k : k + block]
        e, n, p = chunks(without_scales(part), 0.0, row)
        c = add(multiply(*part[0][0][2:]) * p, c)  # the product is exact in binary64
    return e, n, c


PROGRAMS = {
    "dot_subnormal_sums_flushed": Program(SUITES, flushing(to_zero, [-126])),
    "dot_f16_subnormal_sums_flushed": Program((*ALONE, *PRODUCTS), flushing(to_zero, [-14])),
    "dot_subnormal_sums_flushed_with_sign": Program(SUITES, flushing(to_signed_zero)),
    "dot_subnormal_c_flushed": Program(
        SUITES,
        lambda: {name: taking_c(function) for name, function in FAMILIES.items()},
        fallback=taking_c(by_ieee),
    ),
    "dot_subnormal_given_c_flushed": Program((*ALONE, *SCALED), chunks=flushing_the_given_c),
    "dot_chunks_reversed": Program(("dot", *SCALED, *PRODUCTS), chunks=from_the_last_chunk),
    "dot_promoted_tail_without_scales": Program(SCALED, chunks=leaving_the_last_sum_unscaled),
    "dot_promoted_sums_go_on": Program(("dot", *SCALED, *PRODUCTS), chunks=keeping_the_accumulator),
    "dot_blocks_scaled_by_fma": Program((*SCALED, *PRODUCTS), chunks=scaling_by_fma),
}
