"""Numbers at which implementations of FP8-LM differ: thresholds of scales, ties, and edges."""

import math

import numpy as np

from mor_ref.definitions.format import Format
from mor_ref.golden.inputs.edges import Bits, edges_of
from mor_ref.golden.model.suite import Size
from mor_ref.operations.bits import Unsigned, f32_bits
from mor_ref.operations.call import Parameters
from mor_ref.operations.random_numbers import Draws
from mor_ref.schemes.fp8lm.operation import random_cast, random_recast, random_scale, random_sum
from mor_ref.schemes.fp8lm.operation_adam import random_adam

_LOST = (0, 1, 0x00400000, 0x007FFFFF, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001)
_BEFORE = (0x3E800000, 0x3F800000, 0x43000000, 0, 0x7F800000, 0x7FC00000, 0x00000001)
_BINADES = (-126, -100, -70, -64, -40, -33, -32, -31, -17, -16, -9, -8, -7, -4, -2, -1, 0, 1, 2, 3,
            4, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 110)  # fmt: skip
# Codes of three ranks: two add up to a tie, and the smallest number decides.
_WIDE = {"f16": (0x6800, 0x3C00, 0x0001), "e5m2": (0x64, 0x58, 0x01)}
# Subnormal numbers of binary32, and scales that bring them into the range of each format.
_SUBNORMAL = (0x007FFFFF, 0x00700000, 0x00480000, 0x00400000, 0x00380000, 0x00080000, 0x00012345)
_BACK = (0x7E000000, 0x7E400000, 0x7E800000, 0x7F000000, 0x7F7FFFFF)
_STEPS = (-50, -46, -25, -12, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 12, 23, 25, 46, 50)


def scales(fmt: Format, parameters: Parameters, size: Size, count: int) -> dict[str, Bits]:
    """Return amaxes next to Q / 2^k, where rounded logarithms are integers, and previous scales."""
    pairs = []
    for k in _BINADES:
        if 2.0**-125 < math.ldexp(fmt.largest, -k) < 2.0**126:
            near = f32_bits(math.ldexp(fmt.largest, -k))
            pairs += [(near + step, 0x3F800000) for step in _STEPS]
    pairs += [(amax, before) for amax in _LOST for before in _BEFORE]
    own = np.array(pairs, np.uint32)
    drawn = random_scale(parameters, Draws(0, count * size.factor, size.seed))
    return {
        "amax": np.concatenate([own[:, 0], drawn["amax"].astype(np.uint32)]),
        "previous": np.concatenate([own[:, 1], drawn["previous"].astype(np.uint32)]),
    }


def casts(fmt: Format, parameters: Parameters, size: Size, count: int) -> dict[str, Bits]:
    """Return the edges of a format with the scale 1, and random numbers and scales."""
    edges = edges_of(fmt) if fmt.bits <= 8 else np.zeros(0, np.uint32)
    drawn = random_cast(parameters, Draws(0, count * size.factor, size.seed))
    ones = np.full(edges.size, 0x3F800000, np.uint32)
    return {
        "x": np.concatenate([edges, drawn["x"].astype(np.uint32)]),
        "scale": np.concatenate([ones, drawn["scale"].astype(np.uint32)]),
    }


def recasts(fmt: Format, parameters: Parameters, size: Size, count: int) -> dict[str, Bits]:
    """Return the edges of a format with the scales 1, and random numbers and scales."""
    edges = edges_of(fmt) if fmt.bits <= 8 else np.zeros(0, np.uint32)
    drawn = random_recast(parameters, Draws(0, count * size.factor, size.seed))
    ones = np.full(edges.size, 0x3F800000, np.uint32)
    own = {"x": edges, "scale": ones, "shared": ones}
    return {n: np.concatenate([one, drawn[n].astype(np.uint32)]) for n, one in own.items()}


def subnormal(*names: str) -> dict[str, Bits]:
    """Return subnormal numbers whose codes are not 0, with scales; y is subnormal, too.

    In the first rows all scales are alike, and in the last ones each is half of the one before.
    """
    pairs = [(x | n % 2 << 31, s) for s in _BACK for n, x in enumerate(_SUBNORMAL)]
    x, scale = np.tile(np.array(pairs, np.uint32), (len(names), 1)).T
    less = np.repeat(np.arange(len(names), dtype=np.uint32), len(pairs)) << np.uint32(23)
    scales = {name: scale - less * np.uint32(k) for k, name in enumerate(names)}
    return {"x": x.copy(), **{name: one.copy() for name, one in scales.items()}}


def sums(parameters: Parameters, size: Size, count: int, ranks: int, dtype: str) -> Unsigned:
    """Return rows with the code of each rank; with three ranks, one sum needs more than 24 bits."""
    draws = Draws(0, count * size.factor, size.seed, ranks)
    found = random_sum(parameters, draws)["code"].astype(dtype)
    if ranks == len(_WIDE["f16"]) and parameters["format"] in _WIDE:
        found[0] = _WIDE[parameters["format"]]
    return found


def sums_of_zeros(fmt: Format) -> Unsigned:
    """Return rows of three ranks whose sums, or first sums, are zeros of either sign."""
    one, dtype = fmt.largest_code // 2, "u1" if fmt.bits <= 8 else "u2"
    zero, minus, other = 0, fmt.sign_bit, one | fmt.sign_bit
    rows = [(minus, minus, minus), (minus, zero, minus), (zero, minus, minus), (zero, zero, zero),
            (one, other, minus), (minus, one, other), (other, one, zero), (minus, minus, one),
            (minus, minus, other)]  # fmt: skip
    return np.array(rows, dtype)


def products(fmt: Format) -> dict[str, Bits]:
    """Return x and scales whose product is next to a tie of the format, and rounds to the tie."""
    scales = (np.arange(1, 60, dtype=np.uint32) * np.uint32(0x23456) + np.uint32(0x3F800000)).view(
        np.float32
    )
    found = []
    step = max(1, fmt.largest_code // 120)
    for code in range(0, fmt.largest_code, step):
        tie = (fmt.value(code) + fmt.value(code + 1)) / 2
        x = (tie / scales.astype(np.float64)).astype(np.float32)
        exact = x.astype(np.float64) * scales
        # The tie becomes the even code; the exact product becomes the odd one.
        turns = (exact > tie if code % 2 == 0 else exact < tie) & (exact.astype(np.float32) == tie)
        found += [(x[k], scales[k]) for k in np.flatnonzero(turns)[:1]]
    pairs = np.array(found, np.float32)
    return {"x": pairs[:, 0].copy().view(np.uint32), "scale": pairs[:, 1].copy().view(np.uint32)}


def steps_of_adam(size: Size, count: int) -> dict[str, Unsigned]:
    """Return parameters with their states, gradients and numbers."""
    drawn = random_adam({}, Draws(0, count * size.factor, size.seed))
    dtypes = {"first": "u1", "second": "u2", "master": "u2"}
    return {name: array.astype(dtypes.get(name, "u4")) for name, array in drawn.items()}
