"""MoR with a mistake in the numbers that each block, thread or unit has."""

import numpy as np

from wrong.microscaling import Register, decoded, encoded, magnitude_bits, to_bf16, widened
from wrong.mor_right import (
    INFINITE,
    LADDERS,
    SMALL,
    acceptance,
    back,
    errors,
    extremes,
    fields,
    in_format,
    in_nvfp4,
    mixed,
    read,
    representations,
    scales,
    sides,
    tiled,
    units_of,
    written,
)

KERNELS = Register()
mor = KERNELS.mor
GAM = ("two_way", "three_way")


def seeing(part_of):
    """Return all fields, with sums and magnitudes of only the numbers that a launch reaches."""

    def run(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        seen = part_of(x, unit)
        zero = np.where(seen, x, np.float32(0))
        found = dict(zip(("amax", "amin"), extremes(zero, unit), strict=True))
        for name, y in ys.items():
            for what, a in zip(("sum", "nonzero", "nonfinite"), errors(x, y), strict=True):
                found[f"{name}.{what}"] = tiled(a * seen, unit, dtype=np.uint64)
        return found | written(bits_in, parameters, acceptance(parameters, found), ys)

    return run


def places(x, unit):
    """Return the row and the column of each number within its unit."""
    return np.arange(x.shape[0])[:, None] % unit[0], np.arange(x.shape[1]) % unit[1]


def reaches(name, mistake, part_of, **more):
    """Register a launch that sees a part of each unit."""
    mor(name, mistake, **more)(seeing(part_of))


def _index(x, unit):
    """Return the index of each number within its unit."""
    rows, columns = places(x, unit)
    last = x.shape[1] // unit[1] * unit[1]
    width = np.where(np.arange(x.shape[1]) >= last, x.shape[1] - last, unit[1])
    return rows * np.maximum(width, 1) + columns


reaches(
    "first_1024_columns",
    "A thread has a column, of 1,024.",
    lambda x, unit: np.broadcast_to(places(x, unit)[1] < 1024, x.shape),
    unseen=SMALL,
)
reaches(
    "first_65535_rows",
    "The rows are a grid's second axis.",
    lambda x, unit: np.broadcast_to(places(x, unit)[0] < 65535, x.shape),
    unseen=SMALL,
)
reaches(
    "a_thread_an_element",
    "A unit has 1,024 threads, and each looks at one number.",
    lambda x, unit: _index(x, unit) < 1024,
)
reaches(
    "two_bytes_of_index",
    "A unit is walked with an index of 16 bits.",
    lambda x, unit: _index(x, unit) < 1 << 16,
    unseen=SMALL,
)
reaches(
    "a_warp_a_unit",
    "A unit has the 32 lanes of a warp, and each looks at one column.",
    lambda x, unit: np.broadcast_to(places(x, unit)[1] < 32, x.shape),
)
reaches(
    "whole_strides",
    "A loop in strides of 256 numbers leaves the last of them out.",
    lambda x, unit: _index(x, unit) < max(256, x.size // 256 * 256),
    policies=("tensor",),
)
reaches(
    "tiles_of_128",
    "A thread block has 128 x 128 numbers, and other numbers of a unit are not seen.",
    lambda x, unit: (places(x, unit)[0] < 128) & (places(x, unit)[1] < 128),
)


@mor("units_turned", "The fields of units are written column by column.", GAM)
def _units_turned(bits_in, parameters):
    found = dict(mixed(bits_in, parameters))
    return {n: a if n == "output" else a.T.reshape(a.shape) for n, a in found.items()}


@mor("units_as_large_as_others", "nonzero is the size of a unit without its zeros, edges or not.")
def _units_as_large_as_others(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    for name in ys:
        size = min(unit[0], x.shape[0]) * min(unit[1], x.shape[1])
        zeros = tiled(
            (magnitude_bits(x) == 0) | (magnitude_bits(x) >= INFINITE), unit, dtype=np.uint64
        )
        found[f"{name}.nonzero"] = np.uint64(size) - zeros
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


@mor("groups_of_units", "Each unit is a group of its own.", GAM)
def _groups_of_units(bits_in, parameters):
    x = widened(bits_in, parameters["source"])
    unit = units_of(x, parameters)
    amax, _ = extremes(x, unit)
    ys = {}
    for fmt in ("e4m3", "e5m2"):
        own = scales(
            amax,
            amax.max(),
            fmt,
            "fp32" if parameters["scaling"] == "gam" else parameters["scaling"],
        )
        wide = back(own, unit, x.shape)
        ys[fmt] = decoded(encoded(x * wide, fmt), fmt) / wide
    found = fields(x, unit, ys)
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


@mor("one_block_alone", "The tensor is one scaling block, whatever the block is.", ("tensor",))
def _one_block_alone(bits_in, parameters):
    return mixed(bits_in, {**parameters, "block": "tensor"})


@mor("always_128", "Blocks are of 128 x 128, whatever is asked for.", GAM)
def _always_128(bits_in, parameters):
    x = widened(bits_in, parameters["source"])
    unit = units_of(x, parameters)
    ys = representations(x, {**parameters, "block": [128, 128]})
    found = fields(x, unit, ys)
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


@mor("always_gam", "Scales are gam, whatever is asked for.")
def _always_gam(bits_in, parameters):
    return mixed(bits_in, {**parameters, "scaling": "gam"})


@mor("tiles_of_units", "Tiles of NVFP4 begin where a unit begins.", ("nvfp4",))
def _tiles_of_units(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    amax = np.where(np.isnan(x), np.float32(0), np.abs(x)).max()
    y = np.zeros_like(x)
    for first in range(0, x.shape[1], unit[1]):
        strip = x[:, first : first + unit[1]]
        led = np.concatenate(
            [strip, np.full((len(x), -strip.shape[1] % 16), 0, np.float32)], axis=1
        )
        top = np.zeros((1, led.shape[1]), np.float32)
        top[0, 0] = amax
        y[:, first : first + unit[1]] = in_nvfp4(np.vstack([led, top]))[:-1, : strip.shape[1]]
    ys["nvfp4"] = y
    found = fields(x, unit, ys)
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


@mor(
    "tiles_across_rows",
    "Tiles of NVFP4 are of 16 numbers in memory, across the ends of rows.",
    ("nvfp4",),
)
def _tiles_across_rows(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    ys["nvfp4"] = in_nvfp4(x.reshape(1, -1)).reshape(x.shape)
    found = fields(x, unit, ys)
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


@mor("one_decision", "All units take the rung of the first.")
def _one_decision(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    accepted = [np.full_like(a, a[0, 0]) for a in acceptance(parameters, found)]
    return found | written(bits_in, parameters, accepted, ys)


@mor("first_rung_always", "Every unit takes the first rung.")
def _first_rung_always(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    first = ys[LADDERS[parameters["policy"]][0]]
    choice = np.zeros_like(found["amax"], np.uint8)
    return found | {"choice": choice, "output": to_bf16(first)}


@mor(
    "mean_of_rows",
    "A mean of rows' means is asked for, and not the mean of the unit.",
    ("tensor",),
)
def _mean_of_rows(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    rows = fields(x, sides("row", x.shape), ys)
    means = rows["e4m3.sum"] / np.maximum(rows["e4m3.nonzero"], np.uint64(1))
    good = (means.mean() < 0.045 * 2**23) & (found["e4m3.nonfinite"] == 0)
    return found | written(bits_in, parameters, [good], ys)


@mor(
    "half_of_the_blocks",
    "Two blocks share a thread block, and the last of an odd number has no scale.",
    GAM,
)
def _half_of_the_blocks(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    amax, _ = extremes(x, unit)
    reached = amax.size - amax.size % 2 if amax.size > 1 else 1
    live = back((np.arange(amax.size) < reached).reshape(amax.shape), unit, x.shape)
    for fmt in ys:
        plain = decoded(encoded(x, fmt), fmt)
        ys[fmt] = np.where(live, in_format(x, fmt, unit, parameters["scaling"]), plain)
    found = fields(x, unit, ys)
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


@mor("choice_turned", "Outputs are written by the choice of the unit with row and column swapped.")
def _choice_turned(bits_in, parameters):
    """Exchange rows and columns of units in a square grid; other grids are right."""
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    accepted = acceptance(parameters, found)
    is_turned = accepted[0].shape[0] == accepted[0].shape[1]
    turned = [one.T if is_turned else one for one in accepted]
    output = written(bits_in, parameters, turned, ys)["output"]
    return found | written(bits_in, parameters, accepted, ys) | {"output": output}


@mor(
    "lost_x_alone",
    "Units are refused for numbers that are not finite, not for those that become so.",
)
def _lost_x_alone(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    of_x = fields(x, unit, dict.fromkeys(ys, np.where(np.isfinite(x), x, np.float32(np.nan))))
    lost = {name: array for name, array in of_x.items() if name.endswith("nonfinite")}
    return found | written(bits_in, parameters, acceptance(parameters, found | lost), ys)
