"""Lists that contain themselves, or the same list over and over, are refused in a sentence."""

import pytest

import mor_ref

ENDLESS: list = []
ENDLESS.append(ENDLESS)
ENDLESS_LATER: list = [1.0]
ENDLESS_LATER.append(ENDLESS_LATER)
LARGE: list = [1.0]
for _ in range(12):
    LARGE = [LARGE] * 10
FUNCTIONS = {
    "encode": lambda x: mor_ref.encode(x, "e4m3"),
    "decode": lambda x: mor_ref.decode(x, "e4m3"),
    "quantize": lambda x: mor_ref.quantize(x, "e4m3"),
    "quantize_affine": lambda x: mor_ref.quantize_affine(x, "int8"),
    "scale": lambda x: mor_ref.quantize_affine([1.0], "int8", scale=x),
    "zero_point": lambda x: mor_ref.quantize_affine([1.0], "int8", scale=1.0, zero_point=x),
    "format": lambda x: mor_ref.quantize([1.0], x),
    "finfo": mor_ref.finfo,
    "mix_formats": mor_ref.mix_formats,
    "mix_layer": mor_ref.mix_layer,
    "mor": mor_ref.mor,
    "packed": mor_ref.layouts.packed,
    "reciprocal": mor_ref.layouts.reciprocal,
    "Hadamard": mor_ref.Hadamard,
    "Sqnr": mor_ref.Sqnr,
    "FormulaFunction": mor_ref.FormulaFunction,
    "dot": lambda x: mor_ref.dot(x, [1], profile="f32_fma", formats=("f32", "f32")),
}


@pytest.mark.parametrize("x", [ENDLESS, ENDLESS_LATER, LARGE], ids=["endless", "later", "large"])
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_lists_that_no_array_has(function, x):
    with pytest.raises((TypeError, ValueError)) as refused:
        function(x)
    assert "; give" in str(refused.value) or "; take one of" in str(refused.value)


def test_a_list_that_comes_again_is_an_array():
    row = [1.0, 2.0]
    assert mor_ref.encode([row, row], "e4m3").tolist() == [[56, 64], [56, 64]]
