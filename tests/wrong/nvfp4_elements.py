"""NVFP4 with other conversions of elements to e2m1."""

import ml_dtypes
import numpy as np

from wrong.kernel import Kernel
from wrong.nvfp4_parts import (
    ALL,
    E2M1,
    E4M3,
    F32,
    FLT_MAX,
    FOUR_OVER_SIX,
    TE,
    e2m1,
    e4m3,
    largest,
    record,
    registrar,
)
from wrong.nvfp4_right import transformer_engine

KERNELS: list[Kernel] = []
wrong = registrar(KERNELS)
SIX, SIXTH, Q, ONE = F32(6), F32(1 / 6), F32(2688), F32(1)
DIVIDED = ("torchao", "modelopt", "compressed_tensors")


def scales(profile, x, amax):
    """Return bamax, S_enc, S_dec, the code of the scale, decode, and encode (None if unused)."""
    b = largest(x, (1, 2))
    if profile in DIVIDED:
        g = amax / Q
        if profile == "torchao":
            s = e4m3(np.clip(b / SIX / g, F32(2**-6), F32(448)))
            return b, ONE / g, g, s, g * E4M3[s], (ONE / g) / E4M3[s]
        if profile == "modelopt":
            t = b / (SIX * g)
            s = e4m3(np.clip(np.where(t == 0, ONE, t), F32(2**-9), F32(448)))
            return b, ONE / g, g, s, E4M3[s] * g, None
        g = ONE / np.maximum(amax, F32(2**-126)) * Q
        g = np.where(np.isfinite(g), g, ONE)
        s = e4m3(g * (b / SIX))
        s = np.where(s == 0, np.uint8(0x20), s)
        return b, g, ONE / g, s, E4M3[s] / g, None
    s_enc = np.minimum(Q / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    s_dec = ONE / s_enc
    s = e4m3(b / SIX * s_enc if profile == "te_2_13" else b * (s_enc * SIXTH))
    decode = E4M3[s] * s_dec
    return b, s_enc, s_dec, s, decode, np.minimum(ONE / decode, FLT_MAX)


def finished(profile, x, amax, convert):
    """Return the fields of tiles whose elements a function converts."""
    if profile in FOUR_OVER_SIX:
        return four_over_six(profile, x, amax, convert)
    b, s_enc, s_dec, s, decode, encode = scales(profile, x, amax)
    xs = x / decode if encode is None else x * encode
    code = convert(xs)
    if encode is None:
        code = np.where(xs == 0, np.uint8(0), code)
    return record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode)


def four_over_six(profile, x, amax, convert):
    """Return the fields of tiles, with both candidates."""
    q = Q if "448" in profile else F32(1536)
    s_enc = np.minimum(q / amax, FLT_MAX)
    s_enc = np.where((amax == 0) | (s_enc == 0), ONE, s_enc)
    s_dec = ONE / s_enc
    b = largest(x, (1, 2))
    base = b / SIX * s_enc
    found, fields = [], {}
    for name, t in (("six", base), ("four", F32(1.5) * base)):
        s = e4m3(t)
        decode = E4M3[s] * s_dec
        encode = np.minimum(ONE / decode, FLT_MAX)
        xs = x * encode
        code = convert(xs)
        e = E2M1[code] * E4M3[s] * amax / q - x
        rows = np.add.accumulate(np.abs(e) if "mae" in profile else e * e, axis=2)[:, :, -1]
        while rows.shape[1] > 1:
            rows = rows[:, : rows.shape[1] // 2] + rows[:, rows.shape[1] // 2 :]
        fields |= {f"{name}.block_scale": s, f"{name}.code": code, f"{name}.error": rows}
        found.append(record(b, s_enc, s_dec, s, decode, xs, code, E2M1[code] * decode, encode))
    six, four = found
    less = (fields["four.error"] < fields["six.error"])[:, :, None]
    return fields | {name: np.where(less, four[name], six[name]) for name in six}


def chain(*steps):
    """Return a conversion by a chain of comparisons: a step is (threshold, whether it is above)."""

    def convert(xs):
        magnitude = np.abs(xs)
        code = np.zeros(xs.shape, np.uint8)
        for threshold, reaches in steps:
            code += magnitude >= threshold if reaches else magnitude > threshold
        return np.where(np.isnan(xs), 7, code | np.signbit(xs) << 3).astype(np.uint8)

    return convert


THRESHOLDS = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
CHAIN = tuple((t, i % 2 == 1) for i, t in enumerate(THRESHOLDS))
PLAIN = chain(*CHAIN)
assert np.array_equal(PLAIN(E2M1), np.arange(16))


def chained(i):
    """Register a kernel whose comparison with one threshold puts its tie on the other side."""
    t, reaches = CHAIN[i]
    convert = chain(*CHAIN[:i], (t, not reaches), *CHAIN[i + 1 :])

    def kernel(profile, x, amax):
        return finished(profile, x, amax, convert)

    kernel.__name__ = f"tie_at_{t}"
    toward = "down" if reaches else "up"
    wrong(f"the tie at {t} goes {toward}", *ALL)(kernel)


for threshold in range(7):
    chained(threshold)


@wrong("ties of elements go away from zero", *ALL)
def ties_away(profile, x, amax):
    return finished(profile, x, amax, chain(*((t, True) for t in THRESHOLDS)))


@wrong("ties of elements go to the smaller number: argmin of the distances", *ALL)
def nearest_of_a_table(profile, x, amax):
    def convert(xs):
        distance = np.abs(np.abs(xs)[..., None] - E2M1[:8])
        code = np.where(np.isinf(xs), 7, distance.argmin(-1))
        return np.where(np.isnan(xs), 7, code | np.signbit(xs) << 3).astype(np.uint8)

    return finished(profile, x, amax, convert)


@wrong("elements are rounded to halves first, and then to e2m1", *ALL)
def rounded_by_way_of_halves(profile, x, amax):
    return finished(profile, x, amax, lambda xs: PLAIN(np.rint(xs * 2) / 2))


@wrong("elements go to bfloat16 before e2m1", *ALL)
def elements_in_bfloat16(profile, x, amax):
    return finished(profile, x, amax, lambda xs: PLAIN(xs.astype(ml_dtypes.bfloat16).astype(F32)))


@wrong("elements go to float16 before e2m1, as __nv_cvt_halfraw2_to_fp4x2 takes them", *ALL)
def elements_in_float16(profile, x, amax):
    return finished(profile, x, amax, lambda xs: PLAIN(xs.astype(np.float16).astype(F32)))


@wrong("elements are cast by ml_dtypes, which makes 0x8 and 0x0 of NaN", *ALL)
def cast_by_ml_dtypes(profile, x, amax):
    return finished(profile, x, amax, lambda xs: xs.astype(ml_dtypes.float4_e2m1fn).view(np.uint8))


@wrong("a NaN becomes the code 0", *ALL)
def nan_is_zero(profile, x, amax):
    return finished(profile, x, amax, lambda xs: PLAIN(np.nan_to_num(xs, posinf=6, neginf=-6)))


# No input of compressed_tensors makes a NaN: its suites have tensors without NaN (NVF-002).
@wrong("the code of a NaN keeps its sign", *ALL[:-1])
def nan_keeps_its_sign(profile, x, amax):
    return finished(
        profile, x, amax, lambda xs: PLAIN(np.abs(xs)) | (np.signbit(xs) << 3).astype(np.uint8)
    )


@wrong(
    "the sign is xs < 0, so that -0 loses its sign",
    *FOUR_OVER_SIX,
    *TE,
    "torchao",
)
def sign_by_comparison(profile, x, amax):
    return finished(profile, x, amax, lambda xs: PLAIN(np.abs(xs)) | (xs < 0).astype(np.uint8) << 3)


@wrong("elements that become zero lose their sign", *ALL)
def zero_has_no_sign(profile, x, amax):
    def convert(xs):
        code = PLAIN(xs)
        return np.where(code == 8, np.uint8(0), code)

    return finished(profile, x, amax, convert)


@wrong("codes are computed from x / decode, and xs is the product", *TE, *FOUR_OVER_SIX)
def codes_of_quotients(profile, x, amax):
    fields = transformer_engine(profile, x, amax)
    decode = fields["decode_scale"]
    code = e2m1(np.where(x == 0, x, x / decode))
    return fields | {"code": code, "y": E2M1[code] * decode}
