"""Launches that reach only a part of a tensor, with a kernel for each set of parameters.

Libraries compile such kernels. Each kernel has the mistake alone; otherwise one could hide behind
another.
"""

import functools
import itertools
from dataclasses import replace

import numpy as np

from wrong import launches, mx_right, terms
from wrong.kernel import Kernel
from wrong.microscaling import LARGEST, Register, decoded, encoded, in_blocks, magnitude_bits
from wrong.mor_counts import of_width
from wrong.mor_launches import places, seeing
from wrong.mor_right import (
    LADDERS,
    acceptance,
    back,
    extremes,
    fields,
    read,
    scales,
    sides,
    written,
)
from wrong.mx_launches import up_to
from wrong.mx_right import scale_codes
from wrong.mx_scales import finished
from wrong.nvfp4_launches import called, cut, global_amax, quantized
from wrong.nvfp4_parts import ALL, SQUARE, TILES, largest, registrar
from wrong.nvfp4_right import transformer_engine
from wrong.porting import CASTS, Task, by, dispatch

KERNELS = Register()
ALL_OF_THEM = 1 << 30
CUTS = {
    "first_512_columns": ("512 threads have a column each, without a loop", ALL_OF_THEM, 512),
    "first_1024_rows": ("1,024 threads have a row each, without a loop", 1024, ALL_OF_THEM),
    "first_2048_columns": ("8 KiB of shared memory have 2,048 of a row", ALL_OF_THEM, 2048),
    "first_2048_rows": ("8 KiB of shared memory have 2,048 of a column", 2048, ALL_OF_THEM),
}
AMAXES = {
    "amax_of_1024_rows": ("1,024 threads take the amax of a row each", 1024, ALL_OF_THEM),
    "amax_of_2048_rows": ("2,048 threads take the amax of a row each", 2048, ALL_OF_THEM),
}
AMAX_OF_COLUMNS = "8 KiB of shared memory have 2,048 of a row", ALL_OF_THEM, 2048
INDEX = "an index of 16 bits ends the loop"
AMAXES_OF_16_BITS = {
    "amax_of_65536_rows": ("an index of 16 bits ends the loop over rows", 65536, ALL_OF_THEM),
    "amax_of_65536_columns": ("an index of 16 bits ends the loop over a row", ALL_OF_THEM, 65536),
}
# Policies and scalings for which `policies` has a row of 621 numbers.
OF_621_COLUMNS = tuple(itertools.product(("two_way", "three_way"), ("gam", "fp32")))
SMALLER, FEWER = "its tensors are smaller", "no unit of it is so large"
SCALINGS = ("gam", "fp32", "e8m0")
KINDS = tuple(itertools.product(LADDERS, SCALINGS))


# NVFP4, for each profile and tile


def nvfp4(name, mistake, tensor, profiles=ALL, tiles=TILES):
    """Register a function of (profile, x, tile)."""
    for profile, tile in itertools.product(profiles, tiles):
        if tile == (1, 16) or profile in SQUARE:
            (one,) = by("tile", [list(tile)], Kernel("", called(tensor, profile), mistake))
            of = f"{profile}.{tile[0]}x{tile[1]}"
            # Only tiles of sixteen rows, and rows with an amax each, have tensors of one row.
            is_long = name == "first_512_columns" and (tile[0] > 1 or profile == "te_row")
            unseen = {} if is_long else {f"nvfp4_{profile}": SMALLER}
            KERNELS.append(replace(one, name=f"nvfp4.{name}.{of}", unseen=unseen))


def cut_to(rows, columns):
    """Return a launch that writes only the first rows and columns."""
    return lambda profile, x, tile: cut(quantized(profile, x, tile), tile, rows, columns)


def first_of(x, rows, columns):
    """Return a tensor with zeros after the first rows and columns."""
    seen = np.zeros_like(x)
    seen[:rows, :columns] = x[:rows, :columns]
    return seen


def amax_of(rows, columns):
    """Return a launch that takes the amax of only the first rows and columns."""
    return lambda profile, x, tile: quantized(
        profile, x, tile, global_amax(profile, first_of(x, rows, columns))
    )


for name, (mistake, *sizes) in CUTS.items():
    nvfp4(name, mistake, cut_to(*sizes))
for name, (mistake, *sizes) in AMAXES.items():
    nvfp4(name, mistake, amax_of(*sizes))
nvfp4("amax_of_2048_columns", AMAX_OF_COLUMNS[0], amax_of(*AMAX_OF_COLUMNS[1:]))
for name, (mistake, *sizes) in AMAXES_OF_16_BITS.items():
    nvfp4(name, mistake, amax_of(*sizes), ("te",), ((1, 16),))


def first_numbers(x, count):
    """Return a tensor with zeros after the first `count` numbers."""
    return np.where(np.arange(x.size).reshape(x.shape) < count, x, np.float32(0))


def amax_of_numbers(profile, x, tile):
    """Take the amax in a loop whose index has 16 bits."""
    return quantized(profile, x, tile, global_amax(profile, first_numbers(x, 1 << 16)))


def written_numbers(profile, x, tile):
    """Write codes in a loop whose index has 16 bits."""
    fields = quantized(profile, x, tile)
    return fields | {"code": np.where(first_numbers(np.ones_like(x), 1 << 16), fields["code"], 0)}


nvfp4("amax_of_65536_numbers", INDEX, amax_of_numbers)
nvfp4("first_65536_numbers", INDEX, written_numbers)


def tile_amax(name, mistake, part):
    """Register tiles of 16 x 16 whose amax is taken from a part of the tile."""

    def program(profile, x, amax):
        return transformer_engine(profile, x, amax, largest(part(x), (1, 2)))

    program.__name__ = name
    registrar(KERNELS)(mistake, *SQUARE, square=True)(program)


def without(row, column):
    """Return a function that omits one element of each tile."""
    kept = np.ones((16, 16), bool)
    kept[row, column] = False
    return lambda x: np.where(kept, x, np.float32(0))


tile_amax("tile_amax_of_first_row", "an amax of the first row of a tile", lambda x: x[:, :1])
for place in ((15, 15), (0, 15), (15, 0), (7, 8)):
    tile_amax("tile_amax_without_{}_{}".format(*place), f"no {place} in an amax", without(*place))
for k, one in enumerate(KERNELS):
    profile = one.name.split(".")[2] if "without_15_15" in one.name else ""
    if profile.startswith("te_4over6_mse"):
        why = "without that number, the other candidate has the same scale"
        KERNELS[k] = replace(one, unseen={**one.unseen, f"nvfp4_{profile}": why})


# MX, for each format and rule


def mx(name, mistake, function, operation="mx"):
    """Register a function of (x, format, rule, k) that quantizes tensors, or blocks."""
    for fmt, rule in itertools.product(LARGEST, ("floor", "ceil", "even", "rceil")):
        one = KERNELS.mx(
            f"{name}.{fmt}.{rule}",
            mistake,
            (rule,),
            (fmt,),
            operations=(operation,),
            unseen={"mx": SMALLER} if operation == "mx" else {},
        )
        one(function)


def amax_without(part):
    """Return a function whose amaxes omit a part of each block."""

    def quantize(x, fmt, rule, k):
        held = magnitude_bits(in_blocks(x, k))
        held[:, :, part] = 0
        return finished(x, scale_codes(held.max(axis=2), fmt, rule), fmt, k)

    return quantize


def codes_of_numbers(x, fmt, rule, k):
    """Write codes in a loop whose index has 16 bits."""
    scale, xs, code, y = mx_right.quantized(x, fmt, rule, k)
    return scale, xs, np.where(first_numbers(np.ones_like(x), 1 << 16), code, 0), y


for name, (mistake, rows, columns) in CUTS.items():
    mx(name, mistake, functools.partial(up_to, rows=rows, columns=columns))
TWO_EACH = "a warp of 32 lanes takes two numbers each"
mx("amax_of_64", TWO_EACH, amax_without(slice(64, None)))
mx("amax_of_1024", "1,024 threads take one number each", amax_without(slice(1024, None)))
for count, mistake in ((32, "a warp of 32 lanes takes one number each"), (64, TWO_EACH)):
    mx(f"block_amax_of_{count}", mistake, amax_without(slice(count, None)), "mx_block")
    mx(
        f"block_of_{count}",
        mistake,
        functools.partial(up_to, rows=ALL_OF_THEM, columns=count),
        "mx_block",
    )
mx("first_65536_numbers", INDEX, codes_of_numbers)
for lane in (19, 25, 28, 31):
    KERNELS.mx(f"no_lane_{lane}", f"lane {lane} is not in an amax")(
        amax_without(slice(lane, None, 32))
    )


# MoR, for each policy and scaling


def mor(kernels, name, mistake, function, shown=(), kinds=KINDS):
    """Register a function of (bit patterns, parameters); `policies` exposes kinds in `shown`."""
    for policy, scaling in kinds:
        reasons = {} if (policy, scaling) in shown else {"policies": FEWER}
        one = Register()
        one.mor(name, mistake, (policy,), reasons)(function)
        (one,) = by("scaling", (scaling,), one[0])
        kernels.append(replace(one, name=f"mor.{name}.{policy}.{scaling}"))


def seeing_first(rows, columns):
    """Return a launch that sees only the first rows and columns of a unit."""

    def part(x, unit):
        down, across = places(x, unit)
        return (down < rows) & (across < columns)

    return seeing(part)


def extremes_of(first, *sizes):
    """Return a function that takes scales, and amaxes of units, from the first numbers."""

    def mix(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        block, seen = sides(parameters["block"], x.shape), first(x, *sizes)
        amax, _ = extremes(seen, block)
        for fmt in ys.keys() - {"nvfp4"}:
            scale = back(scales(amax, amax.max(), fmt, parameters["scaling"]), block, x.shape)
            ys[fmt] = decoded(encoded(x * scale, fmt), fmt) / scale
        found = fields(x, unit, ys) | {"amax": extremes(seen, unit)[0]}
        return found | written(bits_in, parameters, acceptance(parameters, found), ys)

    return mix


for name, (mistake, *sizes) in CUTS.items():
    mor(KERNELS, name, mistake, seeing_first(*sizes), OF_621_COLUMNS if 512 in sizes else ())
for name, (mistake, *sizes) in AMAXES.items():
    mor(KERNELS, name, mistake, extremes_of(first_of, *sizes))
for (name, (mistake, *sizes)), kind in zip(
    AMAXES_OF_16_BITS.items(), (("three_way", "e8m0"), ("tensor", "fp32")), strict=True
):
    mor(KERNELS, name, mistake, extremes_of(first_of, *sizes), kinds=(kind,))
mor(KERNELS, "amax_of_65536_numbers", INDEX, extremes_of(first_numbers, 1 << 16))
mor(KERNELS, "nonzero_of_16_bits", "nonzero is counted in 16 bits", of_width("nonzero", np.uint16))
beyond = [*((policy, "gam") for policy in LADDERS), *OF_621_COLUMNS]
mor(
    KERNELS, "sum_of_32_bits", "the sum of u is kept in 32 bits", of_width("sum", np.uint32), beyond
)


# Quantizing, for each format and scaling


def quantize(name, mistake, run, why=SMALLER, shown=()):
    """Register a kernel of tensors; small tensors expose it for formats and scalings in `shown`."""
    for fmt, scaling in itertools.product(CASTS, SCALINGS):
        unseen = {} if (fmt, scaling) in shown else {"quantize": why}
        (one,) = by("format", (fmt,), Kernel(name, run, mistake, unseen))
        KERNELS.extend(by("scaling", (scaling,), one))


def writing(rows, columns):
    """Return the entry of a launch that writes, and sums, only the first rows and columns."""

    def written(task):
        inside = np.zeros(task.x.shape, bool)
        inside[:rows, :columns] = True
        return replace(task, x=np.where(inside, task.x, np.float32(0)))

    return of_tensors(launches.launch(Task.amax, written))


def of_tensors(run):
    """Restrict a kernel to tensors: it has no answer for blocks."""
    return dispatch(quantize=lambda *asked: run("quantize", *asked))


for name, (mistake, *sizes) in CUTS.items():
    quantize(name, mistake, writing(*sizes))
for amax in (launches.launch_of_512, launches.rows_of_1024):
    quantize(amax.__name__, amax.__doc__, of_tensors(launches.launch(amax)))
# Small tensors with an outlier, for which all other numbers become 0: each u is 2^23.
lost = set(itertools.product(("e4m3", "e5m2", "e2m1"), ("gam", "e8m0")))
for sums, why, shown in (
    (terms.low_words, "its sums are below 2^32", lost),
    (terms.narrow_counts, FEWER, ()),
):
    quantize(sums.__name__, sums.__doc__, of_tensors(dispatch(**terms.summed(sums))), why, shown)
