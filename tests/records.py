"""The results of the engine and of the exact model for a tensor, side by side."""

import math

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from integers import Integers

import mor_ref
from mor_ref import exact, formats
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.encoding import SpecialCases
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact import arithmetic, mx, nvfp4, policies, quantization
from mor_ref.exact.errors import error_sum
from mor_ref.recipes import as_policy
from mor_ref.schemes.selection.representation import SelectedNumbers

SOURCES = [np.float32, ml_dtypes.bfloat16, np.float16, np.float64]
SCALED = ["e4m3", "e5m2", "e2m1", "e2m3", "e3m2", "e4m3fnuz", "e4m3_ieee", "e3m4"]
_IEEE = SpecialCases(overflow="ieee")


def rows_of(x):
    """Return an array as rows of Python floats; a binary64 is rounded to binary32."""
    rows = math.prod(x.shape[:-1])
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64).reshape(rows, x.shape[-1] if x.ndim else 1)
    return [[arithmetic.rn32_of_binary64(v) for v in row] for row in wide.tolist()]


def bits32(y):
    """Return the binary32 bits of a number, or of the canonical NaN."""
    return exact.encode(y, formats["f32"], "rne", _IEEE)


def codes_and_y(elements):
    """Return the codes and the bits of y, as lists."""
    flat = [element for row in elements for element in row]
    return [e.code for e in flat], [bits32(e.y) for e in flat]


def of_grid(found, grid, entry=lambda value: value):
    """Return the entries of a dictionary for each place of a grid, as nested lists."""
    return [[entry(found[i, j]) for j in range(grid[1])] for i in range(grid[0])]


def sums(error):
    return (error.sum, error.nonzero, error.nonfinite)


def listed(error):
    """Return the error sums of the engine, unit by unit."""
    stacked = np.stack([error.sum, error.nonzero, error.nonfinite], axis=-1)
    return [[tuple(entry) for entry in row] for row in stacked.tolist()]


def error_of_tensor(x, elements):
    """Return the error sums of a whole tensor, from the exact model (ERR-002)."""
    pairs = zip(rows_of(x), elements, strict=True)
    found = error_sum(
        (number, e.y) for row, made in pairs for number, e in zip(row, made, strict=True)
    )
    return of_grid({(0, 0): found}, partition(x.shape, "tensor").grid, sums)


def bits_list(y):
    return np.ascontiguousarray(y).view(np.uint32).ravel().tolist()


def engine_quantize(x, fmt, **arguments):
    """Return every record of mor_ref.quantize as plain lists."""
    found = mor_ref.quantize(x, fmt, **arguments)
    exponent, mantissa = found.scale_exponent, found.scale_mantissa
    return {
        "amax": found.amax.tolist(),
        "scale": found.scale.tolist(),
        "exponent": None if exponent is None else exponent.tolist(),
        "mantissa": None if mantissa is None else mantissa.tolist(),
        "codes": found.codes.ravel().tolist(),
        "y": bits_list(found.dequantize()),
        "error": listed(found.error),
    }


def exact_quantize(x, fmt, scaling="gam", block="tensor", group="tensor"):
    """Return the records of `engine_quantize`, from the exact model."""
    cut = partition(x.shape, block, group)
    target = mor_ref.definitions.formats.as_format(fmt)
    found = quantization.quantize(rows_of(x), target, scaling, cut)
    codes, y = codes_and_y(found.elements)
    stored = (
        None if scaling == "fp32" else of_grid(found.scale, cut.grid, lambda s: s.exponent_code)
    )
    return {
        "amax": of_grid(found.amax, cut.grid),
        "scale": of_grid(found.scale, cut.grid, lambda s: s.value),
        "exponent": stored,
        "mantissa": of_grid(found.mantissa, cut.group_grid) if scaling == "gam" else None,
        "codes": codes,
        "y": y,
        "error": of_grid(found.error, cut.grid, sums),
    }


def engine_nvfp4(x, **arguments):
    found = mor_ref.quantize_nvfp4(x, **arguments)
    return {
        "codes": found.codes.ravel().tolist(),
        "scale": found.block_scale.tolist(),
        "global": bits_list(canonical(np.atleast_1d(found.global_encode_scale))),
        "global decode": bits_list(canonical(np.atleast_1d(found.global_decode_scale))),
        "y": bits_list(found.dequantize()),
        "error": listed(found.error),
    }


def canonical(x):
    """Return the bits of numbers, with the canonical one for every NaN."""
    bits = x.view(np.uint32).copy()
    bits[np.isnan(x)] = 0x7FFFFFFF
    return bits


def exact_nvfp4(x, profile="te", tile=(1, 16)):
    cut = partition(x.shape, tile)
    sides = tile
    found = nvfp4.nvfp4(rows_of(x), PROFILES[profile], sides)
    codes, y = codes_and_y(found.elements)
    return {
        "codes": codes,
        "scale": of_grid(found.scale, cut.grid, lambda s: s.code),
        "global": [bits32(s.encode) for s in found.global_scale],
        "global decode": [bits32(s.decode) for s in found.global_scale],
        "y": y,
        "error": error_of_tensor(x, found.elements),
    }


def engine_mx(x, fmt, **arguments):
    found = mor_ref.quantize_mx(x, fmt, **arguments)
    return {
        "codes": found.codes.ravel().tolist(),
        "scale": found.scale.tolist(),
        "y": bits_list(found.dequantize()),
        "error": listed(found.error),
    }


def exact_mx(x, fmt, scale_rule="floor", block=32):
    cut = partition(x.shape, (1, block))
    found = mx.mx(rows_of(x), mor_ref.definitions.formats.as_format(fmt), scale_rule, block)
    codes, y = codes_and_y(found.elements)
    return {
        "codes": codes,
        "scale": of_grid(found.scale, cut.grid),
        "y": y,
        "error": error_of_tensor(x, found.elements),
    }


def engine_mor(x, policy, **arguments):
    found = mor_ref.mor(x, policy, **arguments)
    errors = {name: listed(error) for name, error in found.error.items()}
    return {
        "choice": found.choice.tolist(),
        "amax": found.amax.tolist(),
        "amin": found.amin.tolist(),
        "error": errors,
        "output": found.output.ravel().tolist(),
        "codes": {
            name: q.codes.ravel().tolist()
            for name, q in found.quantized.items()
            if hasattr(q, "codes")
        },
        "y": {name: bits_list(canonical(q.dequantize())) for name, q in found.quantized.items()},
    }


def exact_mor(x, policy, block=None, scaling="gam", threshold=None):
    rules = as_policy(policy)
    rules = rules if threshold is None else rules.with_threshold(threshold)
    cut = partition(x.shape, rules.block if block is None else block, rules.group)
    kept = None
    if x.dtype == ml_dtypes.bfloat16:
        own = np.ascontiguousarray(x).view(np.uint16).reshape(cut.rows, cut.columns).tolist()
        kept = lambda i, j: own[i][j]  # noqa: E731  # two lines would say less
    found = policies.mix(rows_of(x), rules, scaling, cut, kept)
    unit = cut.block if rules.unit == "block" else (max(cut.rows, 1), max(cut.columns, 1))
    grid = (-(-cut.rows // unit[0]), -(-cut.columns // unit[1]))
    names = list(found.tried)
    return {
        "choice": of_grid(found.decisions, grid, lambda d: d.choice),
        "amax": of_grid(found.decisions, grid, lambda d: d.amax),
        "amin": of_grid(found.decisions, grid, lambda d: d.amin),
        "error": {
            name: of_grid(found.decisions, grid, lambda d, n=name: sums(d.errors[n]))
            for name in names
        },
        "output": [code for row in found.output for code in row],
        "codes": {
            one.name: codes_and_y(found.tried[one.name])[0]
            for one in rules.tried
            if not isinstance(one, Integers | SelectedNumbers)  # which keep none
        },
        "y": {name: codes_and_y(found.tried[name])[1] for name in names},
    }


def differing(actual, expected):
    """Return the names of records that differ, with the values; to be compared with {}."""
    assert actual.keys() == expected.keys()
    return {
        name: (actual[name], expected[name]) for name in expected if actual[name] != expected[name]
    }


def adversarial(shape, seed, dtype=np.float32):
    """Return magnitudes over many binades: ties, zeros, subnormals, huge and non-finite numbers."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * np.exp2(random.integers(-12, 12, shape))
    flat = x.reshape(-1)
    specials = [0.0, -0.0, 1e-45, -1e-40, 2.0**-126, 3e38, -3.3895e38, 6.0, 448.0, 1.75, 2.0**-133]
    places = random.integers(0, max(flat.size, 1), min(len(specials), flat.size))
    kept = random.random() < 0.4
    for place, value in zip(places, specials, strict=False):
        flat[place] = flat[place] if kept else value
    if random.random() < 0.3 and flat.size:
        flat[random.integers(0, flat.size)] = random.choice([np.inf, -np.inf, np.nan])
    with np.errstate(all="ignore"):
        return x.astype(dtype)


shapes = st.tuples(st.integers(0, 9), st.integers(0, 40)) | st.tuples(st.integers(1, 70))
