"""Conversions to any format in integer arithmetic, as the rules require."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wrong.kernel import Kernel
from wrong.porting import dispatch, pattern

I64, U64 = np.int64, np.uint64
Opened = tuple[np.ndarray, ...]  # sign, exponent, 53-bit significand, infinities, NaNs
FRACTION = {"bf16": 7, "f16": 10, "f32": 23, "f64": 52}  # stored bits of the significand


@dataclass(frozen=True)
class Layout:
    """The numbers of a format: exponent and mantissa bits, bias, special codes, sign."""

    e: int
    m: int
    bias: int
    kind: str
    sign: bool = True
    table: ClassVar[dict] = {}

    @property
    def powers(self):
        return self.m == 0

    @property
    def twos(self):
        return self.e == 0

    @property
    def top(self):
        """The bit above exponent and mantissa: the bit of the sign."""
        return 1 << (self.e + self.m)

    @property
    def largest(self):
        """The code of the largest finite number."""
        lost = {"ieee": 1 << self.m, "fn": 1, "fnuz": 0, "none": 0}[self.kind]
        return self.top - 1 - lost

    @property
    def infinity(self):
        """The code of an infinity that is not saturated; in fnuz formats, the code of NaN."""
        if self.kind == "ieee":
            return self.largest + 1
        return {"fn": self.top - 1, "fnuz": self.top, "none": self.largest}[self.kind]

    @property
    def nan(self):
        if self.twos:
            return 0
        return self.top if self.kind == "fnuz" else self.top - 1

    @property
    def dtype(self):
        bits = self.e + self.m + self.sign
        return np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32

    def signed(self, codes, negative):
        """Return codes of magnitudes with the signs of numbers."""
        if not self.sign:
            return codes
        if self.twos:
            return np.where(negative & (codes > 0), 2 * self.top - codes, codes)
        keep = (codes == 0) | (codes == self.top) if self.kind == "fnuz" else codes < 0
        return np.where(negative & ~keep, codes | self.top, codes)


Layout.table.update(
    e4m3=Layout(4, 3, 7, "fn"),
    e5m2=Layout(5, 2, 15, "ieee"),
    e2m1=Layout(2, 1, 1, "none"),
    e2m3=Layout(2, 3, 1, "none"),
    e3m2=Layout(3, 2, 3, "none"),
    e8m0=Layout(8, 0, 127, "fn", sign=False),
    bf16=Layout(8, 7, 127, "ieee"),
    f16=Layout(5, 10, 15, "ieee"),
    f32=Layout(8, 23, 127, "ieee"),
    int8_mx=Layout(0, 7, 0, "none"),
    e4m3fnuz=Layout(4, 3, 8, "fnuz"),
    e5m2fnuz=Layout(5, 2, 16, "fnuz"),
    e4m3b11fnuz=Layout(4, 3, 11, "fnuz"),
    e4m3_ieee=Layout(4, 3, 7, "ieee"),
    e3m4=Layout(3, 4, 3, "ieee"),
    e2m1_ieee=Layout(2, 1, 1, "ieee"),
)


def opened(bits, source):
    """Return sign, exponent, 53-bit significand, and which numbers are infinite and NaN.

    A NaN keeps its payload, although casts make NaNs quiet.
    """
    held = U64(FRACTION[source])
    payload = (bits.astype(U64) & ((U64(1) << held) - U64(1))) << U64(52) - held
    wide = {"bf16": np.uint32, "f16": np.float16, "f32": np.uint32, "f64": U64}[source]
    if source == "bf16":
        bits = bits.astype(np.uint32) << np.uint32(16)
    x = np.ascontiguousarray(bits).view({U64: np.float64, np.uint32: np.float32}.get(wide, wide))
    negative = np.signbit(x)
    raw = x.astype(np.float64).view(U64) & U64((1 << 63) - 1)
    field = (raw >> U64(52)).astype(I64)
    fraction = raw & U64((1 << 52) - 1)
    significand = np.where(field > 0, fraction | U64(1 << 52), fraction)
    significand = np.where(np.isnan(x), payload | U64(1 << 52), significand)
    return negative, np.maximum(field, 1) - 1023, significand, np.isinf(x), np.isnan(x)


def cut(layout, exponent, significand):
    """Return the code of the magnitude cut off, the bits that are cut off, and their number."""
    p = np.maximum(exponent, 1 - layout.bias)
    bits = p - exponent + 52 - layout.m
    shift = np.minimum(bits, 63).astype(U64)
    k = (significand >> shift).astype(I64)
    rest = significand & ((U64(1) << shift) - U64(1))
    return (p - (1 - layout.bias)) * (1 << layout.m) + k, rest, bits


def goes_up(rounding, code, rest, bits, negative):
    half, odd = U64(1) << np.minimum(bits - 1, 62).astype(U64), code % 2 == 1
    if rounding == "rne":
        return (rest > half) | ((rest == half) & odd)
    if rounding == "rna":
        return (rest >= half) & (rest > 0)
    towards = {"rtz": False, "rtp": ~negative, "rtn": negative, "rto": ~odd}[rounding]
    return towards & (rest > 0)


def power_codes(layout, exponent, significand, rounding, *, next_up):
    """Return codes of powers of two; `next_up` rounds all above the smallest up under rna."""
    exponent = np.where(significand >= U64(1 << 52), exponent, -2000)
    code, rest = exponent + layout.bias, significand & U64((1 << 52) - 1)
    half = U64(0) if next_up else U64((1 << 51) - 1)
    over = {"rtp": rest > 0, "rtz": rest < 0, "rna": rest > U64((1 << 51) - 1)}[rounding]
    if rounding == "rna":
        over = np.where(code == 0, rest > half, over)
    return np.where(code < 0, 0, code + over)


def codes_of(layout, opened_x, rounding, overflow, up=None):
    """Return codes without the recipe of NaN; `up` decides for stochastic rounding."""
    negative, exponent, significand, infinite, _ = opened_x
    negative = negative & layout.sign
    if layout.powers:
        code = power_codes(layout, exponent, significand, rounding, next_up=up == "next")
    else:
        code, rest, bits = cut(layout, exponent, significand)
        up = goes_up(rounding, code, rest, bits, negative) if up is None else up(rest, bits)
        code = code + up
    beyond = layout.largest if overflow == "satfinite" else layout.infinity
    toward = {"rtz": True, "rto": True, "rtp": negative, "rtn": ~negative}.get(rounding, False)
    code = np.where(code > layout.largest, np.where(toward, layout.largest, beyond), code)
    return layout.signed(np.where(infinite, beyond, code), negative)


def no_number(layout, codes, x, *, signed):
    nan = layout.nan if layout.kind != "none" or layout.twos else layout.largest
    nans = layout.signed(np.full(codes.shape, nan), x[0] & signed)
    return np.where(x[4], nans, codes).astype(layout.dtype)


def encode(parameters, inputs):
    layout = Layout.table[parameters["format"]]
    x = opened(inputs["x"], parameters["source"])
    codes = codes_of(layout, x, parameters["rounding"], parameters["overflow"])
    return {"code": no_number(layout, codes, x, signed=parameters["nan"] == "signed")}


def encode_stochastic(parameters, inputs):
    layout = Layout.table[parameters["format"]]
    n = parameters["n_random_bits"]

    def up(rest, bits):
        away = np.clip(bits - n, 0, 63).astype(U64)
        left = np.maximum(n - bits, 0).astype(U64)
        return (rest >> away << left) + inputs["random_word"].astype(U64) >= U64(1 << n)

    x = opened(inputs["x"], parameters["source"])
    codes = codes_of(layout, x, "sr", parameters["overflow"], up)
    return {"code": no_number(layout, codes, x, signed=False)}


_NANS = {
    ("ml_dtypes", "e5m2"): (0x7E, 0xFE),
    ("ml_dtypes", "e2m1"): (0x8, 0x0),
    ("ml_dtypes", "e2m3"): (0x20, 0x00),
    ("ml_dtypes", "e3m2"): (0x20, 0x00),
    ("ml_dtypes", "bf16"): (0x7FC0, 0xFFC0),
    ("ml_dtypes", "e4m3_ieee"): (0x7C, 0xFC),
    ("ml_dtypes", "e3m4"): (0x78, 0xF8),
    ("ml_dtypes", "e4m3"): (0x7F, 0xFF),
    ("torch", "e4m3"): (0x7F, 0xFF),
    ("torch", "e5m2"): (0x7F, 0xFF),
}


def encode_preset(parameters, inputs):
    name, profile = parameters["format"], parameters["preset"]
    layout = Layout.table[name]
    wide = name in {"bf16", "f16", "f32"}
    finite = {
        "cuda": not wide,
        "ml_dtypes": name in {"e2m1", "e2m3", "e3m2"},
        "torch": name == "e4m3",
    }[profile]
    x = opened(inputs["x"], parameters["source"])
    other = layout.powers and profile != "cuda"
    rounding = "rne" if not layout.powers else "rna" if other else "rtp"
    codes = codes_of(
        layout, x, rounding, "satfinite" if finite else "ieee", "next" if other else None
    )
    codes = no_number(layout, codes, x, signed=False)
    if (profile, name) in _NANS:
        plus, minus = _NANS[profile, name]
        codes = np.where(x[4], np.where(x[0], minus, plus), codes)
    if layout.powers and profile == "ml_dtypes":
        codes = np.where(x[0] | (x[2] == 0), layout.nan, codes)
    return {"code": codes.astype(layout.dtype)}


def decode(parameters, inputs):
    layout, code = Layout.table[parameters["format"]], inputs["code"].astype(I64)
    negative = layout.sign & (code & layout.top > 0)
    magnitude = code & (layout.top - 1)
    if layout.twos:
        return {"value": pattern(np.where(negative, code - 256, code) / np.float32(64))}
    field = magnitude >> layout.m
    m = magnitude & ((1 << layout.m) - 1)
    one = np.where((field > 0) | layout.powers, (1 << layout.m) + m, m)
    e = np.where(layout.powers, field, np.maximum(field, 1)) - layout.bias - layout.m
    value = np.ldexp(one.astype(np.float64), e)
    none = magnitude > layout.largest
    value = np.where(none, np.nan, value)
    if layout.kind == "ieee":
        value = np.where(magnitude == layout.largest + 1, np.inf, value)
    if layout.kind == "fnuz":
        value = np.where(negative & (magnitude == 0), np.nan, value)
    return {"value": pattern(np.where(negative, -value, value))}


KERNELS = [
    Kernel(
        "conversions_of_the_rules",
        dispatch(
            encode=encode,
            encode_preset=encode_preset,
            encode_stochastic=encode_stochastic,
            decode=decode,
        ),
    )
]
