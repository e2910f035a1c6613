"""MoR in vectorized NumPy, without a mistake."""

from fractions import Fraction

import numpy as np

from wrong.microscaling import (
    FLT_MAX,
    LARGEST,
    Register,
    decoded,
    encoded,
    f32,
    magnitude_bits,
    power,
    to_bf16,
    widened,
)

KERNELS = Register()
mor = KERNELS.mor
ONE = np.uint32(0x3F800000)
INFINITE = 0x7F800000
LIMITS = {name: round(Fraction(t) * 2**23) for name, t in (("e4m3", "0.045"), ("nvfp4", "0.20"))}
SMALL = {"policies": "No unit of it is so large."}
RANGE = {"e5m2": 57344 * 2.0**14, "e4m3": 448 * 2.0**6, "bf16": (2 - 2.0**-7) * 2.0**253}
"""The largest number over the smallest normal one."""
LADDERS = {
    "tensor": ["e4m3"],
    "two_way": ["e4m3"],
    "three_way": ["e4m3", "e5m2"],
    "nvfp4": ["nvfp4", "e4m3"],
}


def sides(cut, shape):
    """Return the rows and columns of a block."""
    named = {"tensor": shape, "row": (1, shape[1]), "column": (shape[0], 1)}
    return named[cut] if isinstance(cut, str) else tuple(cut)


def tiled(a, cut, reduce=np.add, dtype=None):
    """Return the result of an operation for each block."""
    rows, columns = (np.arange(0, n, side) for n, side in zip(a.shape, cut, strict=True))
    down = reduce.reduceat(a, rows, axis=0, dtype=dtype)
    return reduce.reduceat(down, columns, axis=1, dtype=dtype)


def back(blocks, cut, shape):
    """Repeat the values of blocks for each of their numbers."""
    down = np.repeat(blocks, min(cut[0], shape[0]), axis=0)[: shape[0]]
    return np.repeat(down, min(cut[1], shape[1]), axis=1)[:, : shape[1]]


def extremes(x, cut):
    """Return amax and amin of blocks, as bits."""
    pattern = magnitude_bits(x)
    finite = np.where(pattern < INFINITE, pattern, np.uint32(0))
    least = np.where(finite > 0, finite, np.uint32(INFINITE))
    amin = tiled(least, cut, np.minimum)
    return tiled(finite, cut, np.maximum), np.where(amin == INFINITE, np.uint32(0), amin)


def ideal(amax, fmt):
    """Return the mantissas and exponents of largest / amax, rounded to 24 bits.

    binary64 rounds the quotient first, to more than twice as many bits, which changes nothing.
    """
    wide = np.where(amax == 0, 1.0, amax.view(np.float32).astype(np.float64))
    fraction, up = np.frexp(LARGEST[fmt] / wide)
    mantissa = np.rint(fraction * 2.0**24).astype(np.int64) - (1 << 23)
    return np.where(amax == 0, 0, mantissa), np.where(amax == 0, 0, up - 1)


def scales(amax, whole, fmt, scaling):
    """Return the scales of blocks in a group with the amax `whole`."""
    mantissa, exponent = ideal(amax, fmt)
    if scaling == "fp32":
        near = np.minimum(np.ldexp(1 + mantissa * 2.0**-23, exponent), float(FLT_MAX))
        return near.astype(np.float32)
    if scaling == "e8m0":
        return power(np.minimum(exponent, 127))
    shared, _ = ideal(np.asarray(whole), fmt)
    exponent = exponent - ((amax != 0) & (shared > mantissa))
    return np.ldexp(1 + shared * 2.0**-23, np.minimum(exponent, 127)).astype(np.float32)


def in_format(x, fmt, cut, scaling):
    """Return y in a format of 8 bits."""
    amax, _ = extremes(x, cut)
    scale = back(scales(amax, amax.max(), fmt, scaling), cut, x.shape)
    return decoded(encoded(x * scale, fmt), fmt) / scale


def in_nvfp4(x):
    """Return y in profile te with tiles of 16."""
    pattern = magnitude_bits(x)
    known = np.where(pattern > INFINITE, np.uint32(0), pattern)
    block_amax = tiled(known, (1, 16), np.maximum).view(np.float32)
    amax = known.max().view(np.float32)
    encode = np.minimum(f32(2688) / amax, FLT_MAX)
    encode = f32(1) if amax == 0 or encode == 0 else encode
    stored = encoded(block_amax * (encode * (f32(1) / f32(6))), "e4m3")
    decode = decoded(stored, "e4m3") * (f32(1) / encode)
    inverse = np.minimum(f32(1) / decode, FLT_MAX)
    xs = x * back(inverse, (1, 16), x.shape)
    return decoded(encoded(xs, "e2m1"), "e2m1") * back(decode, (1, 16), x.shape)


def representations(x, parameters):
    """Return y in each of the representations that a policy compares."""
    policy, cut = parameters["policy"], sides(parameters["block"], x.shape)
    names = {"tensor": ["e4m3"], "nvfp4": ["nvfp4", "e4m3"]}.get(policy, ["e4m3", "e5m2"])
    return {
        name: in_nvfp4(x) if name == "nvfp4" else in_format(x, name, cut, parameters["scaling"])
        for name in names
    }


def units_of(x, parameters):
    """Return the rows and columns of units."""
    return x.shape if parameters["policy"] == "tensor" else sides(parameters["block"], x.shape)


def errors(x, y):
    """Return u of each number, whether it counts, and whether it is lost."""
    pattern, restored = magnitude_bits(x), magnitude_bits(y)
    counts = (pattern > 0) & (pattern < INFINITE)
    ratio = np.minimum(np.abs(x - y) / np.abs(x), f32(1))
    ratio = np.where(restored >= INFINITE, f32(1), ratio)
    u = np.where(counts, (f32(1) + ratio).view(np.uint32) - ONE, np.uint32(0))
    return u, counts, (pattern >= INFINITE) | (restored >= 0x7F7F8000)


def summed(name, x, y, unit):
    """Return the three sums of units."""
    parts = zip(("sum", "nonzero", "nonfinite"), errors(x, y), strict=True)
    return {f"{name}.{what}": tiled(part, unit, dtype=np.uint64) for what, part in parts}


def acceptance(parameters, found):
    """Return which units each rung of a policy's ladder accepts, from the fields of a tensor."""
    policy, accepted = parameters["policy"], []
    for rung in LADDERS[policy]:
        total, counts = found[f"{rung}.sum"], found[f"{rung}.nonzero"]
        if policy in ("tensor", "nvfp4"):
            good = (total < np.uint64(LIMITS[rung]) * counts) | (counts == 0)
        elif rung == "e4m3":
            good = total <= found["e5m2.sum"]
        else:
            low, high = (found[n].view(np.float32).astype(np.float64) for n in ("amin", "amax"))
            good = (high <= low * RANGE["e5m2"]) | (counts == 0)
        accepted.append(good & (found[f"{rung}.nonfinite"] == 0))
    return accepted


def written(bits_in, parameters, accepted, ys):
    """Return the choice of each unit, and the output."""
    ladder = LADDERS[parameters["policy"]]
    choice = np.select(accepted, range(len(accepted)), len(accepted)).astype(np.uint8)
    x = widened(bits_in, parameters["source"])
    kept = bits_in if parameters["source"] == "bf16" else to_bf16(x)
    wide = back(choice, units_of(x, parameters), x.shape)
    outputs = [to_bf16(ys[rung]) for rung in ladder]
    return {
        "choice": choice,
        "output": np.select([wide == k for k in range(len(ladder))], outputs, kept),
    }


def read(bits_in, parameters):
    """Return the numbers of a tensor, the rows and columns of its units, and each y."""
    x = widened(bits_in, parameters["source"])
    return x, units_of(x, parameters), representations(x, parameters)


def fields(x, unit, ys):
    """Return the fields of units."""
    amax, amin = extremes(x, unit)
    found = {"amax": amax, "amin": amin}
    for name, y in ys.items():
        found |= summed(name, x, y, unit)
    return found


@mor("numpy")
def mixed(bits_in, parameters):
    """Return all fields of a tensor with a policy."""
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


@KERNELS.decide("numpy")
def decided(given, parameters):
    """Return whether a metric accepts."""
    total, counts = given["sum"], given["nonzero"]
    if parameters["metric"] == "mean_relative_error":
        good = (total < given["limit"].astype(np.uint64) * counts) | (counts == 0)
    elif parameters["metric"] == "not_worse_than":
        good = total <= given["yardstick_sum"]
    else:
        high, low = (given[n].view(np.float32).astype(np.float64) for n in ("amax", "amin"))
        good = (high <= low * RANGE[parameters["format"]]) | (counts == 0)
    return good & (given["nonfinite"] == 0)
