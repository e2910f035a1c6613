"""Integers with zero points as recipes and as a representation."""

import numpy as np
import pytest
from affine_inputs import quantized
from records import SOURCES, adversarial, engine_mor, exact_mor

import mor_ref
from mor_ref.analysis import compare
from mor_ref.metrics import Always
from mor_ref.treatments import Integers, Situation, as_treatment, short_text

RECIPES = {
    "int8": Integers(),
    "int4:1x32": Integers("int4", block=(1, 32)),
    "uint8:onnx:asymmetric": Integers("uint8", "onnx", zeros="asymmetric"),
    "int8:bnb_int8_row": Integers("int8", "bnb_int8_row", "row"),
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
    found = {text: one.bits for text, one in compare(x, RECIPES).items()}
    count = 256
    assert found == {
        "int8": 8 * count + 32, "int4:1x32": 4 * count + 8 * 32,
        "uint8:onnx:asymmetric": 8 * count + 40, "int8:bnb_int8_row": 8 * count + 4 * 32,
    }  # fmt: skip
