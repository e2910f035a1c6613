"""Products of matrices in NumPy, from the specification: a right program, and wrong ones."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mor_ref import formats
from mor_ref.arrays import code_dtype
from mor_ref.definitions.dot import DOT_PROFILES
from wrong import dots
from wrong.kernel import Kernel

FORMATS = ("e4m3", "e5m2", "e2m1", "bf16")
SIDE = 4  # side of the tile in the last rows
PERIOD = 128


@dataclass(frozen=True)
class Steps:
    """The steps in which programs differ; the defaults are right."""

    name: str
    mistake: str = ""
    scales: str = "each"
    fused: bool = True
    reversed: bool = False
    upcasts: str = "needed"
    overall: bool = True
    period: int = PERIOD
    transposed: bool = False


def rn32(value):
    """Round a fraction to binary32, ties to even."""
    if value == 0:
        return 0.0
    exponent = math.floor(math.log2(abs(value.numerator)) - math.log2(value.denominator))
    exponent += abs(value) >= Fraction(2) ** (exponent + 1)
    exponent -= abs(value) < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    found = round(value / unit) * unit
    return math.copysign(math.inf if abs(found) >= 2**128 else float(found), value)


def multiplied(x, y):
    """Return a product in binary32."""
    with np.errstate(all="ignore"):
        return float(np.float32(x) * np.float32(y))


def added(scale, partial, c, how):
    """Return scale * partial + c, rounded once or twice."""
    with np.errstate(all="ignore"):
        if not how.fused:
            return float(np.float32(multiplied(scale, partial)) + np.float32(c))
        if not all(map(math.isfinite, (scale, partial, c))):
            return scale * partial + c
    return rn32(Fraction(scale) * Fraction(partial) + Fraction(c))


def dot(a, b, profile, of):
    """Return the dot product of one row, starting from 0."""
    parameters = {"dot_profile": profile, "format_a": of[0], "format_b": of[1]}
    two = {
        name: np.array([codes], code_dtype(formats[fmt]))
        for name, codes, fmt in zip("ab", (a, b), of, strict=True)
    }
    found = dots.run(dots.RIGHT, "dot", parameters, {**two, "c": np.zeros(1, np.uint32)})
    return float(found["result"].view(np.float32)[0])


def partial_sum(a, b, profile, of, how):
    """Return the sum of a piece; promoted sums have 128 products, added up in binary32."""
    if profile != "hopper_fp8_promoted":
        return dot(a, b, profile, of)
    total = 0.0
    for start in range(0, len(a), how.period):
        part = slice(start, start + how.period)
        total = added(1.0, dot(a[part], b[part], "hopper_fp8", of), total, how)
    return total


def factors(arrays, name, n, record, how):
    """Return the factor of each block of a row."""
    with np.errstate(all="ignore"):
        scale = arrays[f"scale_{name}"][n].view(np.float32)
        found = np.float32(1) / scale if record == "scaled" else scale
        if how.overall:
            found = found * arrays[f"overall_{name}"][n : n + 1].view(np.float32)
    return found if how.scales == "each" else np.full_like(found, found[0])


def in_pieces(parameters, arrays, n, how):
    """Return an entry, with each piece scaled alone."""
    profile, block = parameters["dot_profile"], parameters["scale_block"]
    choices = [arrays[f"choice_{name}"][n] for name in "ab"]
    two = [factors(arrays, name, n, parameters["record"], how) for name in "ab"]
    c, count = 0.0, len(choices[0])
    for k in reversed(range(count)) if how.reversed else range(count):
        part = slice(k * block, (k + 1) * block)
        of = tuple(FORMATS[choice[k]] for choice in choices)
        # A block in bfloat16 has no scale.
        own = [1.0 if fmt == "bf16" else float(d[k]) for fmt, d in zip(of, two, strict=True)]
        names, by = ("a", "b"), profile
        if how.upcasts == "always" or not set(of) <= set(DOT_PROFILES[profile].formats):
            names, by, of = ("y_a", "y_b"), DOT_PROFILES[profile].wide, ("bf16", "bf16")
            by = "ampere_bf16" if how.upcasts == "on Ampere" else by
            own = own if how.upcasts == "doubly" else [1.0, 1.0]
        partial = partial_sum(*(arrays[name][n, part] for name in names), by, of, how)
        if how.scales == "at the end":
            own = [1.0, 1.0]
        c = added(multiplied(*own), partial, c, how)
    if how.scales == "at the end":
        c = multiplied(c, multiplied(float(two[0][0]), float(two[1][0])))
    return c


def with_scales(parameters, arrays, how):
    """Return entries of an instruction that takes the scales."""
    fmt = formats["e8m0" if parameters["record"] == "mx" else "e4m3"]
    table = np.array([fmt.value(code) for code in range(fmt.code_count // 2 or 1)])
    if parameters["record"] == "mx":
        table = np.array([fmt.value(code) for code in range(fmt.code_count)])
    asked = {"dot_profile": parameters["dot_profile"], "scale_format": fmt.name}
    asked["scale_block"] = parameters["scale_block"]
    given = {"c": np.zeros(len(arrays["a"]), np.uint32)}
    for name in "ab":
        asked[f"format_{name}"] = FORMATS[arrays[f"choice_{name}"][0, 0]]
        given[name] = arrays[name].astype(np.uint8)
        numbers = arrays[f"scale_{name}"].view(np.float32)
        codes = np.searchsorted(table[: fmt.code_count - 1], np.nan_to_num(numbers))
        found = np.where(np.isnan(numbers), len(table) - 1, codes)
        given[f"scale_{name}"] = found.astype(np.uint8)
        if how.scales != "each":
            given[f"scale_{name}"][:] = given[f"scale_{name}"][:, :1]
    c = dots.run(dots.RIGHT, "dot_scaled", asked, given)["result"].view(np.float32)
    if how.overall:
        with np.errstate(all="ignore"):
            one, other = (arrays[f"overall_{name}"].view(np.float32) for name in "ab")
            c = c * (one * other)
    return c


def run(how, operation, parameters, arrays):
    """Return the entries; None for another operation, or for a profile of another family."""
    profile = parameters.get("dot_profile")
    if operation != "matmul" or profile == "exact" or profile.startswith("cdna"):
        return None
    if how.transposed and len(arrays["a"]) > SIDE * SIDE:
        order = np.arange(len(arrays["a"]))
        order[-SIDE * SIDE :] = order[-SIDE * SIDE :].reshape(SIDE, SIDE).T.ravel()
        arrays = {k: x[order] if k.endswith("b") else x for k, x in arrays.items()}
    if DOT_PROFILES[parameters["dot_profile"]].needs_scales:
        found = with_scales(parameters, arrays, how)
    else:
        rows = range(len(arrays["a"]))
        found = np.array([in_pieces(parameters, arrays, n, how) for n in rows], np.float32)
    return {"result": np.where(np.isnan(found), dots.NAN, found.view(np.uint32))}


RIGHT = Steps("products_in_pieces")
_WRONG = (
    replace(RIGHT, name="products_scale_at_end", mistake="one scale at the end",
            scales="at the end"),
    replace(RIGHT, name="products_first_scale", mistake="one block's scale for all",
            scales="first"),
    replace(RIGHT, name="products_unfused", mistake="products with scales are rounded",
            fused=False),
    replace(RIGHT, name="products_backwards", mistake="pieces from the last one on", reversed=True),
    replace(RIGHT, name="products_always_bf16", mistake="all pieces are upcast", upcasts="always"),
    replace(RIGHT, name="products_scaled_twice", mistake="upcast blocks are scaled again",
            upcasts="doubly"),
    replace(RIGHT, name="products_upcast_for_ampere", mistake="all processors upcast as Ampere",
            upcasts="on Ampere"),
    replace(RIGHT, name="products_without_overall", mistake="NVFP4 has no scale of the tensor",
            overall=False),
    replace(RIGHT, name="products_promoted_late", mistake="sums of 256 products are promoted",
            period=256),
    replace(RIGHT, name="products_transposed", mistake="the tile of B is transposed",
            transposed=True),
)  # fmt: skip


def _kernel(how):
    return Kernel(
        how.name,
        lambda operation, parameters, arrays: run(how, operation, parameters, arrays),
        how.mistake,
        {},
    )


KERNELS = [_kernel(how) for how in (RIGHT, *_WRONG)]
