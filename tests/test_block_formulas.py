"""Representations as formulas: the values of the exact model, which is written in other words."""

import dataclasses
import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mor_ref import golden
from mor_ref.definitions.block_formulas import BlockFormulas, Level, mx_formulas, scaled_formulas
from mor_ref.definitions.encoding import Rounding
from mor_ref.definitions.formats import formats
from mor_ref.definitions.formulas import FormulaError
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact import arithmetic, columns, mx, quantization
from mor_ref.exact.block_formulas import evaluated, quantize
from mor_ref.exact.encoding import encode
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import f32_bits

_SUITES = ("mx", "quantize", "policies", *(f"nvfp4_{profile}" for profile in PROFILES))
_LARGEST = arithmetic.FLT_MAX
_SMALLEST, _NORMAL = math.ldexp(1.0, -149), math.ldexp(1.0, -126)
# Next to the ends of binary32, ties, and numbers whose quotients and sums are next to those.
_LANDMARKS = [
    0.0, _SMALLEST, 3 * _SMALLEST, _NORMAL - _SMALLEST, _NORMAL, _NORMAL + _SMALLEST,
    1 - 2**-24, 1.0, 1 + 2**-23, 1.5, 3.0, 2**24 - 1.0, 2.0**24, 2.0**-24, 3 * 2.0**-25,
    2.0**100 / 3, _LARGEST / 2, _LARGEST, math.ldexp(1, 127), math.inf,
]  # fmt: skip
_NUMBERS = [columns.rounded([sign * x])[0] for x in _LANDMARKS for sign in (1, -1)] + [math.nan]
_binary32 = st.floats(width=32)


def _bits(numbers: Any) -> list[int]:
    return [f32_bits(number) for number in numbers]


@pytest.mark.parametrize("suite", _SUITES)
def test_the_formulas_give_each_golden_row(suite: str) -> None:
    operation = OPERATIONS[SUITES[suite].operation]
    compared = 0
    for case in golden.load(suite):
        if set(operation.optional) & set(case.parameters) - {"recipe"} or not case.arrays["x"].size:
            continue  # amaxes, scales or random words are given
        assert operation.columns is not None
        results = operation.columns(case.parameters, case.arrays)
        for name, bits in results.items():
            if name in case.arrays:
                np.testing.assert_array_equal(bits, case.arrays[name], f"{case.name}, {name}")
                compared += bits.size
    assert compared > 20_000


@pytest.mark.parametrize("name", ["product", "quotient", "total", "difference"])
def test_columns_are_the_same_arithmetic(name: str) -> None:
    scalar, column = getattr(arithmetic, name), getattr(columns, f"{name}s")
    a, b = zip(*itertools.product(_NUMBERS, repeat=2), strict=True)
    assert _bits(column(a, b)) == _bits(map(scalar, a, b))


@given(st.lists(st.tuples(_binary32, _binary32), min_size=1, max_size=40))
def test_columns_are_the_same_arithmetic_anywhere(pairs: list[tuple[float, float]]) -> None:
    a, b = zip(*pairs, strict=True)
    for name in ("product", "quotient", "total", "difference"):
        scalar, column = getattr(arithmetic, name), getattr(columns, f"{name}s")
        assert _bits(column(a, b)) == _bits(map(scalar, a, b)), name


@pytest.mark.parametrize("rounding", ["rne", "rtz", "rtp"])
@pytest.mark.parametrize(
    "name", [name for name, fmt in formats.items() if fmt.bits <= 8 and fmt.name != "e8m0"]
)
def test_columns_have_the_codes_of_the_encoder(name: str, rounding: Rounding) -> None:
    fmt = formats[name]
    values = [fmt.value(code) for code in range(fmt.code_count)]
    finite = sorted({v for v in values if math.isfinite(v)})
    ties = [(low + high) / 2 for low, high in itertools.pairwise(finite)]
    near = [math.nextafter(tie, way) for tie in ties for way in (-math.inf, math.inf)]
    numbers = columns.rounded([*values, *ties, *near, *_NUMBERS])
    assert columns.encoded(numbers, fmt, rounding) == [encode(x, fmt, rounding) for x in numbers]


@pytest.mark.parametrize("rounding", ["rtz", "rtp"])
def test_columns_have_the_powers_of_two_of_the_encoder(rounding: Rounding) -> None:
    powers = [math.ldexp(1.0, e) for e in range(-149, 128)]
    near = [power * (1 + 2**-23) for power in powers]
    numbers = columns.rounded([*powers, *near, *_LANDMARKS, math.nan])
    e8m0 = formats["e8m0"]
    assert columns.encoded(numbers, e8m0, rounding) == [encode(x, e8m0, rounding) for x in numbers]


# ---------------------------------------------------------------------- formulas that read well


def _changed(formulas: BlockFormulas, number: str) -> BlockFormulas:
    *above, last = formulas.levels
    return dataclasses.replace(formulas, levels=(*above, dataclasses.replace(last, number=number)))


def test_the_power_of_an_mx_block_is_taken_before_the_division() -> None:
    """The quotient of this amax is below the normal numbers, and rounds up to another power."""
    e4m3 = formats["e4m3"]
    amax = math.ldexp(1 + 2**-23, 8 - 127)
    formulas = mx_formulas(e4m3, "ceil", 32)
    blocks = quantize([amax], (1, 1), formulas)
    assert blocks.scales["s"].codes == [mx.scale_code([amax], e4m3, "ceil")] == [1]
    other = _changed(formulas, f"min(pow2(amax / 2**8, {1 + 2**-23!r}), 2**120)")
    assert quantize([amax], (1, 1), other).scales["s"].codes == [0]


def test_the_shared_mantissa_of_a_tiny_amax_does_not_overflow() -> None:
    amax = math.ldexp(3.0, -140)
    formulas = scaled_formulas(formats["e4m3"], "gam", "tensor", "tensor")
    mantissa = quantize([amax], (1, 1), formulas).scales["m"].numbers["m"]
    assert list(mantissa) == [arithmetic.quotient(448 / 2**7, 3.0)]
    shared = dataclasses.replace(
        formulas.levels[0], number="max(448 / amax, 2**-126) / pow2(max(448 / amax, 2**-126), 2)"
    )
    simpler = dataclasses.replace(formulas, levels=(shared, formulas.levels[1]))
    assert math.isnan(quantize([amax], (1, 1), simpler).scales["m"].numbers["m"][0])


def test_an_own_representation_has_the_bits_of_its_formulas_step_by_step() -> None:
    """64 e2m1 elements with scales of 5 exponent bits, under a binary32 scale, best of three."""
    ue5m3 = dataclasses.replace(
        formats["e4m3"], name="ue5m3", exponent_bits=5, bias=15, sign="none"
    )
    above = Level("S", "tensor", "amax / 688128 or 1")
    block = Level("s", (1, 64), "(amax / 6) / S", ue5m3)
    own = BlockFormulas(
        formats["e2m1"],
        (above, block),
        decode="s * S",
        encode="min(1 / decode, MAX)",
        tries=("t", "0.875 * t", "1.5 * t"),
    )
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((3, 150)) * np.exp2(rng.integers(-9, 9, (3, 150)))).astype(np.float32)
    blocks = quantize(x.reshape(-1).tolist(), (3, 150), own)
    product, quotient = arithmetic.product, arithmetic.quotient
    s_of_tensor = quotient(float(np.abs(x).max()), 688128.0) or 1.0
    codes: list[int] = []
    scales: list[int] = []
    for row, start in itertools.product(range(3), (0, 64, 128)):
        numbers = [float(v) for v in x[row, start : start + 64]]
        t = quotient(quotient(max(map(abs, numbers)), 6.0), s_of_tensor)
        tries: list[tuple[float, int, int, list[int]]] = []
        for factor in (1.0, 0.875, 1.5):
            code = encode(product(factor, t), ue5m3)
            decode = product(ue5m3.value(code), s_of_tensor)
            factor_of_numbers = min(quotient(1.0, decode), _LARGEST)
            of_elements = [encode(product(v, factor_of_numbers), own.element) for v in numbers]
            error = 0.0
            for v, element in zip(numbers, of_elements, strict=True):
                d = arithmetic.difference(product(own.element.value(element), decode), v)
                error = arithmetic.total(error, product(d, d))
            tries.append((error, len(tries), code, of_elements))
        _, _, code, of_elements = min(tries, key=lambda one: one[:2])
        scales.append(code)
        codes += of_elements
    assert blocks.scales["s"].codes == scales
    assert blocks.codes == codes
    assert len({tuple(blocks.codes[i : i + 8]) for i in range(0, 450, 8)}) > 30


@pytest.mark.parametrize(
    ("formula", "has"),
    [
        ("amax / ", "cannot be read"),
        ("amax ** 2", "'amax ** 2'"),
        ("log2(amax)", "'log2(amax)'"),
        ("min(amax)", "'min(amax)'"),
        ("amax if amax == 1 else 2", "'amax == 1'"),
        ("amax / scale", "has 'scale'; give one of"),
        ("'a'", "has \"'a'\""),
    ],
)
def test_a_formula_is_refused_with_its_part_that_is_wrong(formula: str, has: str) -> None:
    with pytest.raises(FormulaError, match=re.escape(has)):
        BlockFormulas(formats["e4m3"], (Level("s", (1, 32), formula),), "s")


def test_literals_are_rounded_once() -> None:
    """This one is a tie of binary32 after it was rounded to binary64."""
    literal = "1.00000017881393432617187499"
    assert evaluated(literal, {}, 1) == [1 + 2**-23]
    assert columns.rounded([float(literal)]) == [1 + 2**-22]


def test_elements_of_a_scaled_format_are_those_of_the_steps() -> None:
    fmt = formats["e5m2"]
    x = [1.0, -0.0, 3e-39, -1e30, math.inf, math.nan, 7.5]
    blocks = quantize(x, (1, 7), scaled_formulas(fmt, "fp32", "tensor", "tensor"))
    scale = blocks.scales["s"].numbers["encode"][0]
    elements = [quantization.quantize_element(number, scale, fmt) for number in x]
    assert blocks.codes == [element.code for element in elements]
    assert _bits(blocks.y) == _bits(element.y for element in elements)
