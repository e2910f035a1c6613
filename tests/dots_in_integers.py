"""Chunks of dot products with cut sums, in whole numbers, from the text of the chapter alone.

All rows of a case are computed at once. Each step is a method, which a wrong kernel replaces.
"""

import math
from dataclasses import dataclass

import numpy as np
from dots_by_text import FORMATS, add, decode, multiply, pattern

from mor_ref.definitions.dot import DOT_PROFILES

CUT = ("t_fdpa", "st_fdpa", "gst_fdpa", "promoted", "tr_fdpa", "gtr_fdpa")
GROUP, PERIOD, RIGHT, WIDE = 16, 128, 32, 38  # shifts that a word of 64 bits holds
NOTHING = -(1 << 20)  # the exponent of no product


@dataclass(frozen=True)
class Numbers:
    """Numbers m * 2^u with their exponents, and as floats, which are infinite or NaN as well."""

    m: np.ndarray
    u: np.ndarray
    e: np.ndarray
    v: np.ndarray

    def part(self, places):
        """Return some columns."""
        return Numbers(*(x[:, places] for x in (self.m, self.u, self.e, self.v)))


@dataclass(frozen=True)
class Terms:
    """Summands of a chunk, a row each: m * 2^u, their exponents and whether they are zero."""

    m: np.ndarray
    u: np.ndarray
    e: np.ndarray
    v: np.ndarray
    a: Numbers
    b: Numbers
    lowest: tuple  # exponents of a and b


def numbers_of(codes, name, ignored=0, unsigned=False):
    """Return the numbers of an array of codes (DOT-004 to DOT-006)."""
    exp, man, bias, _ = FORMATS[name]
    codes = codes.astype(np.int64) >> ignored << ignored
    if name == "e8m0":
        e = codes - bias
        v = np.where(codes == 255, np.nan, np.ldexp(1.0, e.astype(int)))
        return Numbers(np.ones_like(e), e, e, v)
    if unsigned:
        codes &= (1 << exp + man) - 1
    field, low = codes >> man & (1 << exp) - 1, codes & (1 << man) - 1
    e = np.maximum(field, 1) - bias
    m = low + (np.minimum(field, 1) << man)
    shift = ignored if name == "f32" else 0
    distinct, places = np.unique(codes, return_inverse=True)
    v = np.array([decode(int(code), name) for code in distinct])[places].reshape(codes.shape)
    finite = np.isfinite(v)
    m = np.where(finite, np.where(codes >> exp + man & 1, -m, m), 0) >> shift
    return Numbers(m, e - man + shift, np.where(finite & (m != 0), e, 1 - bias), v)


def c_of(c, e_min):
    """Return numbers of binary32, with an exponent of at least e_min."""
    finite = np.isfinite(c)
    safe = np.where(finite, c, 0.0)
    e = np.where(safe == 0, e_min, np.maximum(np.frexp(safe)[1] - 1, e_min)).astype(np.int64)
    u = np.maximum(np.frexp(safe)[1] - 1, -126).astype(np.int64) - 23
    m = np.where(safe == 0, 0, np.ldexp(safe, -u.astype(int))).astype(np.int64)
    return Numbers(m, u, e, c)


def shifted(m, s, down):
    """Return m * 2^s as a whole number: toward zero, or down."""
    s = np.where(m == 0, 0, s)
    if s.size and s.max() > WIDE:
        return np.array(
            [_shifted(int(x), int(y), down) for x, y in zip(m.flat, s.flat, strict=True)], object
        ).reshape(s.shape)
    left, right = np.maximum(s, 0), np.minimum(np.maximum(-s, 0), 63)
    if m.dtype == object:
        right = np.maximum(-s, 0).astype(object)
        left = left.astype(object)
    if down:
        return (m << left) >> right
    found = (np.abs(m) << left) >> right
    return np.where(m < 0, -found, found)


def _shifted(m, s, down):
    if s >= 0:
        return m << s
    return m >> -s if down or m >= 0 else -(-m >> -s)


def rounded(n, unit, bits, low=-126, mode="rtz", top=128):
    """Return n * 2^unit with `bits` behind its leading one; from 2^top on, it is infinite."""
    if n == 0:
        return 0.0
    a, sign = abs(n), -1.0 if n < 0 else 1.0
    to = max(a.bit_length() - 1 + unit, low) - bits
    drop = to - unit
    if drop > 0:
        q, rest, half = a >> drop, a & (1 << drop) - 1, 1 << drop - 1
        up = {
            "rtz": 0,
            "rne": rest > half or (rest == half and q & 1),
            "rna": rest >= half,
            "rtn": rest and n < 0,
            "rtp": rest and n > 0,
            "away": rest,
            "odd": rest and not q & 1,
        }[mode]
        a, unit = q + bool(up), to
    if a == 0:
        return math.copysign(0.0, sign)
    if a.bit_length() + unit > top:
        return sign * math.inf
    return sign * math.ldexp(a, unit)


def special_of(values):
    """Return whether rows have an infinite or NaN term, and their sums (DOT-008)."""
    with np.errstate(all="ignore"):
        bad = ~np.isfinite(values)
        return bad.any(axis=1), np.where(bad, values, 0.0).sum(axis=1)


class Kernel:
    """The sums of a profile; a wrong kernel is a subclass with another step."""

    first_zero = True

    def __init__(self, profile):
        self.row = row = DOT_PROFILES[profile] if isinstance(profile, str) else profile
        self.family = row.family
        self.f, self.e0, self.length = row.fraction_bits, row.zero_exponent, row.chunk
        self.of_f16 = row.result == "f16"
        self.bits = 10 if self.of_f16 else row.kept_bits

    # Exponents and terms

    def exponents(self, t):
        """Return the exponents of terms that are not zero."""
        return t.e

    def is_zero(self, t):
        """Return which terms have e0."""
        if self.family == "gst_fdpa":
            return t.e == NOTHING
        return t.m == 0

    def zeros(self):
        """Return e0 of products."""
        return self.e0

    def c_e_min(self, is_first):
        """Return the least exponent of c."""
        return -14 if self.of_f16 or (is_first and self.row.first_c) else -126

    def c_exponent(self, c, is_first):
        """Return the exponent of c."""
        del is_first
        return np.where(c.m == 0, self.c_zero(), c.e)

    def c_zero(self):
        """Return the exponent of a c that is 0."""
        return self.e0

    def largest(self, e, e_c):
        """Return the largest exponent."""
        return np.maximum(e.max(axis=1), e_c)

    # Cuts and sums

    def cut_terms(self, t, big):
        """Return terms in units of 2^(E - F)."""
        return shifted(t.m, t.u + self.f - big[:, None], False)

    def cut_c(self, c, big):
        """Return c in units of 2^(E - F)."""
        return shifted(c.m, c.u + self.f - big, False)

    def total(self, n, n_c):
        """Return the cut sum."""
        return n.sum(axis=1) + n_c

    def to_result(self, n, unit):
        """Return a sum in the format of the result."""
        if self.of_f16:
            return rounded(n, unit, 10, -14, "rne", 16) + 0.0
        return rounded(n, unit, self.bits) + 0.0

    def fields(self, big, n, c):
        """Return the fields of a chunk, c among them."""
        return big, n, c

    def special_fields(self, big, n, c):
        """Return the fields of a chunk with an infinite or NaN term."""
        return 0 * big, 0 * n, c

    def special(self, t, c):
        """Return whether rows are special, and their sums."""
        return special_of(np.concatenate([t.v, c[:, None]], axis=1))

    def next_c(self, c, k):
        """Return c as chunk number k takes it."""
        del k
        return c

    def chunk(self, t, c, is_first):
        """Add terms to c (DOT-007, DOT-009)."""
        bad, found = self.special(t, c)
        of_c = c_of(c, self.c_e_min(is_first))
        e = np.where(self.is_zero(t), self.zeros(), self.exponents(t))
        big = self.largest(e, self.c_exponent(of_c, is_first))
        n = self.total(self.cut_terms(t, big), self.cut_c(of_c, big))
        units = big - self.f
        c = np.array([self.to_result(int(x), int(y)) for x, y in zip(n, units, strict=True)])
        big, n, c = self.fields(big, n, c)
        others = self.special_fields(big, n, found)
        return [np.where(bad, x, y) for x, y in zip(others, (big, n, c), strict=True)]

    # CDNA 3

    def p_of(self, e):
        """Return the largest exponent of products."""
        return e.max(axis=1, initial=NOTHING)

    def amd_exponents(self, t):
        """Return the exponents of products, which zeros have not."""
        return np.where(self.amd_zero(t), NOTHING, self.exponents(t))

    def amd_zero(self, t):
        """Return which products have no exponent."""
        return t.m == 0

    def half(self, t):
        """Return the sum of products, in units of 2^(P - F), and P."""
        p = self.p_of(self.amd_exponents(t))
        safe = np.where(p == NOTHING, 0, p)
        n = self.amd_sum(self.first_cut(t, safe))
        return np.where(p == NOTHING, 0, n), p

    def first_cut(self, t, p):
        """Return products in units of 2^(P - F)."""
        return shifted(t.m, t.u + self.f - p[:, None], False)

    def amd_sum(self, n):
        """Return the sum of cut products."""
        return n.sum(axis=1)

    def group_cut(self, n, s, which):
        """Return a sum of half of the products in units of the larger P."""
        del which
        return shifted(n, s, True)

    def groups(self, t):
        """Return the even products and the odd ones."""

        def every(n):
            return Terms(*(x[:, n::2] for x in (t.m, t.u, t.e, t.v)), t.a, t.b, t.lowest)

        return every(0), every(1)

    def s_of(self, t):
        """Return S in units of 2^(P - F), and P."""
        if self.family == "tr_fdpa":
            return self.half(t)
        (n, p), (m, q) = map(self.half, self.groups(t))
        both = np.maximum(p, q)
        n = np.where(p == NOTHING, 0, self.group_cut(n, np.where(p == NOTHING, 0, p - both), 0))
        m = np.where(q == NOTHING, 0, self.group_cut(m, np.where(q == NOTHING, 0, q - both), 1))
        return n + m, both

    def right(self):
        """Return the number of bits below E of N."""
        return RIGHT

    def amd_e(self, p, e_c):
        """Return E."""
        return np.maximum(p, e_c)

    def second_cut(self, n, s):
        """Return S in units of 2^(E - 32)."""
        return shifted(n, s, True)

    def amd_c(self, c, big):
        """Return c in units of 2^(E - F)."""
        n = shifted(c.m, c.u + self.f - big, True)
        return np.where(self.is_far(c, big), 0, n)

    def is_far(self, c, big):
        """Return whether c counts as 0."""
        return (self.family == "gtr_fdpa") & (c.e < big - self.f - 1)

    def amd_total(self, s, n_c):
        """Return N."""
        return s + n_c * (1 << self.right() - self.f)

    def amd_result(self, n, unit):
        """Return N * 2^unit, rounded down to 32 bits and then to nearest."""
        if n == 0:
            return 0.0
        to = max(abs(n).bit_length() - 1 + unit, -126) - 31
        if to > unit:
            n, unit = n >> to - unit, to
        return rounded(n, unit, 23, mode="rne")

    def overflows(self, v):
        """Return products with those beyond binary32 as infinities."""
        beyond = np.abs(v) >= 2.0**128
        return np.where(beyond, np.copysign(np.inf, v), v) if self.family == "tr_fdpa" else v

    def amd_chunk(self, t, c, is_first):
        """Add products to c (DOT-017, DOT-018)."""
        bad, found = special_of(np.concatenate([self.overflows(t.v), c[:, None]], axis=1))
        of_c = c_of(c, self.c_e_min(is_first))
        s, p = self.s_of(t)
        big = self.amd_e(p, of_c.e)
        none = p == NOTHING
        right = self.right()
        s = self.second_cut(np.where(none, 0, s), np.where(none, 0, p) - self.f - big + right)
        n = self.amd_total(s, self.amd_c(of_c, big))
        c = np.array([self.amd_result(int(x), int(y) - right) for x, y in zip(n, big, strict=True)])
        big, n, c = self.fields(big, n, c)
        others = self.special_fields(big, n, found)
        return [np.where(bad, x, y) for x, y in zip(others, (big, n, c), strict=True)]

    # Rows

    def run(self, chunks, c):
        """Return the fields of the last chunk."""
        big, n = np.zeros(len(c), np.int64), np.zeros(len(c), np.int64)
        one = self.amd_chunk if self.family in ("tr_fdpa", "gtr_fdpa") else self.chunk
        for k, t in enumerate(chunks):
            big, n, c = one(t, self.next_c(c, k), k == 0)
        return big, n, c

    def promoted(self, periods, factors, c):
        """Return c after periods of 128 products (DOT-011)."""
        for chunks, (x, y) in zip(periods, factors, strict=True):
            p = self.run(chunks, np.zeros(len(c)))[2]
            rows = zip(x, y, p, c, strict=True)
            c = np.array([self.promote(*map(float, row)) for row in rows])
        return c

    def promote(self, x, y, p, c):
        """Return RN32(RN32(s_a * s_b) * p + c)."""
        return add(multiply(x, y) * p, c)


@dataclass(frozen=True)
class Prepared:
    """The terms of a case, chunk by chunk."""

    c: np.ndarray
    chunks: list
    factors: list
    expected: dict
    name: str
    profile: str


def chunked(numbers, start, stop):
    """Return columns, filled with zeros of +0."""
    part = numbers.part(slice(start, stop))
    more = stop - start - part.m.shape[1]
    if not more:
        return part
    fill = [np.pad(x, ((0, 0), (0, more))) for x in (part.m, part.u, part.e, part.v)]
    return Numbers(*fill)


def terms_of(operands, family, start, stop, lowest):
    """Return the terms of a chunk of operands a and b, with the scales of each product."""
    a, b, *scales = (chunked(x, start, stop) for x in operands)
    m, u, e = a.m * b.m, a.u + b.u, a.e + b.e
    with np.errstate(all="ignore"):
        v = a.v * b.v
    if family == "gst_fdpa":
        return groups_of(m, u, v, scales, (a, b), lowest)
    for x in scales:
        m, u, e = m * x.m, u + x.u, e + x.e
    if scales:
        with np.errstate(all="ignore"):
            v = v * (scales[0].v * scales[1].v)
    return Terms(m, u, e, v, a, b, lowest)


def groups_of(m, u, v, scales, pair, lowest):
    """Return the terms of groups of sixteen (DOT-009)."""
    rows, count = m.shape
    low = u.min()
    whole = (m << u - low).reshape(rows, count // GROUP, GROUP)
    first = [x.part(slice(0, count, GROUP)) for x in scales]
    with np.errstate(all="ignore"):
        both = first[0].v * first[1].v
        v = v.reshape(whole.shape).sum(axis=2) * both
    is_zero = (whole == 0).all(axis=2) | (both == 0)
    e = np.where(is_zero, NOTHING, first[0].e + first[1].e)
    m = whole.sum(axis=2) * first[0].m * first[1].m
    return Terms(m, low + first[0].u + first[1].u, e, v, *pair, lowest)


def prepared(case):
    """Return the terms of a case of `dot` or `dot_scaled` in a family that cuts."""
    given = case.parameters
    row = DOT_PROFILES[given["dot_profile"]]
    of = [given["format_a"], given["format_b"]]
    operands = [
        numbers_of(case.arrays[x], fmt, row.ignored_bits) for x, fmt in zip("ab", of, strict=True)
    ]
    count, factors = operands[0].m.shape[1], []
    if "scale_a" in case.arrays:
        fmt, block = given["scale_format"], given["scale_block"]
        two = [numbers_of(case.arrays[f"scale_{x}"], fmt, 0, fmt == "e4m3") for x in "ab"]
        if row.family == "promoted":
            factors = [[x.v[:, k] for x in two] for k in range(two[0].m.shape[1])]
        else:
            each = np.arange(count) // block
            operands += [x.part(each) for x in two]
    lowest = tuple(1 - FORMATS[fmt][2] for fmt in of)
    starts = range(0, count, row.chunk)
    if row.family == "promoted":
        starts = range(0, -(-count // PERIOD) * PERIOD, row.chunk)
    chunks = [terms_of(operands, row.family, k, k + row.chunk, lowest) for k in starts]
    if row.family == "promoted":
        per = PERIOD // row.chunk
        chunks = [chunks[k : k + per] for k in range(0, len(chunks), per)]
        factors = factors or [[np.ones(len(case.arrays["c"]))] * 2] * len(chunks)
    with np.errstate(invalid="ignore"):  # of signaling NaN
        c = case.arrays["c"].view(np.float32).astype(np.float64)
    expected = {k: case.arrays[k] for k in ("exponent", "cut_sum", "result") if k in case.arrays}
    return Prepared(c, chunks, factors, expected, case.name, row.name)


def answer(kernel, case):
    """Return the fields of a prepared case under a kernel."""
    if kernel.family == "promoted":
        c = kernel.promoted(case.chunks, case.factors, case.c)
        big = n = np.zeros(len(c), np.int64)
    else:
        big, n, c = kernel.run(case.chunks, case.c)
    whole = [int(x) & (1 << 64) - 1 for x in n]
    return {
        "exponent": (big.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32),
        "cut_sum": np.array(whole, np.uint64),
        "result": np.array([pattern(float(x)) for x in c], np.uint32),
    }


def rows_that_differ(kernel, case):
    """Return which rows of a prepared case have another field."""
    found = answer(kernel, case)
    return np.any([found[name] != wanted for name, wanted in case.expected.items()], axis=0)
