"""MoR with a mistake in the output, or in the numbers of NVFP4."""

import ml_dtypes
import numpy as np

from wrong.microscaling import FLT_MAX, Register, decoded, encoded, f32, magnitude_bits, to_bf16
from wrong.mor_right import (
    INFINITE,
    LADDERS,
    acceptance,
    back,
    extremes,
    fields,
    in_format,
    read,
    tiled,
    units_of,
    widened,
    written,
)

KERNELS = Register()
mor = KERNELS.mor


def _writing(output_of):
    """Return all fields, with an output that a function computes from choices, x and each y."""

    def mixed(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        found = fields(x, unit, ys)
        found |= written(bits_in, parameters, acceptance(parameters, found), ys)
        kept = bits_in if parameters["source"] == "bf16" else to_bf16(x)
        taken = [ys[rung] for rung in LADDERS[parameters["policy"]]]
        wide = back(found["choice"], unit, x.shape)
        found["output"] = output_of(bits_in, x, wide, taken, kept).astype(np.uint16)
        return found

    return mixed


def writes(name, mistake, output_of, **more):
    """Register a mistake in the output."""
    mor(name, mistake, **more)(_writing(output_of))


def choose(wide, outputs, kept):
    """Return, for each number, the output of its rung."""
    output = kept
    for k, taken in enumerate(outputs):
        output = np.where(wide == k, taken, output)
    return output


def cut(x):
    """Return the upper halves of binary32 numbers."""
    return (np.ascontiguousarray(x).view(np.uint32) >> 16).astype(np.uint16)


def half_up(x):
    """Round to bf16 by adding half and cutting."""
    return ((np.ascontiguousarray(x).view(np.uint32) + np.uint32(0x8000)) >> 16).astype(np.uint16)


writes(
    "writes_the_first_rung",
    "A unit that takes any rung holds the y of the first.",
    lambda _bits_in, _x, wide, ys, kept: np.where(wide < len(ys), to_bf16(ys[0]), kept),
    policies=("three_way", "nvfp4"),
)
writes(
    "writes_the_last_rung",
    "A unit that takes no rung holds the y of the last.",
    lambda _bits_in, _x, wide, ys, _kept: choose(
        wide, [to_bf16(y) for y in ys[:-1]], to_bf16(ys[-1])
    ),
)
writes(
    "y_through_f16",
    "y is rounded to f16 before bf16.",
    lambda _bits_in, _x, wide, ys, kept: choose(
        wide, [to_bf16(y.astype(np.float16).astype(np.float32)) for y in ys], kept
    ),
)
writes(
    "y_cut",
    "y is cut to bf16.",
    lambda _bits_in, _x, wide, ys, kept: choose(wide, [cut(y) for y in ys], kept),
)
writes(
    "y_half_up",
    "Ties of y go away from zero.",
    lambda _bits_in, _x, wide, ys, kept: choose(wide, [half_up(y) for y in ys], kept),
)
writes(
    "output_flushed",
    "A y that is subnormal is written as zero.",
    lambda _bits_in, _x, wide, ys, kept: choose(
        wide,
        [to_bf16(np.where(np.abs(y) < f32(2.0**-126), np.copysign(f32(0), y), y)) for y in ys],
        kept,
    ),
)
writes(
    "y_without_sign_of_zero",
    "A y of -0 is written as 0.",
    lambda _bits_in, _x, wide, ys, kept: choose(wide, [to_bf16(y + f32(0)) for y in ys], kept),
)
writes(
    "kept_ones_cast",
    "A unit that stays is cast to binary32 and back, with one NaN.",
    lambda _bits_in, x, wide, ys, _kept: choose(wide, [to_bf16(y) for y in ys], to_bf16(x)),
)
writes(
    "kept_ones_quiet",
    "A unit that stays has its NaN made quiet.",
    lambda _bits_in, x, wide, ys, kept: choose(
        wide, [to_bf16(y) for y in ys], np.where(np.isnan(x), kept | np.uint16(0x40), kept)
    ),
)
writes(
    "kept_ones_cut",
    "Binary32 numbers that stay are cut to bf16.",
    lambda _bits_in, x, wide, ys, kept: choose(
        wide, [to_bf16(y) for y in ys], np.where(np.isnan(x), kept, cut(x))
    ),
)
writes(
    "kept_ones_half_up",
    "Ties of binary32 numbers that stay go away from zero.",
    lambda _bits_in, x, wide, ys, kept: choose(
        wide, [to_bf16(y) for y in ys], np.where(np.isnan(x), kept, half_up(x))
    ),
)
writes(
    "kept_nan_rounded",
    "NaN of a unit that stays is rounded as a number is, and may become -0.",
    lambda _bits_in, x, wide, ys, _kept: choose(
        wide,
        [to_bf16(y) for y in ys],
        (magnitude_bits(x).astype(np.uint64) + 0x7FFF + (magnitude_bits(x) >> 16 & 1) >> 16)
        | np.signbit(x).astype(np.uint64) << np.uint64(15),
    ),
)
writes(
    "kept_nan_of_ml_dtypes",
    "NaN of a unit that stays has a sign, 0x7FC0 or 0xFFC0.",
    lambda _bits_in, x, wide, ys, kept: choose(
        wide,
        [to_bf16(y) for y in ys],
        np.where(np.isnan(x), x.astype(ml_dtypes.bfloat16).view(np.uint16), kept),
    ),
)
writes(
    "kept_ones_saturate",
    "Binary32 numbers that stay saturate at the largest of bf16, infinity included.",
    lambda _bits_in, _x, wide, ys, kept: choose(
        wide,
        [to_bf16(y) for y in ys],
        np.where((kept & 0x7FFF) == 0x7F80, (kept & np.uint16(0x8000)) | np.uint16(0x7F7F), kept),
    ),
)


@mor(
    "yardstick_in_its_own_units",
    "e5m2 has a scale of its own for the whole tensor.",
    ("two_way",),
)
def _yardstick_in_its_own_units(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    ys["e5m2"] = in_format(x, "e5m2", x.shape, parameters["scaling"])
    found = fields(x, unit, ys)
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


@mor("yardstick_of_e4m3_scales", "e5m2 has the scales of e4m3.", ("two_way", "three_way"))
def _yardstick_of_e4m3_scales(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    amax, _ = extremes(x, unit)
    wide = back(amax.view(np.float32), unit, x.shape)
    scale = np.where(wide == 0, f32(1), f32(448) / wide)
    ys["e5m2"] = decoded(encoded(x * scale, "e5m2"), "e5m2") / scale
    found = fields(x, unit, ys)
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


def _in_nvfp4(amax_of, tile_scale, tile_shape=(1, 16), finite=False):
    """Run policy nvfp4 with another way to scale tiles."""

    def mixed(bits_in, parameters):
        x = widened(bits_in, parameters["source"])
        unit = units_of(x, parameters)
        pattern = magnitude_bits(x)
        ceiling = INFINITE - 1 if finite else INFINITE
        known = np.where(pattern > ceiling, np.uint32(0), pattern)
        tiles = tiled(known, tile_shape, np.maximum).view(np.float32)
        amax = np.full(x.shape, amax_of(known, unit), np.uint32).view(np.float32)
        encode = np.minimum(f32(2688) / amax, FLT_MAX)
        encode = np.where((amax == 0) | (encode == 0), f32(1), encode)
        wide = back(tiles, tile_shape, x.shape)
        v = decoded(encoded(tile_scale(wide, encode), "e4m3"), "e4m3")
        decode = v * (f32(1) / encode)
        xs = x * np.minimum(f32(1) / decode, FLT_MAX)
        y = decoded(encoded(xs, "e2m1"), "e2m1") * decode
        ys = {"nvfp4": y, "e4m3": in_format(x, "e4m3", unit, parameters["scaling"])}
        found = fields(x, unit, ys)
        return found | written(bits_in, parameters, acceptance(parameters, found), ys)

    return mixed


def sixth(wide, encode):
    """Return the number that is encoded as the scale of a tile."""
    return wide * (encode * (f32(1) / f32(6)))


def of_tensor(known, _unit):
    """Return the amax of the tensor."""
    return known.max()


def fours(name, mistake, *how, unseen=None, **more):
    """Register a mistake in NVFP4, with the policy nvfp4."""
    mor(name, mistake, ("nvfp4",), unseen=unseen)(_in_nvfp4(*how, **more))


fours(
    "four_bits_of_units",
    "Each unit has a global scale of its own.",
    lambda known, unit: back(tiled(known, unit, np.maximum), unit, known.shape),
    sixth,
)
fours(
    "four_bits_of_rows",
    "Each row has a global scale of its own.",
    lambda known, _unit: known.max(axis=1, keepdims=True),
    sixth,
)
fours(
    "four_bits_of_finite_numbers",
    "Infinities are left out of the maxima of NVFP4.",
    of_tensor,
    sixth,
    finite=True,
)
fours(
    "four_bits_divided",
    "The scale of a tile is (bamax / 6) * S_enc.",
    of_tensor,
    lambda wide, encode: wide / f32(6) * encode,
)
fours(
    "four_bits_in_another_order",
    "The scale of a tile is (bamax * S_enc) * (1 / 6).",
    of_tensor,
    lambda wide, encode: wide * encode * (f32(1) / f32(6)),
)
fours(
    "four_bits_in_squares",
    "Tiles are of 16 rows too.",
    of_tensor,
    sixth,
    tile_shape=(16, 16),
)
fours(
    "four_bits_of_32",
    "Tiles are of 32 numbers, as in MX.",
    of_tensor,
    sixth,
    tile_shape=(1, 32),
)
