"""Dot products from the text of the chapter alone (DOT-001 to DOT-020).

It was written by a programmer who had the chapters and the golden vectors, and none of the
implementations. Only the numbers of profiles are from their rows.
"""

import math
import struct
from fractions import Fraction
from functools import cache

import numpy as np

from mor_ref.definitions.dot import DOT_PROFILES

# Exponent bits, mantissa bits, bias and special codes (FMT-001 to FMT-007).
FORMATS = {
    "f32": (8, 23, 127, "ieee"),
    "bf16": (8, 7, 127, "ieee"),
    "f16": (5, 10, 15, "ieee"),
    "e4m3": (4, 3, 7, "fn"),
    "e5m2": (5, 2, 15, "ieee"),
    "e2m3": (2, 3, 1, "none"),
    "e3m2": (3, 2, 3, "none"),
    "e2m1": (2, 1, 1, "none"),
    "e8m0": (8, 0, 127, "fn"),
    "e4m3fnuz": (4, 3, 8, "fnuz"),
    "e5m2fnuz": (5, 2, 16, "fnuz"),
}


def row_of(profile):
    """Return the family of a profile, L, F, the bits behind the leading one (10 in f16), e_0, I.

    The last entry is the format of the first c, if it is not that of the result.
    """
    row = DOT_PROFILES[profile]
    bits = 10 if row.result == "f16" else row.kept_bits
    return (row.family, row.chunk, row.fraction_bits, bits, row.zero_exponent,
            row.flushed_every, row.first_c)  # fmt: skip


def two(k):
    """Return 2^k, exactly."""
    return Fraction(1 << k) if k >= 0 else Fraction(1, 1 << -k)


@cache
def decode(code, name):
    """Give the number of a code as a Python float, which is exact."""
    exp, man, bias, kind = FORMATS[name]
    if name == "e8m0":
        return math.nan if code == 255 else math.ldexp(1.0, code - bias)
    sign = -1.0 if code >> (exp + man) else 1.0
    e, m, ones = code >> man & (1 << exp) - 1, code & (1 << man) - 1, (1 << exp) - 1
    if kind == "ieee" and e == ones:
        return math.nan if m else sign * math.inf
    low = code & (1 << exp + man) - 1
    if (kind == "fn" and low == (1 << exp + man) - 1) or (kind == "fnuz" and sign < 0 and low == 0):
        return math.nan
    return sign * math.ldexp(m + (min(e, 1) << man), max(e, 1) - bias - man)


def exponent(v, e_min):
    """Give e(v) of DOT-004."""
    return max(math.frexp(v)[1] - 1, e_min) if v and math.isfinite(v) else e_min


def log2_floor(v):
    """Give floor(log2(|v|)) of a fraction that is not 0."""
    k = v.numerator.bit_length() - v.denominator.bit_length()
    return k if abs(v) >= two(k) else k - 1


def rounded(v, bits=23, low=-126, high=128, to_integer=round):
    """Round a fraction to `bits` behind the leading one; 2^high and more is infinite."""
    if v == 0:
        return 0.0
    unit = two(max(log2_floor(v), low) - bits)
    r = to_integer(v / unit) * unit
    return math.copysign(math.inf if abs(r) >= two(high) else float(r), v)


def add(x, y):
    """Return RN32(x + y), with the zeros, infinities and NaN of IEEE 754."""
    s = x + y
    return rounded(Fraction(x) + Fraction(y)) if math.isfinite(s) and s else s


def multiply(x, y):
    """Return RN32(x * y); the product of two numbers of binary32 is exact in binary64."""
    p = x * y
    return rounded(Fraction(p)) if math.isfinite(p) and p else p


def special(terms):
    """Return the infinity or NaN that the terms lead to, or None if all are finite (DOT-008)."""
    if all(map(math.isfinite, terms)):
        return None
    found = {t for t in terms if math.isinf(t)}
    return math.nan if any(map(math.isnan, terms)) or len(found) > 1 else found.pop()


def t_fdpa(products, c, row, is_first=False):
    """Compute a chunk of t_fdpa, st_fdpa or gst_fdpa (DOT-007, DOT-009, DOT-010)."""
    family, _, f, bits, e_0 = row[:5]
    found = special([*(math.prod(v) for v, _ in products), c])
    if found is not None:
        return 0, 0, found
    in_f16 = bits == 10 or (is_first and row[6:] == ("f16",))
    terms = [(Fraction(c), exponent(c, -14 if in_f16 else -126) if c else e_0)]
    size = 16 if family == "gst_fdpa" else 1
    for g in range(0, len(products), size):
        group = products[g : g + size]
        t = sum(Fraction(v[0]) * Fraction(v[1]) for v, _ in group)
        t *= math.prod(map(Fraction, group[0][0][2:]))
        e = sum(group[0][1][2:]) if size == 16 else sum(group[0][1])
        terms.append((t, e if any(math.prod(v) for v, _ in group) else e_0))
    e = max(e for _, e in terms)
    n = sum(math.trunc(t * two(f - e)) for t, _ in terms)
    v = n * two(e - f)
    r = rounded(v, 10, -14, 16) if bits == 10 else rounded(v, bits, to_integer=math.trunc)
    return e, n, r or 0.0


def tr_fdpa(products, c, row):
    """Compute a chunk of tr_fdpa or gtr_fdpa (DOT-017, DOT-018)."""
    family, _, f, *_ = row
    values = [v[0] * v[1] for v, _ in products]
    values = [math.copysign(math.inf, p) if abs(p) >= 2.0**128 else p for p in values]
    found = special([*values, c])
    if found is not None:
        return 0, 0, found
    terms = [(Fraction(p), sum(e)) for p, (_, e) in zip(values, products, strict=True)]
    sums = []
    for part in [terms] if family == "tr_fdpa" else [terms[0::2], terms[1::2]]:
        p = max((e for t, e in part if t), default=None)
        if p is not None:
            sums.append((p, sum(math.trunc(t * two(f - p)) for t, _ in part) * two(p - f)))
    e = e_c = exponent(c, -126)
    s = Fraction(0)
    if sums:
        p = max(p for p, _ in sums)
        e, s = max(p, e_c), sum(math.floor(x * two(f - p)) for _, x in sums) * two(p - f)
    kept = Fraction(0 if family == "gtr_fdpa" and e_c < e - f - 1 else c)
    n = math.floor(s * two(32 - e)) + (1 << 32 - f) * math.floor(kept * two(f - e))
    v = n * two(e - 32)
    unit = two(max(log2_floor(v), -126) - 31) if n else 1
    return e, n, rounded(math.floor(v / unit) * unit)


def exact(products, c, _row):
    """Compute exact or e_fdpa: RN32 of the exact sum (DOT-012, DOT-015)."""
    found = special([*(math.prod(v) for v, _ in products), c])
    if found is None:
        found = rounded(Fraction(c) + sum(math.prod(map(Fraction, v)) for v, _ in products))
    return 0, 0, found


def by_ieee(products, c, row):
    """Compute a chunk of f32_fma, f32_pairwise or ftz_mul_add (DOT-013, DOT-014, DOT-016)."""
    if row[0] == "f32_fma":
        return 0, 0, add(products[0][0][0] * products[0][0][1], c)

    def flush(x):
        return math.copysign(0.0, x) if row[0] == "ftz_mul_add" and abs(x) < 2.0**-126 else x

    sums = [flush(multiply(v[0], v[1])) for v, _ in products]
    while len(sums) > 1:
        pairs = [flush(add(*sums[i : i + 2])) for i in range(0, len(sums) - 1, 2)]
        sums = pairs + sums[len(pairs) * 2 :]
    return 0, 0, flush(add(c, sums[0])) if sums else c


def promoted(products, c, row):
    """Compute 128 products in t_fdpa, and add the scaled sum to c (DOT-011)."""
    _, _, s_a, s_b = products[0][0]
    plain = [((v[0], v[1], 1.0, 1.0), (*e[:2], 0, 0)) for v, e in products]
    p = chunks(plain, 0.0, ("t_fdpa", *row[1:]))[2]
    return 0, 0, add(multiply(s_a, s_b) * p, c)


FAMILIES = {
    "t_fdpa": t_fdpa,
    "st_fdpa": t_fdpa,
    "gst_fdpa": t_fdpa,
    "tr_fdpa": tr_fdpa,
    "gtr_fdpa": tr_fdpa,
    "exact": exact,
    "e_fdpa": exact,
    "promoted": promoted,
}


def chunks(products, c, row):
    """Take products a chunk at a time, and return the fields of the last one (DOT-003)."""
    lengths = {"f32_fma": 1, "promoted": 128}
    fields, length = (0, 0, c), lengths.get(row[0], row[1]) or len(products)
    for i in range(0, len(products), length):
        if len(row) > 5 and row[5] and i % row[5] == 0 and abs(fields[2]) < 2.0**-126:
            fields = (0, 0, 0.0)
        fill = [((0.0, 0.0, 1.0, 1.0), (0, 0, 0, 0))] * (i + length - len(products))
        part = products[i : i + length] + fill
        first = {"is_first": True} if i == 0 and row[6:] == ("f16",) else {}
        fields = FAMILIES.get(row[0], by_ieee)(part, fields[2], row, **first)
    return fields


def numbers(codes, name, profile, is_scale=False):
    """Decode a row of codes to numbers and exponents (DOT-004 to DOT-006, DOT-016)."""
    mask = 0x7F if is_scale and name == "e4m3" else 0xFFFFFFFF
    if "_tf32" in profile or "_xf32" in profile:
        mask = 0xFFFFE000
    values = [decode(int(code) & mask, name) for code in codes]
    e_min = -127 if name == "e8m0" else 1 - FORMATS[name][2]
    if row_of(profile)[0] == "ftz_mul_add":
        values = [0.0 if abs(v) < 2.0**e_min else v for v in values]
    return [(v, exponent(v, e_min)) for v in values]


def pattern(x):
    """Give the binary32 pattern of a number; NaN is 0x7FFFFFFF."""
    return 0x7FFFFFFF if math.isnan(x) else struct.unpack("<I", struct.pack("<f", x))[0]


def dot(parameters, arrays):
    """Compute the fields of each row of a case of `dot` or `dot_scaled`."""
    profile, out = parameters["dot_profile"], []
    for r in range(len(arrays["c"])):
        operands = [numbers(arrays[x][r], parameters["format_" + x], profile) for x in "ab"]
        count = len(operands[0])
        for x in "ab":
            scales, block = [(1.0, 0)], count
            if "scale_" + x in arrays:
                name, block = parameters["scale_format"], parameters["scale_block"]
                scales = numbers(arrays["scale_" + x][r], name, profile, True)
            operands.append([scales[k // block] for k in range(count)])
        products = [tuple(zip(*terms, strict=True)) for terms in zip(*operands, strict=True)]
        c = decode(int(arrays["c"][r]), "f32")
        e, n, c = chunks(products, c, row_of(profile))
        out.append((e & 0xFFFFFFFF, n & 0xFFFFFFFFFFFFFFFF, pattern(c)))
    fields = zip(("exponent", "cut_sum", "result"), zip(*out, strict=True), strict=True)
    return {f: np.array(v, np.uint64 if f == "cut_sum" else np.uint32) for f, v in fields}


def integers(arrays):
    """Compute the sums of int8 products, and SwitchBack's results (DOT-019, DOT-020)."""
    a, b = (arrays[x].view(np.int8).astype(np.int64) for x in "ab")
    fields = {"int32_sum": [int(s) & 0xFFFFFFFF for s in (a * b).sum(axis=1)]}
    numbers = [rounded(Fraction(s - (s >> 31 << 32))) for s in fields["int32_sum"]]
    fields |= {"number": [pattern(v) for v in numbers], "result": []}
    for m, x, w in zip(numbers, arrays["scale_a"], arrays["scale_b"], strict=True):
        inner = multiply(decode(int(x), "f32"), multiply(m, rounded(Fraction(1, 127**2))))
        fields["result"].append(pattern(multiply(decode(int(w), "f32"), inner)))
    return {name: np.array(values, np.uint32) for name, values in fields.items()}


def answer(operation, parameters, arrays):
    """Return the fields of a case of `dot`, `dot_scaled` or `dot_integers`."""
    if operation == "dot_integers":
        return integers(arrays)
    return dot(parameters, arrays)
