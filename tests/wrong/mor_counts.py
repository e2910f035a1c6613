"""MoR with a mistake in the counts and sums of a unit, and in its range."""

import numpy as np

from wrong.microscaling import Register, f32, magnitude_bits
from wrong.mor_means import MEANS, clean
from wrong.mor_right import (
    LADDERS,
    LIMITS,
    RANGE,
    SMALL,
    acceptance,
    errors,
    extremes,
    fields,
    read,
    tiled,
    written,
)

KERNELS = Register()
mor = KERNELS.mor


def counted(change):
    """Return all fields, with a change to sums before any metric reads them."""

    def mixed(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        found = fields(x, unit, ys)
        for name in ys:
            found |= change(name, x, ys[name], unit)
        return found | written(bits_in, parameters, acceptance(parameters, found), ys)

    return mixed


def of_width(what, dtype):
    """Return all fields, with a sum in the given number of bits."""

    def narrow(name, x, y, unit):
        u, counts, gone = errors(x, y)
        part = {"sum": u, "nonzero": counts, "nonfinite": gone}[what]
        return {f"{name}.{what}": tiled(part, unit, dtype=dtype).astype(np.uint64)}

    return counted(narrow)


mor("nonzero_of_8_bits", "nonzero is counted in a byte.")(of_width("nonzero", np.uint8))
mor(
    "nonfinite_of_8_bits",
    "nonfinite is counted in a byte.",
    unseen={"policies_large": "No unit of it has 256 numbers that are lost."},
)(of_width("nonfinite", np.uint8))
mor("nonfinite_is_a_flag", "nonfinite is 1 for any number of them.")(
    counted(lambda name, x, y, unit: {f"{name}.nonfinite": (~clean(x, y, unit)).astype(np.uint64)})
)
mor("sum_as_a_float", "The sum of u is an atomic float.")(of_width("sum", np.float32))


@mor(
    "nonzero_in_binary32",
    "nonzero is counted in a binary32 number, which ends at 2^24.",
    unseen=SMALL,
)
def _nonzero_in_binary32(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    for name in ys:
        found[f"{name}.nonzero"] = np.minimum(found[f"{name}.nonzero"], np.uint64(1 << 24))
    return found | written(bits_in, parameters, acceptance(parameters, found), ys)


@mor("limit_times_count_of_32_bits", "T * nonzero is a product of 32 bits.", MEANS)
def _limit_times_count_of_32_bits(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    accepted = []
    for rung in LADDERS[parameters["policy"]]:
        count = found[f"{rung}.nonzero"]
        good = found[f"{rung}.sum"] < (np.uint32(LIMITS[rung]) * count.astype(np.uint32))
        accepted.append((good | (count == 0)) & (found[f"{rung}.nonfinite"] == 0))
    return found | written(bits_in, parameters, accepted, ys)


@mor("sums_of_32_bits", "Error sums are compared in 32 bits.", ("two_way", "three_way"))
def _sums_of_32_bits(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    cut = {name: a & np.uint64(0xFFFFFFFF) for name, a in found.items() if name.endswith(".sum")}
    return found | written(bits_in, parameters, acceptance(parameters, found | cut), ys)


@mor("lost_ones_kept", "A unit with infinities or NaN is accepted as any other.")
def _lost_ones_kept(bits_in, parameters):
    x, unit, ys = read(bits_in, parameters)
    found = fields(x, unit, ys)
    none = {name: np.zeros_like(a) for name, a in found.items() if name.endswith("nonfinite")}
    return found | written(bits_in, parameters, acceptance(parameters, found | none), ys)


def ranged(change):
    """Return all fields, with other magnitudes and the decision that follows from them."""

    def mixed(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        amax, amin = extremes(x, unit)
        found = fields(x, unit, ys) | change(x, unit, amax, amin)
        return found | written(bits_in, parameters, acceptance(parameters, found), ys)

    return mixed


mor("amin_of_zeros", "amin is the smallest magnitude, zeros included.")(
    ranged(lambda x, unit, _amax, _amin: {"amin": tiled(magnitude_bits(x), unit, np.minimum)})
)
mor("amin_flushed", "amin leaves subnormal numbers out.")(
    ranged(
        lambda x, unit, _amax, _amin: {
            "amin": extremes(np.where(np.abs(x) < f32(2.0**-126), f32(0), x), unit)[1]
        }
    )
)
mor("amax_of_infinities", "amax counts infinities.")(
    ranged(
        lambda x, unit, _amax, _amin: {
            "amax": tiled(np.where(np.isnan(x), np.uint32(0), magnitude_bits(x)), unit, np.maximum)
        }
    )
)


def _fitting(fits):
    """Run three_way with another test of whether the range of a unit fits."""

    def mixed(bits_in, parameters):
        x, unit, ys = read(bits_in, parameters)
        found = fields(x, unit, ys)
        high, low = (found[n].view(np.float32) for n in ("amax", "amin"))
        good = fits(high, low) | (found["e5m2.nonzero"] == 0)
        first = acceptance(parameters, found)[0]
        second = good & (found["e5m2.nonfinite"] == 0)
        return found | written(bits_in, parameters, [first, second], ys)

    return mixed


def _range(name, mistake, fits):
    mor(name, mistake, ("three_way",))(_fitting(fits))


_range(
    "fits_the_tensor",
    "The range is taken from the tensor, and not from the unit.",
    lambda high, low: np.full(
        high.shape, high.max() <= np.where(low == 0, np.inf, low).min() * RANGE["e5m2"]
    ),
)
_range(
    "fits_in_binary32",
    "The quotient of amax and amin is taken in binary32.",
    lambda high, low: high / low <= f32(RANGE["e5m2"]),
)
_range(
    "fits_by_logarithms",
    "Logarithms in binary32 are subtracted.",
    lambda high, low: np.log2(high) - np.log2(low) <= np.log2(f32(RANGE["e5m2"])),
)
_range(
    "fits_by_wide_logarithms",
    "Logarithms in binary64 are subtracted.",
    lambda high, low: (
        np.log2(high.astype(float)) - np.log2(low.astype(float)) <= np.log2(RANGE["e5m2"])
    ),
)
_range(
    "fits_by_exponents",
    "Only the exponents are compared.",
    lambda high, low: np.frexp(high)[1] - np.frexp(low)[1] <= 29,
)
_range(
    "fits_with_subnormals",
    "The range reaches down to the subnormal numbers of e5m2.",
    lambda high, low: high.astype(float) <= low.astype(float) * 57344 * 2.0**16,
)
_range(
    "fits_strictly",
    "A unit that fits exactly does not fit.",
    lambda high, low: high.astype(float) < low.astype(float) * RANGE["e5m2"],
)
_range(
    "fits_by_flushed_products",
    "The smallest magnitude is flushed if it is subnormal.",
    lambda high, low: (
        high.astype(float) <= np.where(low < 2.0**-126, 0, low.astype(float)) * RANGE["e5m2"]
    ),
)
