"""Shared exponents with a mistake in the numbers of a block."""

import numpy as np

from wrong.shared_right import (
    BITS,
    SHIFTS,
    Register,
    elements,
    exponents,
    fields_of,
    finished,
    quantized,
    shifts,
    units,
)

KERNELS = Register()
shared = KERNELS.shared
CARRY = ("bfp16_carry",)


def of_pairs(top, tau, columns):
    """Return, for each number, the exponent and the shift."""
    return np.repeat(top, 16, axis=1)[:, :columns], np.repeat(tau, 2, axis=1)[:, :columns]


def coded(kind, sign, magnitude):
    """Return codes from signs and magnitudes."""
    if kind in CARRY:
        return np.where(sign, -magnitude, magnitude) & 255
    return sign << BITS[kind] | magnitude


def rounded_by(name, mistake, rounded):
    """Register a kernel that rounds in another way."""

    @shared(name, mistake)
    def run(x, kind, profile):
        return finished(x, exponents(x, kind, profile, rounded), kind, profile, rounded=rounded)

    return run


rounded_by("half_away", "Ties go away from zero, as in an option of Quark.",
           lambda v: np.trunc(v + np.copysign(0.5, v)))  # fmt: skip
rounded_by("truncated", "The lower bits are cut.", np.trunc)
rounded_by("half_up_of_a_bit", "The bit below the last one is added: (m >> (s - 1)) + 1 >> 1.",
           lambda v: np.floor(np.floor(v * 2) / 2 + 0.5))  # fmt: skip
rounded_by(
    "half_down", "A tie is cut, and a number above a tie goes up.", lambda v: np.ceil(v - 0.5)
)
rounded_by("twice", "Numbers are rounded to bfloat16 first.", lambda v: np.rint(_bf16(v)))


def _bf16(v):
    import ml_dtypes

    return v.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)


@shared("subnormal_numbers_stay", "Numbers of field 0 are rounded as others are.")
def _subnormal_numbers_stay(x, kind, profile):
    top, tau, sign, magnitude, _code, y = quantized(x, kind, profile)
    e, t = of_pairs(top, tau, x.shape[1])
    m = BITS[kind]
    tiny = (fields_of(x) == 0) & (e != 255)
    plain = np.abs(x).astype(np.float64)
    own = np.minimum(np.rint(np.ldexp(plain, (127 - e + t - 1 + m).astype(np.int32))), 2**m - 1)
    magnitude = np.where(tiny, own.astype(np.int64), magnitude)
    size = np.ldexp(own, (e - 127 - t + 1 - m).astype(np.int32))
    y = np.where(tiny, np.where(sign == 1, -size, size), y)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), y


@shared("units_flushed", "2^(E - 127 - tau + 1 - m) is a float, and flushed below 2^-126.")
def _units_flushed(x, kind, profile):
    top, tau, sign, magnitude, code, y = quantized(x, kind, profile)
    e, t = of_pairs(top, tau, x.shape[1])
    flushed = (e - t + 1 - BITS[kind] < 1) & np.isfinite(x) & (e != 255)
    return top, tau, sign, magnitude, code, np.where(flushed, np.copysign(0, y), y)


@shared("not_limited", "A number that rounds to 2^m is stored as 2^m, and the code wraps.")
def _not_limited(x, kind, profile):
    top, tau, sign, magnitude, _code, y = quantized(x, kind, profile)
    e, t = of_pairs(top, tau, x.shape[1])
    m = BITS[kind]
    own = np.rint(np.abs(units(x, e, t, m)))
    over = (own == 1 << m) & (e != 255)
    magnitude = np.where(over, 1 << m, magnitude)
    y = np.where(over, np.copysign(np.ldexp(own, (e - 127 - t + 1 - m).astype(np.int32)), x), y)
    return top, tau, sign, magnitude, (coded(kind, sign, magnitude) & (2 << m) - 1), y


@shared("never_all_ones", "The largest magnitude is 2^m - 2.")
def _never_all_ones(x, kind, profile):
    top, tau, sign, magnitude, _code, y = quantized(x, kind, profile)
    e, t = of_pairs(top, tau, x.shape[1])
    m = BITS[kind]
    magnitude = np.minimum(magnitude, (1 << m) - 2)
    size = np.ldexp(magnitude.astype(np.float64), (e - 127 - t + 1 - m).astype(np.int32))
    y = np.where(np.isfinite(x) & (e != 255), np.where(sign == 1, -size, size), y)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), y


@shared("one_bit_less", "m counts the sign: magnitudes have m - 1 bits.")
def _one_bit_less(x, kind, profile):
    top, tau, sign, magnitude, _code, y = quantized(x, kind, profile)
    e, t = of_pairs(top, tau, x.shape[1])
    m = BITS[kind] - 1
    own = np.minimum(np.rint(np.abs(units(x, e, t, m))), 2**m - 1).astype(np.int64)
    finite = np.isfinite(x) & (e != 255)
    magnitude = np.where(finite, own, magnitude)
    size = np.ldexp(own.astype(np.float64), (e - 127 - t + 1 - m).astype(np.int32))
    y = np.where(finite, np.where(sign == 1, -size, size), y)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), y


@shared("y_without_the_shift", "y is made with the unit of the block.", kinds=SHIFTS)
def _y_without_the_shift(x, kind, profile):
    top, tau, sign, magnitude, code, y = quantized(x, kind, profile)
    _, t = of_pairs(top, tau, x.shape[1])
    return top, tau, sign, magnitude, code, np.where(np.isfinite(y), y * np.exp2(t), y)


@shared("rounded_without_the_shift", "Magnitudes are made with the unit of the block.",
        kinds=SHIFTS)  # fmt: skip
def _rounded_without_the_shift(x, kind, profile):
    top = exponents(x, kind, profile)
    tau = shifts(x, top, kind)
    return top, tau, *elements(x, top, np.zeros_like(tau), kind, profile)


@shared("zeros_keep_their_sign", "-0 and subnormal numbers keep their sign.",
        profiles=("quark_torch",))  # fmt: skip
def _zeros_keep_their_sign(x, kind, profile):
    top = exponents(x, kind, profile)
    tau = shifts(x, top, kind)
    return top, tau, *elements(x, top, tau, kind, "")


@shared("zeros_lose_their_sign", "x < 0 is the sign: -0 loses its sign, -1e-40 does not.",
        profiles=("quark_onnx",))  # fmt: skip
def _zeros_lose_their_sign(x, kind, profile):
    top, tau, sign, magnitude, _, y = quantized(x, kind, profile)
    sign = np.where(x == 0, 0, sign)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), np.where(x == 0, y + 0.0, y)


@shared(
    "rounded_to_zero_is_plus", "A number that rounds to 0 is +0, as in Quark's kernels for BFP."
)
def _rounded_to_zero_is_plus(x, kind, profile):
    top, tau, sign, magnitude, _, y = quantized(x, kind, profile)
    sign = np.where(magnitude == 0, 0, sign)
    y = np.where(magnitude == 0, np.where(np.isnan(y), y, 0), y)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), y


@shared("nan_keeps_its_sign", "The sign bit of a NaN is stored.", profiles=("quark_torch",))
def _nan_keeps_its_sign(x, kind, profile):
    top, tau, sign, magnitude, _, y = quantized(x, kind, profile)
    sign = np.where(np.isnan(x), np.signbit(x), sign)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), y


@shared("nan_is_the_largest", "NaN has the magnitude of an infinity.", profiles=("quark_torch",))
def _nan_is_the_largest(x, kind, profile):
    top, tau, sign, magnitude, _, y = quantized(x, kind, profile)
    magnitude = np.where(np.isnan(x), (1 << BITS[kind]) - 1, magnitude)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), y


@shared("nan_is_zero", "NaN becomes 0, as in a clamp with fmax.", profiles=("quark_torch",))
def _nan_is_zero(x, kind, profile):
    *fields, y = quantized(x, kind, profile)
    return *fields, np.where(np.isnan(x), 0, y)


@shared("infinity_saturates", "y of an infinity is the largest magnitude.",
        profiles=("quark_torch",))  # fmt: skip
def _infinity_saturates(x, kind, profile):
    top, tau, sign, magnitude, code, y = quantized(x, kind, profile)
    e, t = of_pairs(top, tau, x.shape[1])
    size = np.ldexp(magnitude.astype(np.float64), (e - 127 - t + 1 - BITS[kind]).astype(np.int32))
    return top, tau, sign, magnitude, code, np.where(np.isinf(x), np.copysign(size, x), y)


@shared("infinity_is_zero", "An infinity has the magnitude 0.", profiles=("quark_torch",))
def _infinity_is_zero(x, kind, profile):
    top, tau, sign, magnitude, _, y = quantized(x, kind, profile)
    magnitude = np.where(np.isinf(x), 0, magnitude)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), y


@shared("nan_blocks_keep_codes", "A NaN block keeps magnitudes of the last exponent.",
        profiles=("quark_onnx",))  # fmt: skip
def _nan_blocks_keep_codes(x, kind, profile):
    top, tau, sign, magnitude, _code, y = quantized(x, kind, profile)
    lost = np.repeat(top == 255, 16, axis=1)[:, : x.shape[1]] & np.isinf(x)
    magnitude = np.where(lost, (1 << BITS[kind]) - 1, magnitude)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), y


@shared("sign_in_the_lowest_bit", "The sign is below the magnitude.",
        kinds=(*SHIFTS, "bfp16"))  # fmt: skip
def _sign_in_the_lowest_bit(x, kind, profile):
    top, tau, sign, magnitude, _, y = quantized(x, kind, profile)
    return top, tau, sign, magnitude, magnitude << 1 | sign, y


@shared("code_with_a_sign", "The code of a kind with a carry is sign and magnitude.", kinds=CARRY)
def _code_with_a_sign(x, kind, profile):
    top, tau, sign, magnitude, _, y = quantized(x, kind, profile)
    return top, tau, sign, magnitude, sign << 7 | magnitude, y


@shared("complement_everywhere", "Each kind has codes in two's complement.",
        kinds=(*SHIFTS, "bfp16"))  # fmt: skip
def _complement_everywhere(x, kind, profile):
    top, tau, sign, magnitude, _, y = quantized(x, kind, profile)
    return (
        top,
        tau,
        sign,
        magnitude,
        np.where(sign, -magnitude, magnitude) & (2 << BITS[kind]) - 1,
        y,
    )


@shared("down_to_minus_127", "A negative number is limited to 127 units.", kinds=CARRY)
def _down_to_minus_127(x, kind, profile):
    top = exponents(x, kind, profile)
    tau = shifts(x, top, kind)
    sign, magnitude, _code, y = elements(x, top, tau, "bfp16", profile)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), y


@shared("minus_128_in_the_last_binade", "E = 254 allows -128 units, too.", kinds=CARRY)
def _minus_128_in_the_last_binade(x, kind, profile):
    top, tau, sign, magnitude, _, y = quantized(x, kind, profile)
    e, t = of_pairs(top, tau, x.shape[1])
    over = (e == 254) & (sign == 1) & np.isfinite(x) & (np.rint(-units(x, e, t, 7)) == 128)
    magnitude = np.where(over, 128, magnitude)
    return top, tau, sign, magnitude, coded(kind, sign, magnitude), np.where(over, -np.inf, y)
