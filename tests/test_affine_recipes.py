"""Integers with zero points as recipes and as a representation."""

import re
import sys
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from affine_inputs import quantized
from records import SOURCES, adversarial, engine_mor, exact_mor
from verifying import undiagnosed

import mor_ref
from mor_ref.analysis import analyze, compare
from mor_ref.analysis.analyze_tensor import settings_for
from mor_ref.analysis.large_tensors import how_of, rows_together
from mor_ref.cli import main
from mor_ref.definitions.blocks import partition
from mor_ref.golden import bundled_files
from mor_ref.metrics import Always
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import Situation, as_tensor_recipe, own_recipe, short_text
from mor_ref.schemes.affine.definition import affine_profile
from mor_ref.schemes.affine.recipe import Integers
from mor_ref.verify import assert_bit_exact
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

__all__ = ["undiagnosed"]
RECIPES = {
    "int8": Integers(),
    "int4:1x32": Integers("int4", block=(1, 32)),
    "uint8:onnx:asymmetric": Integers("uint8", "onnx", zeros="asymmetric"),
    "int8:bnb_int8_row": Integers("int8", "bnb_int8_row", "row"),
    "uint4:peg": Integers("uint4", "peg"),
    "uint8:peg:asymmetric:2_permuted_groups": Integers(
        "uint8", "peg", "2_permuted_groups", "asymmetric"
    ),
}


@pytest.mark.parametrize("text", RECIPES)
def test_recipes(text):
    """AFF-011."""
    tensor_recipe = as_tensor_recipe(text)
    assert tensor_recipe == RECIPES[text]
    assert (
        as_tensor_recipe(short_text(tensor_recipe))
        == as_tensor_recipe(tensor_recipe.text)
        == tensor_recipe
    )
    for wrong in ("int17", "int1"):
        with pytest.raises(ValueError, match=f"grid is '{wrong}', which is not known"):
            as_tensor_recipe(wrong)


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize("dtype", SOURCES)
@pytest.mark.parametrize("text", RECIPES)
def test_integers_as_a_representation(text, dtype):
    """AFF-011: numbers count as binary32, and units cut no block."""
    one = as_tensor_recipe(text).policy_in(Situation()).ladder[0].representation
    x = adversarial((9, 70), 3, dtype)
    policy = mor_ref.Policy("integers", (mor_ref.Rung(one, Always()),))
    expected = exact_mor(x, policy, block=(4, 16)) | {"codes": {}}  # y is the whole record
    assert engine_mor(x, policy, block=(4, 16)) == expected
    y = mor_ref.mor(x, policy, block=(4, 16)).quantized[one.name].dequantize()
    with np.errstate(all="ignore"):
        wide = x.astype(np.float32)
    how = {"profile": one.profile, "symmetric": one.symmetric, "block": one.cut}
    how |= {"groups": one.groups, "permute": one.permute}
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
        "uint8:peg:asymmetric:2_permuted_groups": 8 * count + 2 * 40 + 64 * 6,
    }  # fmt: skip


def test_permuted_groups_are_quantized_by_every_implementation():
    """AFF-010 and AFF-011: y, errors and bits of the exact model, and y on a CPU for a GPU."""
    from mor_ref.cuda.host import Host
    from mor_ref.cuda.launching import Bits
    from mor_ref.cuda.policies import mor

    x = numbers(5, 6, 33) * np.exp2(np.arange(33) % 11).astype(np.float32)
    text = "uint4:peg:asymmetric:3_permuted_groups"
    tensor_recipe = as_tensor_recipe(text)
    policy, parameters = (
        tensor_recipe.policy_in(None),
        {**tensor_recipe.asked.parameters, "source": "f32"},
    )
    expected = OPERATIONS["affine_groups"].exact(parameters, {"x": x.view(np.uint32)})
    (found,) = compare(x, [text]).values()
    assert found.measures.sum == int(expected["sum"].sum())
    assert found.measures.nonzero == int(expected["nonzero"].sum())
    assert found.bits == 4 * 6 * 33 + 3 * (32 + 4) + 33 * 6
    report = analyze(x, replace(settings_for("tensor"), policy=policy)).report
    assert report.error == found.measures.error
    y = expected["y"].view(np.float32).astype(ml_dtypes.bfloat16)
    kernels = mor(Host(), Bits(x.view(np.uint32), "f32"), policy, "fp32", partition(x.shape, "row"))
    assert kernels.output.tolist() == y.view(np.uint16).tolist()
    (plain,) = compare(x, ["uint4:peg:asymmetric:6x11"]).values()
    assert plain.measures.sum != found.measures.sum  # the order matters


def test_permuted_groups_of_files(tmp_path, monkeypatch, capsys):
    """AFF-009 and AFF-010: quantized, verified with corners, and taken back."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mor-ref", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().err

    x, codes, y = (tmp_path / f"{name}.npz" for name in ("x", "codes", "y"))
    large, recipe = numbers(6, 30, 700), "int8:peg:asymmetric:7_permuted_groups"
    np.savez(x, small=numbers(7), large=large)
    assert run("quantize", x, "--recipe", recipe, "--out", codes)[0] == 0
    assert run("verify", "numba", "--inputs", x, "--recipe", recipe)[0] == 0
    assert run("dequantize", codes, "--recipe", recipe, "--out", y)[0] == 0
    fields, found = np.load(codes), np.load(y)
    for name in ("small", "large"):
        np.testing.assert_array_equal(found[name].view(np.uint32), fields[f"{name}/y"])
    wrong = {**fields, "small/permutation": fields["small/permutation"] * 0}
    np.savez(codes, **wrong)
    status, said = run("dequantize", codes, "--recipe", recipe, "--out", y)
    assert (status, "permutation does not have each column once" in said) == (2, True)
    other = "int8:3_permuted_groups"
    for command in (("compare", x), ("analyze", x), ("verify", "numba", "--inputs", x)):
        status, said = run(*command, "--recipe", other)
        assert status == 2
        assert re.search("(small|large).*: groups is 3, which does not divide the 70", said)


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("int8:0_permuted_groups", "'0_permuted_groups' is not known; give a word for"),
        ("int8:row:2_permuted_groups", "'2_permuted_groups' is a second word for block"),
        (
            '{"representation": "integers", "block": "2_groups"}',
            "or permuted groups such as 4_permuted_g",
        ),
    ],
)
def test_other_words_for_groups_are_refused(recipe, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        as_tensor_recipe(recipe)


def numbers(seed, rows=12, columns=70):
    """Return finite numbers of many magnitudes."""
    random = np.random.default_rng(seed)
    scale = np.exp2(random.integers(-9, 9, (rows, 1)))
    return (random.standard_normal((rows, columns)) * scale).astype(np.float32)


@pytest.mark.tier("full", but=["[uint8:peg:asymmetric:2_permuted_groups]"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_of_own_tensors(recipe):
    """AFF-009: kernels of own tensors are verified, and y follows from codes, scales and zeros."""
    x = numbers(2)
    for one in (x, abs(x)):
        assert mor_ref.verify("numba", inputs={"x": one}, recipe=recipe).verdict == "match"
        asked = as_tensor_recipe(recipe).asked
        parameters = {**asked.parameters, "source": "f32"}
        fields = OPERATIONS[asked.operation].exact(parameters, {"x": one.view(np.uint32)})
        way = OPERATIONS[asked.operation].way_back
        assert (("zero_point",) in way.takes(parameters)) != affine_profile(
            parameters["profile"]
        ).stores_amax
        np.testing.assert_array_equal(way.restore(parameters, fields), fields["y"])


@pytest.mark.tier("full")
def test_large_tensors_are_verified_by_rows():
    """AFF-005: but the sign of PEG's grid is of all numbers of the tensor."""
    x = abs(numbers(3, 700, 4100))
    x[-1, -1] = -1
    groups = how_of(as_tensor_recipe("uint8:peg:4_permuted_groups"))
    assert rows_together(groups, x.shape) is None  # and so has the order of the columns
    assert mor_ref.verify("numba", inputs={"x": x}, recipe="uint8:peg:row").verdict == "match"

    def as_int8(_, __, inputs):
        found = mor_ref.quantize_affine(inputs["x"].view(np.float32), "int8", block="row")
        return {"code": found.codes}

    assert mor_ref.verify(as_int8, inputs={"x": x}, recipe="int8:row").verdict == "match"


def as_integers(operation, parameters, inputs):
    """Return codes of int8, or of uint8 if none is negative, and zero points of int32."""
    found = OPERATIONS[operation].engine(parameters, inputs)
    code = found["code"].view(np.int32)
    return {
        "code": code.astype(np.uint8 if code.min() >= 0 else np.int8),
        "zero_point": found["zero_point"].view(np.int32),
    }


@pytest.mark.parametrize("recipe", ["uint8:peg", "int8:peg"])
def test_the_numbers_decide_the_sign_of_codes_of_peg(recipe):
    for x in (numbers(4), abs(numbers(4))):
        assert mor_ref.verify(as_integers, inputs={"x": x}, recipe=recipe).verdict == "match"


def test_integers_whose_digests_are_compared():
    """They are wider than the bytes of a digest."""

    def as_words(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        return {name: found[name].view(np.int32) for name in ("code", "zero_point")}

    found = verify(
        PythonFunction("as_words", as_words), suites_in(bundled_files(), ["affine_large"])
    )
    assert found.verdict == "match"


@pytest.mark.tier("full")
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


def integers(text):
    """Return a tensor, and the codes and zero points of the exact model as int32."""
    x = adversarial((4, 64), 3, "float32")
    asked = own_recipe(text).asked
    found = OPERATIONS[asked.operation].exact(
        {"source": "f32", **asked.parameters}, {"x": x.view(np.uint32)}
    )
    return x, {name: found[name].view(np.int32) for name in ("code", "zero_point")}


WRITTEN = {
    "int8": lambda array: array.astype(np.int8),
    "int64": lambda array: array.astype(np.int64),
    "uint64": lambda array: array.astype(np.int64).view(np.uint64),
    "bytes": lambda array: array.astype(np.int8).view(np.uint8),
    "nibbles": lambda array: array.astype(np.uint8) & 15,
}


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize(
    ("text", "form"),
    [*(("int8:onnx:asymmetric", form) for form in WRITTEN if form != "nibbles"),
     *(("int4:1x32", form) for form in WRITTEN)],
)  # fmt: skip
def test_integers_are_compared_as_kernels_write_them(text, form):
    """The sign of bytes is in the highest bit of the grid, or in all bits above it."""
    x, right = integers(text)
    assert (right["code"] < 0).any()

    def verified(change):
        fields = {name: WRITTEN[form](array) for name, array in right.items()}
        fields["code"].reshape(-1)[0] ^= change
        return mor_ref.verify(lambda *_: fields, inputs={"x": x}, recipe=text).results[0]

    assert verified(0).verdict == "match"
    assert [(d.field, d.count) for d in verified(1).differences] == [("code", 1)]


@pytest.mark.usefixtures("undiagnosed")
def test_bytes_do_not_hold_wider_integers():
    x, right = integers("int12")
    found = mor_ref.verify(
        lambda *_: {"code": right["code"].astype(np.uint8)}, inputs={"x": x}, recipe="int12"
    )
    assert (
        found.results[0]
        .differences[0]
        .problem.startswith(
            "has dtype uint8, which does not hold the integers of int12; give int16"
        )
    )


def test_codes_of_a_record_are_those_of_a_kernel():
    x, right = integers("int8")
    record = mor_ref.quantize_affine(x, "int8")
    assert (right["code"] < 0).any()
    for code in (record.codes, record.codes.view(np.uint8), right["code"]):
        assert_bit_exact({"code": code}, record)
    with pytest.raises(AssertionError, match="code: 1 of 256 differ"):
        assert_bit_exact({"code": record.codes ^ (np.arange(256).reshape(4, 64) == 9)}, record)


def as_digits(mask, digits):
    return lambda codes: "\n".join(f"{code & mask:0{digits}x}" for code in codes.flat).encode()


FILES = {
    "bin": lambda codes: codes.astype(np.int8).tobytes(),
    "mem": as_digits(0xFF, 2),
    "hex": lambda codes: b"\n".join(row.tobytes().hex().encode() for row in codes.astype(np.int8)),
}


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize(
    ("recipe", "mask", "digits"),
    [("int6", 0x3F, 2), ("int6", 0xFF, 2), ("int4", 15, 1), ("int4", 0xFF, 2)],
)
@pytest.mark.parametrize("columns", [1, 64])
def test_digits_have_the_sign_in_the_highest_bit_of_a_grid(tmp_path, recipe, mask, digits, columns):
    """Or in all bits above it; also of a tensor of one column, whose rows are words."""
    x = numbers(5, 64 // columns + 3, columns)
    right = mor_ref.quantize_affine(x, recipe).codes.astype(np.int32)
    assert (right < 0).any()
    file = tmp_path / "own" / "x" / "code.mem"
    file.parent.mkdir(parents=True)
    file.write_bytes(as_digits(mask, digits)(right))
    assert mor_ref.verify(f"dir:{tmp_path}", inputs={"x": x}, recipe=recipe).verdict == "match"


@pytest.mark.usefixtures("undiagnosed")
@pytest.mark.parametrize("ending", FILES)
def test_files_of_integers_may_be_as_wide_as_their_grid(tmp_path, ending):
    x, right = integers("int8")
    file = tmp_path / "own" / "x" / f"code.{ending}"
    file.parent.mkdir(parents=True)
    for change in (0, 1):
        codes = right["code"].copy()
        codes[1, 2] ^= change
        file.write_bytes(FILES[ending](codes))
        found = mor_ref.verify(f"dir:{tmp_path}", inputs={"x": x}, recipe="int8")
        assert [one.count for one in found.results[0].differences] == [1] * change


@pytest.mark.usefixtures("undiagnosed")
def test_signed_codes_are_shown_as_integers():
    """Their bits are words of 32 bits, 4294967169 for -127."""

    def one_up(operation, parameters, inputs):
        found = OPERATIONS[operation].engine(parameters, inputs)
        return {**found, "code": found["code"] + (found["code"] >> 31)}

    x = np.array([[1, -1, 0.5]], np.float32)
    report = str(mor_ref.verify(one_up, inputs={"x": x}, recipe="int8"))
    assert "[0, 1]: -126 where -127 is expected, +1; x[0, 1] is" in report
