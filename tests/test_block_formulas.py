"""Representations as formulas: the values of the exact model, which is written in other words."""

import dataclasses
import itertools
import math
import re
import tomllib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mor_ref import Format, golden
from mor_ref.definitions.block_formats import (
    BlockFormat,
    BlockFormatError,
    BlockScale,
    block_format_of,
)
from mor_ref.definitions.block_formulas import mx_formulas, nvfp4_formulas, scaled_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.encoding import Rounding
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.exact import arithmetic, columns, mx, quantization, scales
from mor_ref.exact.block_formats import InBlocks, evaluated, quantize
from mor_ref.exact.encoding import encode
from mor_ref.exact.error_columns import bf16_codes, error_sums
from mor_ref.exact.errors import error_sum
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import f32_bits
from mor_ref.recipes import as_block_format

_SUITES = (
    "mx",
    "quantize",
    "policies",
    "affine",
    "shared",
    *(f"nvfp4_{profile}" for profile in PROFILES),
)
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
def test_columns_give_each_golden_row(suite: str) -> None:
    operation = OPERATIONS[SUITES[suite].operation]
    compared = 0
    for case in golden.load(suite):
        if set(operation.optional) & set(case.parameters) - {"recipe"} or not case.arrays["x"].size:
            continue  # amaxes, scales or random words are given
        assert operation.columns is not None
        results = operation.exact_of_many(case.parameters, case.arrays)
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
    points = np.array([*finite, *ties, fmt.largest * (1 + 2**-5)], np.float32)
    near = [np.nextafter(points, np.float32(way)) for way in (-np.inf, np.inf)]
    numbers = columns.rounded([*values, *ties, *np.concatenate(near).tolist(), *_NUMBERS])
    assert columns.encoded(numbers, fmt, rounding) == [encode(x, fmt, rounding) for x in numbers]


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_columns_have_the_codes_of_formats_whose_ties_have_many_bits(name: str) -> None:
    fmt = formats[name]
    ties = [(fmt.value(code) + fmt.value(code + 1)) / 2 for code in range(1, fmt.largest_code, 997)]
    numbers = columns.rounded([*ties, *(tie * (1 + 2**-23) for tie in ties), *_NUMBERS])
    assert columns.encoded(numbers, fmt) == [encode(x, fmt, "rne") for x in numbers]


def test_columns_have_the_bfloat16_codes_of_fake_quantization() -> None:
    upper = np.arange(1, 0x7F80, 7, np.uint32) << np.uint32(16)
    bits = np.concatenate([upper | np.uint32(low) for low in (0, 1, 0x7FFF, 0x8000, 0x8001)])
    numbers = bits.view(np.float32).tolist()
    numbers += [-number for number in numbers]
    assert bf16_codes(numbers) == list(map(quantization.to_bf16, numbers))
    assert bf16_codes(upper.view(np.float32).tolist()) == (upper >> np.uint32(16)).tolist()


def test_error_sums_of_columns_are_those_of_the_steps() -> None:
    """With zeros, infinities, NaN, errors above 1, and numbers that bfloat16 loses."""
    x = [1.0, 0.0, -0.0, math.inf, math.nan, 3.0, -2.0, 5e-45, 1.5, -1.0, 3e38, 0.0, 7.0, 1.0]
    y = [
        1.5,
        0.0,
        2.0,
        math.inf,
        1.0,
        math.nan,
        7.0,
        0.0,
        1.25,
        1.0,
        _LARGEST,
        _LARGEST,
        7.0,
        -0.25,
    ]
    x, y = (columns.rounded(numbers) for numbers in (x, y))
    for block in ((2, 3), (1, 2), (1, 7), (2, 7)):
        order = InBlocks(partition((2, 7), block))
        blocks = zip(*(order.blocks(order.taken(numbers)) for numbers in (x, y)), strict=True)
        sums = [error_sum(zip(*pair, strict=True)) for pair in blocks]
        assert error_sums(order.taken(x), order.taken(y), order) == sums


@pytest.mark.parametrize("rounding", ["rtz", "rtp"])
def test_columns_have_the_powers_of_two_of_the_encoder(rounding: Rounding) -> None:
    powers = [math.ldexp(1.0, e) for e in range(-149, 128)]
    near = [power * (1 + 2**-23) for power in powers]
    numbers = columns.rounded([*powers, *near, *_LANDMARKS, math.nan])
    e8m0 = formats["e8m0"]
    assert columns.encoded(numbers, e8m0, rounding) == [encode(x, e8m0, rounding) for x in numbers]


# ---------------------------------------------------------------------- formulas that read well


def _changed(formulas: BlockFormat, number: str) -> BlockFormat:
    *above, last = formulas.scales
    return dataclasses.replace(formulas, scales=(*above, dataclasses.replace(last, number=number)))


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
        formulas.scales[0], number="max(448 / amax, 2**-126) / pow2(max(448 / amax, 2**-126), 2)"
    )
    simpler = dataclasses.replace(formulas, scales=(shared, formulas.scales[1]))
    assert math.isnan(quantize([amax], (1, 1), simpler).scales["m"].numbers["m"][0])


UE5M3 = dataclasses.replace(formats["e4m3"], name="ue5m3", exponent_bits=5, bias=15, sign="none")
OWN = BlockFormat(
    "own",
    "e2m1",
    (
        BlockScale("S", "tensor", "amax / 688128 or 1"),
        BlockScale("s", (1, 64), "(amax / 6) / S", UE5M3),
    ),
    decode="s * S",
    encode="min(1 / decode, MAX)",
    tries=("t", "0.875 * t", "1.5 * t"),
)


@pytest.mark.parametrize("exponent", [-112, -30, 0, 90, 110])
def test_scales_of_a_format_with_any_largest_number_are_those_of_the_rules(exponent: int) -> None:
    """GAM-001 to GAM-005: quotients of the formulas are above all numbers for some of these."""
    fmt = Format("own", exponent_bits=4, mantissa_bits=3, bias=15 - exponent, specials="fn")
    formulas = scaled_formulas(fmt, "gam", "row", "row")
    bits = np.random.default_rng(7).integers(1, 0x7F800000, 300, np.uint32)
    amaxes = [*(float(amax) for amax in bits.view(np.float32)), math.ldexp(3.0, -149)]
    found = quantize(amaxes, (len(amaxes), 1), formulas).scales["s"].numbers["encode"]
    expected = [
        scales.scale_of_block(
            "gam", fmt.largest, amax, scales.group_mantissa(fmt.largest, amax)
        ).value
        for amax in amaxes
    ]
    assert list(found) == expected


def test_an_own_block_format_has_the_bits_of_its_formulas_step_by_step() -> None:
    """BLF-005: 64 e2m1 elements with scales of 5 exponent bits, the best of three."""
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((3, 150)) * np.exp2(rng.integers(-9, 9, (3, 150)))).astype(np.float32)
    blocks = quantize(x.reshape(-1).tolist(), (3, 150), OWN)
    product, quotient = arithmetic.product, arithmetic.quotient
    s_of_tensor = quotient(float(np.abs(x).max()), 688128.0) or 1.0
    codes: list[int] = []
    scales: list[int] = []
    for row, start in itertools.product(range(3), (0, 64, 128)):
        numbers = [float(v) for v in x[row, start : start + 64]]
        t = quotient(quotient(max(map(abs, numbers)), 6.0), s_of_tensor)
        tries: list[tuple[float, int, int, list[int]]] = []
        for factor in (1.0, 0.875, 1.5):
            code = encode(product(factor, t), UE5M3)
            decode = product(UE5M3.value(code), s_of_tensor)
            factor_of_numbers = min(quotient(1.0, decode), _LARGEST)
            of_elements = [encode(product(v, factor_of_numbers), OWN.fmt) for v in numbers]
            error = 0.0
            for v, element in zip(numbers, of_elements, strict=True):
                d = arithmetic.difference(product(OWN.fmt.value(element), decode), v)
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
        ("amax / ", "number of scale s: formula 'amax / ' cannot be read at column 7: invalid"),
        (" min(amax / 6)), 448)", "cannot be read at column 15: unmatched ')'"),
        ("\uff41max / 6", "cannot be read at column 1: no formula has '\uff41'"),
        ("amax / 6 # c", "cannot be read at column 10: no formula has '#'"),
        ("amx / 6", "that has 'amx'; did you mean amax? give one of amax"),
        ("sqare(amax)", "that calls 'sqare'; did you mean square? give min,"),
        ("0x10 * amax", "formula '0x10 * amax' has 0x10, which is no decimal number; give one"),
        ("amax ** 2", "'amax ** 2'"),
        ("log2(amax)", "'log2(amax)'"),
        ("min(amax)", "'min(amax)'"),
        ("amax if amax == 1 else 2", "'amax == 1'"),
        ("amax / scale", "number of scale s is a formula 'amax / scale' that has 'scale'; give"),
        ("'a'", "has \"'a'\""),
        ("max(1e-4, amax)", "loses a NaN in max(1e-4, amax), which keeps that of its first"),
        ("max(amax, 2) / min(2 * 224, 1 / amax)", "loses a NaN in min(2 * 224, 1 / amax), which"),
        ("max(1e-4, percentile(50))", "loses a NaN in max(1e-4, percentile(50)), which"),
        ("percentile(0)", "has a percentile of '0'; give a number above 0 and at most 100 with"),
        ("percentile(100.5)", "has a percentile of '100.5'; give a number above 0"),
        ("percentile(99.99999)", "has a percentile of '99.99999'; give a number above 0"),
        ("percentile(amax)", "has a percentile of 'amax'; give a number above 0"),
        ("percentile(1, 2)", "'percentile(1, 2)'"),
    ],
)
def test_a_formula_is_refused_with_its_part_that_is_wrong(formula: str, has: str) -> None:
    """BLF-002 and BLF-007."""
    with pytest.raises(BlockFormatError, match=re.escape(has)):
        BlockFormat("own", "e4m3", (BlockScale("s", (1, 32), formula),), decode="s")


@pytest.mark.parametrize("tries", [("t", "s * 1.5"), ("s",)])
def test_a_try_does_not_name_its_own_scale(tries: tuple[str, ...]) -> None:
    """BLF-005: the scale is made of the formula."""
    has = f"a try is a formula {tries[-1]!r} that has 's'; give one of amax, g, amax_g, amax_s, t"
    scales = BlockScale("g", "tensor", "amax"), BlockScale("s", (1, 32), "amax / g")
    with pytest.raises(BlockFormatError, match=re.escape(has)):
        BlockFormat("own", "e4m3", scales, decode="s * g", tries=tries)


_BEYOND = "which is far beyond the numbers of binary32"


@pytest.mark.parametrize(
    ("formula", "has"),
    [
        ("amax / 2**1000000000", f"has 2 ** 1000000000, {_BEYOND}"),
        ("9**9**9", f"has 9 ** 9 ** 9, {_BEYOND}"),
        ("1**-1000000000", f"has 1 ** (-1000000000), {_BEYOND}"),
        ("0**-1", f"has 0 ** (-1), {_BEYOND}"),
        ("MAX**3", f"has MAX ** 3, {_BEYOND}"),
        ("1e999999999 * amax", f"has 1e999999999, {_BEYOND}"),
        ("1e-999999999 * amax", f"has 1e-999999999, {_BEYOND}"),
        ("percentile(1e999999999)", f"has 1e999999999, {_BEYOND}"),
        ("+".join(["amax"] * 5000), "has 24,999 characters; give at most 2,000"),
        ("+".join(["amax"] * 300), "more than 100 operators one in the other"),
        ("-" * 1900 + "amax", "more than 100 operators one in the other"),
        ("amax\0", "cannot be read"),
    ],
    ids=lambda text: text[:16],
)
def test_a_formula_that_is_too_long_to_compute_is_refused(formula: str, has: str) -> None:
    with pytest.raises(BlockFormatError, match=f"^[^;]*number of scale s: .*{re.escape(has)}"):
        BlockFormat("own", "e4m3", (BlockScale("s", (1, 32), formula),), decode="s")


def test_the_ends_of_literals() -> None:
    for formula in ("1e99", "1e-100", "2**-149", "0e999999999", "0**0", "(-2)**3", "1**3"):
        BlockFormat("own", "e4m3", (BlockScale("s", (1, 32), f"amax or {formula}"),), decode="s")


@pytest.mark.parametrize(
    ("fields", "has"),
    [
        ({"element": "bf16"}, "its elements are bf16, whose exponents are all those of binary32"),
        (
            {"element": "e8m0"},
            "its elements are e8m0, of 8 bits and 0 mantissa bits; give a format",
        ),
        (
            {"element": "f32"},
            "its elements are f32, of 32 bits and 23 mantissa bits; give a format",
        ),
        ({"scales": ()}, "it has no scales"),
        ({"decode": None, "encode": None}, "neither decode nor encode"),
        ({"counted": "some"}, "counted is 'some'"),
        ({"tries": ()}, "it has no tries"),
        ({"tries": "1.5 * t"}, "tries is '1.5 * t'; give a list of formulas, such as ['t', '1.5"),
        ({"tries": 3}, "tries is 3; give a list"),
        ({"drops_sign_of_zero": "no"}, "drops_sign_of_zero is 'no'; give true or false"),
        ({"has_negative_zero": 0}, "has_negative_zero is 0; give true or false"),
        ({"rounding": "rtz"}, "rounding is 'rtz'; elements are rounded to nearest: give one of"),
        ({"rounding": None}, "rounding is None; elements are rounded to nearest: give one of"),
        (
            {"has_negative_zero": False, "drops_sign_of_zero": True},
            "it has no -0, and drops its sign; leave drops_sign_of_zero out",
        ),
        (
            {"has_negative_zero": False, "element": "int8_mx"},
            "its elements are int8_mx, which has no -0; leave has_negative_zero out",
        ),
        ({"drops_sign_of_zero": []}, "drops_sign_of_zero is []; give true or false"),
        ({"scales": BlockScale("s", "row", "1")}, "scales is BlockScale("),
        ({"scales": ("s",)}, "scales is ('s',); give a tuple of BlockScale"),
        ({"scales": (BlockScale(3, "row", "amx"),)}, "a scale has the name 3"),
        ({"tries": ("u",)}, "a try is a formula 'u' that has 'u'"),
        ({"error": "y - z"}, "error is a formula 'y - z' that has 'z'"),
        (
            {"decode": "percentile(99)"},
            "decode is a formula 'percentile(99)' that has a percentile; give it in the number of",
        ),
        ({"scales": (BlockScale("amax", "row", "1"),)}, "a scale has the name 'amax'"),
        ({"scales": (BlockScale("e4m3", "row", "1"),)}, "a scale has the name 'e4m3'"),
        ({"scales": (BlockScale("if", "row", "1"),)}, "a scale has the name 'if'"),
        (
            {"scales": (BlockScale("a", "row", "1"), BlockScale("a", (1, 4), "1"))},
            "a scale has the name 'a'",
        ),
        (
            {"scales": (BlockScale("a", "row", "1"), BlockScale("s", (2, 4), "1"))},
            "scale s is over (2, 4), which does not lie in 'row'",
        ),
        (
            {"scales": (BlockScale("a", (4, 4), "1"), BlockScale("s", (2, 3), "1"))},
            "scale s is over (2, 3), which does not lie in (4, 4)",
        ),
    ],
)
def test_a_block_format_that_cannot_exist_is_refused(fields: dict[str, Any], has: str) -> None:
    """BLF-001."""
    usual: dict[str, Any] = {
        "element": "e4m3", "scales": (BlockScale("s", (1, 32), "amax"),), "decode": "s"
    }  # fmt: skip
    with pytest.raises(BlockFormatError, match=re.escape(has)):
        BlockFormat("own", **{**usual, **fields})


@pytest.mark.parametrize("rounding", ["rto", "sr"])
def test_a_scale_is_refused_with_a_rounding_that_its_format_lacks(rounding: Rounding) -> None:
    with pytest.raises(ValueError, match="rounding is"):
        BlockScale("s", "row", "amax", "e8m0", rounding)


def test_a_rounding_of_a_scale_that_is_not_rounded_is_refused() -> None:
    assert BlockScale("s", "row", "amax", "f32", "rne") == BlockScale("s", "row", "amax")
    with pytest.raises(BlockFormatError, match="scale 's' has the rounding 'rtz', but it is"):
        BlockScale("s", "row", "amax", "f32", "rtz")


@pytest.mark.parametrize(
    ("table", "has"),
    [
        ('{ name = "z" }', "a format has no exponent_bits; give name, exponent_bits, mantissa_"),
        ('{ name = "z", exponent_bit = 5 }', "'exponent_bit', which is not known; did you mean"),
    ],
)
def test_a_format_in_a_text_lacks_a_key_or_has_another(table: str, has: str) -> None:
    text = 'name = "own"\nelement = {}\ndecode = "s"\n[[scales]]\nname = "s"\nover = "row"\n'
    text += 'number = "amax"\nstored = {}\n'
    for element, stored in ((table, '"f32"'), ('"e4m3"', table)):
        with pytest.raises(ValueError, match=re.escape(has)):
            as_block_format(text.replace("{}", element, 1).replace("{}", stored))


def test_a_negative_factor_is_refused() -> None:
    negative = dataclasses.replace(OWN, decode="0 - s", tries=("t",))
    with pytest.raises(ValueError, match=r"decode of block format 'own' is '0 - s', which is neg"):
        quantize([1.0], (1, 1), negative)


def test_equal_block_formats_have_equal_texts_which_read_back() -> None:
    """BLF-006."""
    records = [OWN, dataclasses.replace(OWN, tries=("t",))]
    records += [nvfp4_formulas(profile, (1, 16)) for profile in PROFILES.values()]
    records += [mx_formulas(formats["e4m3"], rule, 32) for rule in ("ceil", "rceil")]
    records += [scaled_formulas(formats["e5m2"], "gam", (128, 128), "tensor")]
    for record in records:
        again = block_format_of(tomllib.loads(record.text))
        assert again == record
        assert again.digest == record.digest
    assert len({record.digest for record in records}) == len(records)


def test_literals_are_rounded_once() -> None:
    """This one is a tie of binary32 after it was rounded to binary64."""
    literal = "1.00000017881393432617187499"
    assert evaluated(literal, {}, 1) == [1 + 2**-23]
    assert list(columns.rounded([float(literal)])) == [1 + 2**-22]


def test_elements_of_a_scaled_format_are_those_of_the_steps() -> None:
    fmt = formats["e5m2"]
    x = [1.0, -0.0, 3e-39, -1e30, math.inf, math.nan, 7.5]
    blocks = quantize(x, (1, 7), scaled_formulas(fmt, "fp32", "tensor", "tensor"))
    scale = blocks.scales["s"].numbers["encode"][0]
    elements = [quantization.quantize_element(number, scale, fmt) for number in x]
    assert blocks.codes == [element.code for element in elements]
    assert _bits(blocks.y) == _bits(element.y for element in elements)
