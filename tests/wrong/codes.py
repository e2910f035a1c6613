"""Codes of MX, selections and packed bytes in NumPy: right ones, and copies with one mistake."""

import ml_dtypes
import numpy as np

from wrong.fp8lm_states import variants
from wrong.kernel import Kernel
from wrong.microscaling import FRACTION, bits, decoded, f32, widened

KERNELS: list[Kernel] = []
FIELDS = {"mx9": (8, True), "mx6": (5, True), "mx4": (3, True), "bfp16": (8, False),
          "bfp16_carry": (8, False)}  # fmt: skip
LEVELS = {"lsq4": 4, "lsq3": 3, "seq2": 2, "seq1.58": 0, "elastic1": 0}


# ---------------------------------------------------------------------- codes of MX


def values(codes, fmt):
    """Return the numbers of codes, with infinities of e5m2 and -2 of int8_mx."""
    if fmt == "int8_mx":
        return codes.view(np.int8).astype(np.float32) / f32(1 << FRACTION[fmt])
    return decoded(codes, fmt)


def restored(inputs, parameters, factor=None, nan=0xFF, special=None, lowest=None):
    """Return the numbers of codes times their scales."""
    codes, fmt = inputs["code"], parameters["format"]
    v = values(codes, fmt)
    if special is not None:
        v = np.where(np.isfinite(v), v, special(v))
    if lowest is not None and fmt == "int8_mx":
        v = np.where(codes == 0x80, f32(lowest), v)
    scale = inputs["scale"].astype(np.int64)[:, None]
    by = np.ldexp(f32(1), scale - 127) if factor is None else factor(scale)
    y = (v * by).astype(np.float32)
    return {"y": np.where((scale == nan) | np.isnan(y), np.uint32(0x7FFFFFFF), bits(y))}


def is_e5m2(parameters):
    return parameters["format"] == "e5m2"


def has_nan(parameters):
    return parameters["format"] in ("e4m3", "e5m2")


def is_int8(parameters):
    return parameters["format"] == "int8_mx"


variants(KERNELS, "mx_decode", restored, {
    "shifted": ("The scale is the bits c << 23.", {
        "factor": lambda c: (c.astype(np.uint32) << 23).view(np.float32)}),
    "inverse": ("The scale is 2^(127 - c).", {"factor": lambda c: np.ldexp(f32(1), 127 - c)}),
    "nan_is_a_scale": ("0xFF is the scale 2^128.", {
        "nan": -1, "factor": lambda c: np.ldexp(np.float64(1), c - 127)}),
    "normal_scales": ("The scale is at least 2^-126.", {
        "factor": lambda c: np.ldexp(f32(1), np.maximum(c - 127, -126))}),
    "infinities_are_nan": ("Infinities are NaN.", {"special": lambda v: v - v}, is_e5m2),
    "nan_is_zero": ("NaN is 0.", {"special": lambda v: np.where(np.isnan(v), f32(0), v)}, has_nan),
    "symmetric": ("0x80 is the next integer.", {"lowest": -127 / 64}, is_int8),
    "unsigned_zero": ("0x80 is 0.", {"lowest": 0}, is_int8),
})  # fmt: skip


# ---------------------------------------------------------------------- selections


def chosen(inputs, parameters, place=None, above=None, outlier=None, spread=None, magnitude=np.abs,
           limited=None, sorted_=slice(None)):  # fmt: skip
    """Return which numbers are selected."""
    x, limit = widened(inputs["x"], parameters["source"]), parameters["limit"]
    limit = limit if limited is None else limited(limit, parameters["source"])
    if parameters["by"] == "rank":
        ordered = np.sort(magnitude(x).reshape(-1)[sorted_])
        k = min(int(ordered.size * limit), ordered.size - 1) if place is None else place(x, limit)
        found = (above or (lambda m, t: ~(m <= t)))(magnitude(x), ordered[k])
    else:
        found = (outlier or (lambda m, t: m >= t))(magnitude(x), f32(limit))
        found = np.broadcast_to(found.any(axis=0), x.shape) if spread is None else spread(found)
    return {"selected": found.astype(np.uint8)}


def by_rank(parameters):
    return parameters["by"] == "rank"


def by_column(parameters):
    return parameters["by"] == "column"


def rounded_place(x, limit):
    return min(round(x.size * limit), x.size - 1)


def in_source(limit, source):
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}[source]
    return f32(limit).astype(dtype).astype(np.float32)


def by_a_mask(found):
    """Return which columns are selected, with a bit for each in a word of 64 bits."""
    columns = np.arange(found.shape[1]) % 64
    mask = np.bitwise_or.reduce(
        np.where(found.any(axis=0), np.uint64(1) << columns.astype(np.uint64), np.uint64(0))
    )
    return np.broadcast_to(mask >> columns.astype(np.uint64) & np.uint64(1), found.shape)


def by_rows(count):
    """Return a selection of columns by their first rows."""
    return lambda found: np.broadcast_to(found[:count].any(axis=0), found.shape)


variants(KERNELS, "select", chosen, {
    "signed": ("Signs count in the order.", {"magnitude": np.array}, by_rank),
    "from_one": ("Places count from 1.", {
        "place": lambda x, f: max(min(int(x.size * f), x.size) - 1, 0)}, by_rank),
    "place_before": ("The place is one less, also for all numbers.", {
        "place": lambda x, f: max(min(int(x.size * f), x.size - 1) - 1, 0)}, by_rank),
    "nearest_place": ("The place is rounded.", {"place": rounded_place}, by_rank),
    "threshold_too": ("The threshold is selected.", {"above": lambda m, t: ~(m < t)}, by_rank),
    "nan_stays": ("NaN is not selected.", {"above": lambda m, t: m > t}, by_rank),
    "positive": ("Negative numbers are no outliers.", {"magnitude": np.array}, by_column),
    "beyond": ("The limit is no outlier.", {"outlier": lambda m, t: m > t}, by_column),
    "nan": ("NaN is an outlier.", {"outlier": lambda m, t: ~(m < t)}, by_column),
    "elements": ("Outliers alone are selected.", {"spread": lambda f: f}, by_column),
    "limit_in_the_source": ("The limit is rounded to the dtype of x.",
                            {"limited": in_source}, by_column),
    "first_row": ("The first row decides.", {"spread": by_rows(1)}, by_column),
    "first_32_rows": ("The first 32 rows decide.", {"spread": by_rows(32)}, by_column),
    "first_64_rows": ("The first 64 rows decide.", {"spread": by_rows(64)}, by_column),
    "mask_of_64_columns": ("Columns are bits of one word of 64.", {"spread": by_a_mask}, by_column),
    "sorted_2048": ("The first 2,048 numbers are sorted.", {"sorted_": slice(2048)}, by_rank),
})  # fmt: skip


# ---------------------------------------------------------------------- packed bytes


def bytes_of(codes, width, *, big=False):
    """Return rows of codes as bytes, the first code in the lowest bits."""
    bit = codes.astype(np.uint8)[:, :, None] >> np.arange(width, dtype=np.uint8) & 1
    bit = bit[:, :, ::-1] if big else bit
    return np.packbits(bit.reshape(len(codes), -1), axis=1, bitorder="big" if big else "little")


def packed_blocks(inputs, parameters, shifts=None, codes=None, order=(0, 1, 2), scale=None):
    """Return the bytes of blocks of 16."""
    width, has_shifts = FIELDS[parameters["kind"]]
    code = np.pad(inputs["code"], ((0, 0), (0, 16 - inputs["code"].shape[1])))
    tau = np.pad(inputs["tau"], ((0, 0), (0, 8 - inputs["tau"].shape[1])))
    tail = bytes_of(code, width) if codes is None else codes(code, width)
    bit = (shifts or (lambda t: np.packbits(t, axis=1, bitorder="little")))(tau)
    head = inputs["shared_exponent"] if scale is None else scale(inputs["shared_exponent"])
    parts = [head[:, None], bit if has_shifts else bit[:, :0], tail]
    return {"packed": np.concatenate([parts[k] for k in order], axis=1).astype(np.uint8)}


def with_shifts(parameters):
    return FIELDS[parameters["kind"]][1]


variants(KERNELS, "shared_packed", packed_blocks, {
    "shifts_from_above": ("The first shift is the highest bit.", {
        "shifts": lambda t: np.packbits(t, axis=1)}, with_shifts),
    "from_above": ("The first code is highest.", {"codes": lambda c, w: bytes_of(c, w, big=True)}),
    "codes_first": ("Codes are the first bytes.", {"order": (2, 0, 1)}),
    "backwards": ("Codes lie backwards.", {"codes": lambda c, w: bytes_of(c[:, ::-1], w)}),
    "biased": ("The exponent is one more.", {"scale": lambda e: e + np.uint8(1)}),
})  # fmt: skip


def packed_rows(inputs, parameters, *, big=False, weights=None, count=5, plain=0):
    """Return the bytes of rows of levels."""
    bits_each = LEVELS[parameters["kind"]] or plain
    code = inputs["code"]
    if bits_each:
        return {"packed": bytes_of(code, bits_each, big=big)}
    groups = np.pad(code, ((0, 0), (0, -code.shape[1] % count))).reshape(len(code), -1, count)
    by = 3 ** np.arange(count) if weights is None else weights
    return {"packed": (groups * by).sum(axis=2).astype(np.uint8)}


def in_bits(parameters):
    return LEVELS[parameters["kind"]] > 0


def in_digits(parameters):
    return not LEVELS[parameters["kind"]]


variants(KERNELS, "levels_packed", packed_rows, {
    "from_above": ("The first code is in the highest bits.", {"big": True}, in_bits),
    "digits_from_above": ("The first digit is the highest.", {
        "weights": 3 ** np.arange(5)[::-1]}, in_digits),
    "two_bits": ("Digits have two bits each.", {"plain": 2}, in_digits),
    "quarter_bytes": ("Digits are to the base 4.", {
        "weights": 4 ** np.arange(5)}, in_digits),
})  # fmt: skip
