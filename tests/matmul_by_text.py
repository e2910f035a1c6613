"""Entries of products of matrices from the text of the chapter alone (GEM-001, GEM-003, GEM-004).

It was written from the rules and the fields of the suite, by a programmer who had not read the
exact model, the engine or the kernels. Dot products are those of `dots_by_text`.
"""

import math
from fractions import Fraction

import numpy as np
from dots_by_text import (
    FORMATS,
    add,
    chunks,
    decode,
    exact,
    exponent,
    multiply,
    numbers,
    pattern,
    rounded,
    row_of,
)

from mor_ref.definitions.dot import DOT_PROFILES

CHOICES = ("e4m3", "e5m2", "e2m1", "bf16")  # of the fields choice_a and choice_b
SCALES = {"mx": "e8m0", "nvfp4": "e4m3"}


def reciprocal(x):
    """Return RN32(1 / x), with the zeros and infinities of IEEE 754."""
    if x and math.isfinite(x):
        return rounded(1 / Fraction(x))
    return 1 / x if x else math.copysign(math.inf, x)


def wide(profile):
    """Return the bf16 profile of the same architecture (GEM-004)."""
    if "bf16" in DOT_PROFILES[profile].formats:
        return profile
    if profile.startswith("cdna2_"):
        return "cdna2_bf16_1k"
    return next(p for p in DOT_PROFILES if p.endswith("_bf16") and profile.startswith(p[:-4]))


def operand(parameters, arrays, name, row):
    """Return the blocks of an operand: codes, format, scale, overall scale, and codes of y."""
    size, found = parameters["scale_block"], []
    g = decode(int(arrays["overall_" + name][row]), "f32")
    for k, choice in enumerate(arrays["choice_" + name][row]):
        part, fmt = slice(k * size, (k + 1) * size), CHOICES[choice]
        scale = decode(int(arrays["scale_" + name][row][k]), "f32")
        if parameters["record"] == "scaled":
            scale = reciprocal(scale)
        w, g_of = (1.0, 1.0) if fmt == "bf16" else (scale, g)
        codes, y = (arrays[field + name][row][part] for field in ("", "y_"))
        found.append((codes, fmt, w, g_of, y))
    return found


def plain(a, b, formats, profile, scales=((1.0, 0), (1.0, 0))):
    """Return products of codes, with the same scales for all."""
    pairs = zip(numbers(a, formats[0], profile), numbers(b, formats[1], profile), strict=True)
    return [tuple(zip(x, y, *scales, strict=True)) for x, y in pairs]


def in_exact(a, b):
    """GEM-003: the exact sum of all elements times factors, which are not rounded."""
    terms = []
    for (codes_a, of_a, w_a, g_a, _), (codes_b, of_b, w_b, g_b, _) in zip(a, b, strict=True):
        scales = [(w * g, 0) for w, g in ((w_a, g_a), (w_b, g_b))]
        terms += plain(codes_a, codes_b, (of_a, of_b), "exact", scales)
    return exact(terms, 0.0, None)[2]


def by_instruction(a, b, profile, record):
    """GEM-003: the dot product under the codes of scales, times both overall scales in NVFP4."""
    low, terms = -127 if record == "mx" else 1 - FORMATS[SCALES[record]][2], []
    for one, other in zip(a, b, strict=True):
        scales = [(w, exponent(w, low)) for w in (one[2], other[2])]
        terms += plain(one[0], other[0], (one[1], other[1]), profile, scales)
    found = chunks(terms, 0.0, row_of(profile))[2]
    return multiply(found, multiply(a[0][3], b[0][3])) if record == "nvfp4" else found


def in_pieces(a, b, profile):
    """GEM-003, GEM-004: one piece after the other, times the factors of its blocks."""
    c = 0.0
    for blocks in zip(a, b, strict=True):
        by, factors = profile, [multiply(w, g) for _, _, w, g, _ in blocks]
        two, formats = [x[0] for x in blocks], [x[1] for x in blocks]
        if not set(formats) <= set(DOT_PROFILES[profile].formats):
            by, factors = wide(profile), (1.0, 1.0)
            two, formats = [x[4] for x in blocks], ("bf16", "bf16")
        p = chunks(plain(*two, formats, by), 0.0, row_of(by))[2]
        c = add(multiply(*factors) * p, c)
    return c


def entries(parameters, arrays):
    """Return the field of each row of a case of `matmul`."""
    profile, record = parameters["dot_profile"], parameters["record"]
    family, found = row_of(profile)[0], []
    for row in range(len(arrays["a"])):
        a, b = (operand(parameters, arrays, name, row) for name in "ab")
        if family == "exact":
            c = in_exact(a, b)
        elif family in ("st_fdpa", "gst_fdpa"):
            c = by_instruction(a, b, profile, record)
        else:
            c = in_pieces(a, b, profile)
        found.append(pattern(c))
    return {"result": np.array(found, np.uint32)}
