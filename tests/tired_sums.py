"""Whole programs of dot products with one mistake each in how they scale, promote and add up."""

import math
from functools import partial, reduce
from unittest import mock

import dots_by_text as by_text
from dots_by_text import FAMILIES, add, chunks, exact, multiply, rounded, t_fdpa, tr_fdpa
from tired_dots import (
    ALONE,
    OF_NVIDIA,
    PERIOD,
    PRODUCTS,
    SCALED,
    SUITES,
    Program,
    instruction_of,
    scaling_blocks,
    without_scales,
)

IN_DOT = ("dot",)

# ---------------------------------------------------------------- promoted sums


def starting_from_c(products, c, row, _):
    """Load c into the accumulator of the instruction, and start the other one from 0."""
    if row[0] != "promoted":
        return chunks(products, c, row)
    p, total = c, 0.0
    for k in range(0, len(products), PERIOD):
        part = products[k : k + PERIOD]
        p = chunks(without_scales(part), p, instruction_of(row))[2]
        total, p = add(multiply(*part[0][0][2:]) * p, total), 0.0
    return 0, 0, total if products else c


def scaling_the_end(products, c, row, _):
    """Promote without scales, and multiply the result by the scales of the tensors."""
    found = chunks(without_scales(products), c, row)
    if row[0] != "promoted" or not products:
        return chunks(products, c, row)
    return 0, 0, multiply(multiply(*products[0][0][2:]), found[2])


def scaling_before_c(products, c, row, _):
    """Promote without scales from 0 on; then c = fmaf(scale_a * scale_b, sum, c)."""
    if row[0] != "promoted" or not products:
        return chunks(products, c, row)
    p = chunks(without_scales(products), 0.0, row)[2]
    return 0, 0, add(multiply(*products[0][0][2:]) * p, c)


# ---------------------------------------------------------------- scales of blocks


def with_the_scales_of_the_first(products, c, row, **more):
    """Read the scales of a chunk once, for its first group."""
    (_, _, *scales), (_, _, *exponents) = products[0]
    alike = [((*v[:2], *scales), (*e[:2], *exponents)) for v, e in products]
    return t_fdpa(alike, c, row, **more)


# ---------------------------------------------------------------- order of sums in binary32


def with_accumulators(count, join):
    """Return a loop of fmaf with several accumulators."""

    def run(products, c, row, _):
        if row[0] != "f32_fma":
            return chunks(products, c, row)
        sums = [c, *[0.0] * (count - 1)]
        for k, (v, _) in enumerate(products):
            sums[k % count] = add(v[0] * v[1], sums[k % count])
        return 0, 0, join(sums)

    return run


def horizontally(sums):
    """Add the upper half of a register to its lower half until one number is left."""
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [add(sums[k], sums[k + half]) for k in range(half)]
    return sums[0]


def striding(products, c, row, _):
    """Add number k + ceil(n / 2) to number k, as a block of threads that reduces n numbers."""
    if row[0] != "f32_pairwise" or not products:
        return chunks(products, c, row)
    sums = [multiply(v[0], v[1]) for v, _ in products]
    while len(sums) > 1:
        half = -(-len(sums) // 2)
        for k in range(len(sums) - half):
            sums[k] = add(sums[k], sums[k + half])
        sums = sums[:half]
    return 0, 0, add(c, sums[0])


# ---------------------------------------------------------------- cuts and roundings


class Away:
    """The functions of `math`, with trunc as rounding to nearest, ties away from zero."""

    def __getattr__(self, name):
        return getattr(math, name)

    @staticmethod
    def trunc(x):
        return int(math.copysign(1, x)) * math.floor(abs(x) + type(x)(1) / 2)


def rounding_away(function):
    """Return a family whose terms are rounded; results are cut as before."""

    def chunk(*arguments, **more):
        cut = partial(rounded, to_integer=math.trunc)
        with mock.patch.multiple(by_text, math=Away(), rounded=_cutting(cut)):
            return function(*arguments, **more)

    return chunk


def _cutting(cut):
    return lambda *a, to_integer=None, **more: cut(*a) if to_integer else rounded(*a, **more)


def cutting_results(products, c, row):
    """Round the sum of a chunk of CDNA 1 toward zero."""
    if row[0] != "e_fdpa":
        return exact(products, c, row)
    with mock.patch.object(by_text, "rounded", partial(rounded, to_integer=math.trunc)):
        return exact(products, c, row)


def in_halves(products, c, row):
    """Add the first half of eight bytes apart from the second one."""
    if row[0] != "gtr_fdpa":
        return tr_fdpa(products, c, row)
    half = len(products) // 2
    in_turn = [one for pair in zip(products[:half], products[half:], strict=True) for one in pair]
    return tr_fdpa(in_turn, c, row)


SUMS = {
    "dot_promoted_from_c_on": Program(("dot", *SCALED), chunks=starting_from_c),
    "dot_promoted_scaled_at_the_end": Program(SCALED, chunks=scaling_the_end),
    "dot_promoted_scaled_before_c": Program(SCALED, chunks=scaling_before_c),
    "dot_blocks_scaled_unfused": Program(
        (*SCALED, *PRODUCTS), chunks=scaling_blocks(lambda p, x, y: multiply(multiply(x, y), p))
    ),
    "dot_blocks_scaled_one_after_the_other": Program(
        (*SCALED, *PRODUCTS), chunks=scaling_blocks(lambda p, x, y: multiply(multiply(p, x), y))
    ),
    "dot_first_scales_of_a_chunk": Program(
        (*SCALED, *PRODUCTS), lambda: {"gst_fdpa": with_the_scales_of_the_first}
    ),
    **{
        f"dot_in_{n}_accumulators": Program(
            IN_DOT, chunks=with_accumulators(n, partial(reduce, add))
        )
        for n in (2, 4, 8)
    },
    **{
        f"dot_in_{n}_lanes": Program(IN_DOT, chunks=with_accumulators(n, horizontally))
        for n in (4, 8, 16)
    },
    "dot_pairs_of_a_half_and_the_rest": Program(IN_DOT, chunks=striding),
    "dot_terms_rounded_away": Program(
        SUITES,
        lambda: {
            name: rounding_away(FAMILIES[name]) for name in (*OF_NVIDIA, "tr_fdpa", "gtr_fdpa")
        },
    ),
    "dot_cdna1_results_cut": Program((*IN_DOT, *PRODUCTS), lambda: {"e_fdpa": cutting_results}),
    "dot_cdna3_adds_fp8_in_halves": Program(ALONE, lambda: {"gtr_fdpa": in_halves}),
}
