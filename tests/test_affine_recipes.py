"""Integers with zero points as recipes and as a representation."""

import numpy as np
import pytest
from affine_inputs import quantized
from records import SOURCES, adversarial, engine_mor, exact_mor

import mor_ref
from mor_ref.analysis import compare
from mor_ref.definitions.affine import affine_profile
from mor_ref.metrics import Always
from mor_ref.operations import OPERATIONS
from mor_ref.treatments import Integers, Situation, as_treatment, short_text
from mor_ref.verify import assert_bit_exact

RECIPES = {
    "int8": Integers(),
    "int4:1x32": Integers("int4", block=(1, 32)),
    "uint8:onnx:asymmetric": Integers("uint8", "onnx", zeros="asymmetric"),
    "int8:bnb_int8_row": Integers("int8", "bnb_int8_row", "row"),
    "uint4:peg": Integers("uint4", "peg"),
}


@pytest.mark.parametrize("text", RECIPES)
def test_recipes(text):
    """AFF-011."""
    treatment = as_treatment(text)
    assert treatment == RECIPES[text]
    assert as_treatment(short_text(treatment)) == as_treatment(treatment.text) == treatment
    for wrong in ("int17", "int1"):
        with pytest.raises(ValueError, match=f"grid is '{wrong}', which is not known"):
            as_treatment(wrong)


@pytest.mark.parametrize("dtype", SOURCES)
@pytest.mark.parametrize("text", RECIPES)
def test_integers_as_a_representation(text, dtype):
    """AFF-011: numbers count as binary32, and units cut no block."""
    one = as_treatment(text).policy_in(Situation()).ladder[0].representation
    x = adversarial((9, 70), 3, dtype)
    policy = mor_ref.Policy("integers", (mor_ref.Rung(one, Always()),))
    expected = exact_mor(x, policy, block=(4, 16)) | {"codes": {}}  # y is the whole record
    assert engine_mor(x, policy, block=(4, 16)) == expected
    y = mor_ref.mor(x, policy, block=(4, 16)).quantized[one.name].dequantize()
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32)
    how = {"profile": one.profile, "block": one.block, "symmetric": one.symmetric}
    np.testing.assert_array_equal(y, quantized(wide, one.grid, **how).y)


def test_the_bits_of_recipes():
    """AFF-011: of codes, scales, and zero points."""
    x = np.ones((4, 64), np.float32)
    found = {text: one.bits for text, one in compare(x, list(RECIPES)).items()}
    count = 256
    assert found == {
        "int8": 8 * count + 32, "int4:1x32": 4 * count + 8 * 32,
        "uint8:onnx:asymmetric": 8 * count + 40, "int8:bnb_int8_row": 8 * count + 4 * 32,
        "uint4:peg": 4 * count + 32,
    }  # fmt: skip


def numbers(seed, rows=12, columns=70):
    """Return finite numbers of many magnitudes."""
    random = np.random.default_rng(seed)
    scale = np.exp2(random.integers(-9, 9, (rows, 1)))
    return (random.standard_normal((rows, columns)) * scale).astype(np.float32)


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_of_own_tensors(recipe):
    """AFF-009: kernels of own tensors are verified, and y follows from codes, scales and zeros."""
    x = numbers(2)
    for one in (x, abs(x)):
        assert mor_ref.verify("numba", inputs={"x": one}, recipe=recipe).verdict == "match"
        asked = as_treatment(recipe).asked
        parameters = {**asked.parameters, "source": "f32"}
        fields = OPERATIONS["affine"].exact(parameters, {"x": one.view(np.uint32)})
        way = OPERATIONS["affine"].way_back
        assert (("zero_point",) in way.takes(parameters)) != affine_profile(
            parameters["profile"]
        ).stores_amax
        np.testing.assert_array_equal(way.restore(parameters, fields), fields["y"])


def test_large_tensors_are_verified_by_rows():
    """AFF-005: but the sign of PEG's grid is of all numbers of the tensor."""
    x = abs(numbers(3, 700, 4100))
    x[-1, -1] = -1
    for recipe in ("int8:row", "uint8:peg:row"):
        assert mor_ref.verify("numba", inputs={"x": x}, recipe=recipe).verdict == "match"


@pytest.mark.tier("full", but=["how0"])
@pytest.mark.parametrize(
    "how",
    [
        {"grid": "uint8", "symmetric": False, "block": (1, 32)}, {"profile": "bnb_int8_row"},
        {"grid": "uint4", "profile": "peg", "groups": 7, "permute": "range", "symmetric": False},
    ],
)  # fmt: skip
def test_a_record_is_compared_with_its_fields(how):
    x = numbers(4)
    expected = mor_ref.quantize_affine(x, **how)
    assert_bit_exact(mor_ref.quantize_affine(x, **how), expected)
    codes = expected.codes.astype(np.int32).view(np.uint32)
    assert_bit_exact({"code": codes}, expected, x=x)
    with pytest.raises(AssertionError, match="code"):
        assert_bit_exact({"code": codes ^ np.uint32(1)}, expected, x=x)
