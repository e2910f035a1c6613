"""Shared exponents with a mistake in the exponent of a block, or in the shifts of pairs."""

import numpy as np

from wrong.microscaling import in_blocks
from wrong.shared_right import (
    SHIFTS,
    Register,
    exponents,
    fields_of,
    finished,
    quantized,
    shifts,
    units,
)

KERNELS = Register()
shared = KERNELS.shared


@shared("log2_of_amax", "The exponent is floor(log2f(amax)), which rounds up below 2^k.")
def _log2_of_amax(x, kind, profile):
    size = np.abs(in_blocks(x, 16))
    finite = np.where(np.isfinite(size), size, 0).max(axis=2)
    e = np.floor(np.log2(finite, dtype=np.float32)).clip(-127, 127)
    top = np.where(finite == 0, 0, e + 127).astype(np.int64)
    if profile == "quark_onnx":
        top = np.where(np.isfinite(size).all(axis=2), top, 255)
    if kind == "bfp16_carry":
        top = np.where(top < 254, np.maximum(top, exponents(x, kind, profile)), top)
    return finished(x, top, kind, profile)


@shared("nan_is_largest", "NaN takes part in the maximum.", profiles=("quark_torch",))
def _nan_is_largest(x, kind, profile):
    e = fields_of(in_blocks(x, 16)).max(axis=2)
    return finished(x, np.where(e == 255, 255, exponents(x, kind, profile)), kind, profile)


@shared("infinity_is_254", "An infinity counts as the largest number.", profiles=("quark_torch",))
def _infinity_is_254(x, kind, profile):
    has_one = np.isinf(in_blocks(x, 16)).any(axis=2)
    return finished(x, np.where(has_one, 254, exponents(x, kind, profile)), kind, profile)


@shared("nan_blocks_of_nan_alone", "An infinity is no NaN.", profiles=("quark_onnx",))
def _nan_blocks_of_nan_alone(x, kind, profile):
    has_one = np.isnan(in_blocks(x, 16)).any(axis=2)
    top = np.where(has_one, 255, exponents(x, kind, "quark_torch"))
    return finished(x, top, kind, profile)


@shared("the_other_profile", "The profile is ignored: the other library's profile is taken.")
def _the_other_profile(x, kind, profile):
    return quantized(x, kind, {"quark_torch": "quark_onnx"}.get(profile, "quark_torch"))


@shared("first_eight", "A thread reads eight numbers of its block for the maximum.")
def _first_eight(x, kind, profile):
    e = fields_of(in_blocks(x, 16))[:, :, :8]
    top = np.where(e == 255, 0, e).max(axis=2)
    top = np.where((profile == "quark_onnx") & (e == 255).any(axis=2), 255, top)
    return finished(x, top, kind, profile)


@shared("blocks_of_eight", "Blocks of eight, as in Quark's bfp16 for torch.")
def _blocks_of_eight(x, kind, profile):
    halves = exponents(np.ascontiguousarray(in_blocks(x, 8).reshape(-1, 8)), kind, profile)
    halves = halves.reshape(len(x), -1)
    if halves.shape[1] % 2:
        halves = np.pad(halves, ((0, 0), (0, 1)))
    return finished(x, halves[:, ::2], kind, profile)


@shared("sign_in_the_field", "The field is word >> 23, and the sign goes with it.")
def _sign_in_the_field(x, kind, profile):
    e = (in_blocks(x, 16).view(np.uint32) >> 23).astype(np.int64) & 255
    negative = np.signbit(in_blocks(x, 16))
    e = np.where(negative, 0, e)
    top = np.where(e == 255, 0, e).max(axis=2)
    top = np.where((profile == "quark_onnx") & (e == 255).any(axis=2), 255, top)
    return finished(x, top, kind, profile)


@shared("carry_of_negative_ones", "A negative number carries, too.", kinds=("bfp16_carry",))
def _carry_of_negative_ones(x, kind, profile):
    return finished(x, exponents(np.abs(x), kind, profile), kind, profile)


@shared("no_carry", "bfp16_carry is limited, and never carries.", kinds=("bfp16_carry",))
def _no_carry(x, kind, profile):
    return finished(x, exponents(x, "bfp16", profile), kind, profile)


@shared("carries_into_infinity", "The last binade carries as others do.", kinds=("bfp16_carry",))
def _carries_into_infinity(x, kind, profile):
    top = exponents(x, "bfp16", profile)
    counts = np.rint(units(in_blocks(x, 16), top[:, :, None], 0, 7)).max(axis=2)
    return finished(x, top + ((counts >= 128) & (top < 255)), kind, profile)


@shared("carries_by_truncation", "A number carries if 128 is below it.", kinds=("bfp16_carry",))
def _carries_by_truncation(x, kind, profile):
    return finished(x, exponents(x, kind, profile, rounded=np.floor), kind, profile)


@shared("carries_everywhere", "Every kind takes the next exponent.", kinds=("mx9", "bfp16"))
def _carries_everywhere(x, kind, profile):
    return finished(x, exponents(x, "bfp16_carry", profile), kind, profile)


@shared("no_shifts", "The bits of pairs are always 0.", kinds=SHIFTS)
def _no_shifts(x, kind, profile):
    top = exponents(x, kind, profile)
    return finished(x, top, kind, profile, np.zeros_like(shifts(x, top, kind)))


@shared("shifts_inverted", "The bit says that a pair is not shifted.", kinds=SHIFTS)
def _shifts_inverted(x, kind, profile):
    top, tau, *rest = quantized(x, kind, profile)
    return top, 1 - tau, *rest


@shared("shifts_of_nan_blocks", "Pairs of NaN blocks are shifted.", kinds=SHIFTS,
        profiles=("quark_onnx",))  # fmt: skip
def _shifts_of_nan_blocks(x, kind, profile):
    top, tau, *rest = quantized(x, kind, profile)
    lost = np.repeat(top == 255, 8, axis=1)[:, : tau.shape[1]]
    return top, np.where(lost, 1, tau), *rest


@shared("shift_of_the_first", "The first number of a pair decides.", kinds=SHIFTS)
def _shift_of_the_first(x, kind, profile):
    top = exponents(x, kind, profile)
    return finished(x, top, kind, profile, shifts(np.repeat(x[:, ::2], 2, 1)[:, : x.shape[1]],
                                                  top, kind))  # fmt: skip


@shared("shift_of_the_smaller", "Both numbers have to be below the binade: all, not any.",
        kinds=SHIFTS)  # fmt: skip
def _shift_of_the_smaller(x, kind, profile):
    top = exponents(x, kind, profile)
    e = fields_of(in_blocks(x, 2))
    pair = np.where(e == 255, 0, e).min(axis=2)
    block = np.repeat(top, 8, axis=1)[:, : pair.shape[1]]
    return finished(x, top, kind, profile, np.where(block == 255, 0, np.minimum(block - pair, 1)))


@shared("shift_not_limited", "The shift is the whole distance.", kinds=SHIFTS)
def _shift_not_limited(x, kind, profile):
    top = exponents(x, kind, profile)
    e = fields_of(in_blocks(x, 2))
    pair = np.where(e == 255, 0, e).max(axis=2)
    block = np.repeat(top, 8, axis=1)[:, : pair.shape[1]]
    return finished(x, top, kind, profile, np.where(block == 255, 0, block - pair))


@shared("infinities_hold_their_pair", "A pair with an infinity is not shifted.", kinds=SHIFTS,
        profiles=("quark_torch",))  # fmt: skip
def _infinities_hold_their_pair(x, kind, profile):
    top = exponents(x, kind, profile)
    tau = shifts(x, top, kind)
    held = np.isinf(in_blocks(x, 2)).any(axis=2)
    return finished(x, top, kind, profile, np.where(held, 0, tau))


@shared("pairs_eight_apart", "Number k and number k + 8 are a pair, as in lanes.",
        kinds=SHIFTS)  # fmt: skip
def _pairs_eight_apart(x, kind, profile):
    top = exponents(x, kind, profile)
    e = fields_of(in_blocks(x, 16)).reshape(len(x), -1, 2, 8)
    pair = np.where(e == 255, 0, e).max(axis=2)
    tau = np.where(top == 255, 0, np.minimum(top - pair.transpose(2, 0, 1), 1)).transpose(1, 2, 0)
    return finished(x, top, kind, profile, tau.reshape(len(x), -1)[:, : -(-x.shape[1] // 2)])
