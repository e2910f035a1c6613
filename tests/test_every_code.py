"""Each code of a scale and of an element is expected in each kind of call, if there is an input."""

import functools
import math

import numpy as np
import pytest
from test_wrong_kernels import cases_of

from mor_ref.definitions.formats import formats
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact.mx import scale_code
from mor_ref.golden.inputs.every_code import every_value
from mor_ref.golden.suites.mx import ELEMENTS
from mor_ref.golden.suites.scales import SCALED
from mor_ref.operations.bits import numbers_of

# The rule ceil makes no number larger than a power of two, whose code this is. With int8_mx and
# e2m1 all codes occur: scales end at 2^127, and an infinity becomes 6.
_LAST_OF_CEIL = {"e4m3": 0x78, "e5m2": 0x78, "e2m3": 0x18, "e3m2": 0x1C}
_PAIRS = [(name, rule) for name in ELEMENTS for rule in SCALE_RULES.specified]
_TILES = [(name, tile) for name in PROFILES.specified for tile in PROFILES[name].tiles]
# The scales that a profile does not have; one of a NaN has no input.
_CLAMPED = {"torchao": range(8), "modelopt": range(1), "compressed_tensors": range(1)}


def seen(suite, field, **kind):
    """Return the codes of a field in the cases of a kind of call."""
    found = set()
    for case, _ in cases_of(suite):
        if all(case.parameters.get(name) == value for name, value in kind.items()):
            found |= set(np.unique(case.arrays[field]).tolist())
    return found


@functools.cache
def scales_of(fmt, rule):
    """Return the codes of scales of all amaxes of bfloat16, and that of a NaN."""
    amaxes = numbers_of(np.arange(0x7F82, dtype=np.uint16), "bf16")
    return {scale_code([amax], formats[fmt], rule) for amax in amaxes}


def codes_of(fmt, rule=""):
    """Return the codes of finite numbers; with ceil, most lack the largest ones."""
    row = formats[fmt]
    finite = {code for code in range(row.code_count) if abs(row.value(code)) <= row.largest}
    if rule != "ceil" or fmt not in _LAST_OF_CEIL:
        return finite
    most = row.value(_LAST_OF_CEIL[fmt])
    return {code for code in finite if abs(row.value(code)) <= most}


@pytest.mark.tier("full", but=["[e4m3-"])
@pytest.mark.parametrize(("fmt", "rule"), _PAIRS)
def test_each_scale_and_code_of_mx(fmt, rule):
    kind = {"format": fmt, "scale_rule": rule}
    for suite, source in (("mx", "bf16"), ("mx", "f32"), ("mx_blocks", "f32")):
        assert scales_of(fmt, rule) <= seen(suite, "scale", source=source, **kind)
        assert codes_of(fmt, rule) <= seen(suite, "code", source=source, **kind)


@pytest.mark.parametrize(("profile", "tile"), _TILES)
def test_each_scale_of_nvfp4(profile, tile):
    scales = set(range(0x7F)) - set(_CLAMPED.get(profile, ()))
    kind = {"profile": profile, "tile": list(tile)}
    assert seen(f"nvfp4_{profile}", "block_scale", **kind) >= scales
    assert seen(f"nvfp4_{profile}", "code", **kind) == set(range(16))
    assert seen("nvfp4_blocks", "block_scale", profile=profile) >= scales


@pytest.mark.parametrize("scaling", ["gam", "fp32", "e8m0"])
@pytest.mark.parametrize("fmt", SCALED)
def test_each_code_of_quantize(fmt, scaling):
    kind = {"format": fmt, "scaling": scaling}
    for suite in ("quantize", "quantize_blocks"):
        assert seen(suite, "code", **kind) >= codes_of(fmt)
    if scaling != "fp32":
        least = math.frexp(formats[fmt].largest)[1] - 2  # of the largest amax of binary32
        assert seen("scale_steps", "exponent", **kind) >= set(range(max(least, 1), 255))


def test_every_value_is_a_code_of_its_own():
    for name in ("e4m3", "e5m2"):
        assert np.unique(every_value(formats[name]).x).size == len(codes_of(name))
