"""The assertion: in which field bits differ, where, by how much, and why."""

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs

import mor_ref
from mor_ref import MeanRelativeError, Policy, Rung, layouts
from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.verify import assert_bit_exact
from mor_ref.verify.asserting.records import case_of, recorded
from mor_ref.verify.asserting.suite_case import suite_case

OWN = Policy("own", (Rung("mxfp4", MeanRelativeError("0.12")),), unit="block", block=(2, 16))
X = np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32)


def failure(*arguments, **options):
    """Return the lines of the failure of an assertion."""
    with pytest.raises(AssertionError) as failed:
        assert_bit_exact(*arguments, **options)
    return str(failed.value).splitlines()


def test_assert_bit_exact():
    same = np.arange(256, dtype=np.uint8)
    assert_bit_exact(same, same.copy(), "e4m3")
    assert_bit_exact(np.uint8(3), 3, "e2m1")
    lines = failure(same, same ^ np.uint8(1), "e4m3")
    assert lines[0] == "256 of 256 codes of e4m3 differ:"
    assert lines[1] == "  [0]: 0x00 (0) where 0x01 (0.001953125) is expected, 1 ulp below"
    assert lines[9:] == ["  and 248 more"]
    assert failure([1, 2], [1], "e4m3") == [
        "actual has shape (2,), expected has (1,); give arrays of one shape"
    ]


def test_an_assertion_takes_codes_alone():
    with pytest.raises(TypeError, match="actual holds the float 1.0; give unsigned integers"):
        assert_bit_exact([1.0], [1], "e4m3")
    with pytest.raises(ValueError, match="expected holds 256, which does not fit 8 bits"):
        assert_bit_exact([1], [256], "e4m3")
    with pytest.raises(TypeError, match="fmt is not given, and neither array has a dtype"):
        assert_bit_exact([1], [1])


def test_float_dtypes_of_ml_dtypes():
    """They say which format their codes are of."""
    x = X.astype(ml_dtypes.float8_e4m3fn)
    assert_bit_exact(x, mor_ref.encode(X, "e4m3"))
    assert_bit_exact(mor_ref.encode(X, "e4m3"), x)
    assert_bit_exact(X, X.copy())
    assert "1 ulp" in failure(x.view(np.uint8) + 1, x, "e4m3")[1]
    wrong = failure(X.astype(ml_dtypes.float8_e5m2), x)
    assert wrong == ["actual has codes of e5m2, and e4m3 is expected"]


@needs("torch")
def test_float_dtypes_of_torch():
    torch = imported("torch")
    x = torch.from_numpy(X)
    assert_bit_exact(x.to(torch.float8_e4m3fn), mor_ref.encode(X, "e4m3"))
    assert_bit_exact(x.to(torch.float8_e5m2).t(), mor_ref.encode(X.T.copy(), "e5m2"))
    found = mor_ref.quantize_nvfp4(X)
    fours = torch.from_numpy(found.packed).view(torch.float4_e2m1fn_x2)
    assert_bit_exact(fours, found.codes, "e2m1")
    fields = {
        "code": fours,
        "block_scale": torch.from_numpy(found.block_scale).view(torch.float8_e4m3fn),
        "global_encode_scale": torch.from_numpy(np.asarray(found.global_encode_scale)),
    }
    assert_bit_exact(fields, found)
    (heading, line) = failure(fields | {"block_scale": x.to(torch.float8_e5m2)}, found)
    assert heading == "the expected record: 1 field cannot be compared, in 1 of 3 fields"
    assert "block_scale has codes of e5m2, and e4m3 is expected; give codes of e4m3" in line


def test_layouts_name_the_place_in_the_plain_array():
    codes = mor_ref.encode(X, "e2m1")
    packed = layouts.packed(codes)
    assert_bit_exact(packed, codes, "e2m1", layout="packed")
    packed[1, 3] ^= 0x80
    (heading, line) = failure(packed, codes, "e2m1", layout="packed")
    assert heading == "1 of 256 codes of e2m1 differ:"
    assert line.startswith("  [1, 7], at [1, 3] of packed: 0x")
    scale = mor_ref.quantize_mx(X, "e4m3").scale
    swizzled = layouts.swizzled_128x4(scale)
    swizzled[[5, 16]] += 1
    lines = failure(swizzled, scale, "e8m0", layout="swizzled_128x4")
    assert lines[1].startswith("  padding, at [5] of swizzled_128x4: 0x01")
    assert lines[2].startswith("  [1, 0], at [16] of swizzled_128x4: 0x")


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("mine", "right", "field", "cause"),
    [
        (
            lambda x: mor_ref.quantize_mx(x, "e4m3"),
            lambda x: mor_ref.quantize_mx(x, "e4m3", scale_rule="rceil"),
            "scale",
            "by `MXS-003/always` (rule",
        ),
        (
            lambda x: mor_ref.quantize_nvfp4(x, profile="te_4over6_mse"),
            mor_ref.quantize_nvfp4,
            "block_scale",
            "by `nvfp4_as_te_4over6_mse` (rule",
        ),
        (
            lambda x: mor_ref.quantize(x, "e4m3", scaling="e8m0"),
            lambda x: mor_ref.quantize(x, "e4m3"),
            "mantissa",
            "by `GAM-001/mantissa-zero` (rule",
        ),
        (
            lambda x: mor_ref.mor(x, "tensor", threshold=0.001),
            mor_ref.mor,
            "choice",
            "explained by `MOR-002/comparison-never`",
        ),
    ],
)
def test_records(mine, right, field, cause):
    x = X[:1]
    assert_bit_exact(right(x), right(x), x=x)
    lines = failure(mine(x), right(x), x=x)
    assert any(line.startswith(f"  {field}: ") for line in lines)
    assert any("0x" in line and "is expected" in line and "x[" in line for line in lines) or (
        field == "choice"
    )
    assert any(cause in line for line in lines)
    without = failure(mine(x), right(x))
    assert without == [line.split("; ")[0] for line in lines[: len(without)]]


def test_records_of_any_shape():
    """Elements are rows and columns."""
    x = X.reshape(2, 2, 64)
    found = mor_ref.quantize(x, "e4m3", block=(2, 16))
    assert_bit_exact(found, found, x=x)
    row = mor_ref.quantize_nvfp4(X[0])
    assert_bit_exact({"code": row.codes, "packed": row.packed}, row, x=X[0])


def test_fields_by_name_and_in_layouts():
    found = mor_ref.quantize_mx(X, "e2m1", scale_rule="rceil")
    fields = {
        "code@packed": layouts.packed(found.codes),
        "scale@swizzled_128x4": layouts.swizzled_128x4(found.scale),
    }
    assert_bit_exact(fields, found)
    fields["scale@swizzled_128x4"][513 - 512] ^= 1
    lines = failure(fields, found)
    assert lines[0] == "the expected record: 1 entry differs, in 1 of 2 fields"
    assert lines[1] == f"  scale@swizzled_128x4: 1 of {found.scale.size} differ"
    assert lines[2].startswith("    [0, 1]: 0x")


def test_one_bad_field_ends_nothing():
    """The others are still compared."""
    found = mor_ref.quantize_mx(X, "e4m3")
    bad = {"code": found.codes[:1], "scale": found.scale ^ 1, "y": [[0.5]]}
    lines = failure(bad, found)
    assert lines[0].endswith("8 entries differ and 2 fields cannot be compared, in 3 of 3 fields")
    assert "  code has shape (1, 64), and (4, 64) is expected" in lines
    assert "  scale: 8 of 8 differ" in lines
    assert any(line.startswith("  y has dtype float64; give bit patterns") for line in lines)


def test_what_a_record_cannot_be_compared_with():
    found = mor_ref.quantize_mx(X, "e4m3")
    assert failure(mor_ref.quantize_nvfp4(X), found) == [
        "actual is Nvfp4, and expected Mx; compare records of one function"
    ]
    assert failure(mor_ref.quantize_mx(X, "e5m2"), found) == [
        "actual has codes of e5m2, and expected of e4m3; compare records of one format"
    ]
    with pytest.raises(TypeError, match="x is given, but expected is an array of codes; give a re"):
        assert_bit_exact(found.codes, found.codes, "e4m3", x=X)
    assert failure({"scales": 1}, found) == [
        "actual has scales, not of the expected record; its fields are scale, code, y"
    ]
    assert failure(found.codes, found) == [
        "actual is of type ndarray; give a dict of fields, or a record"
    ]
    assert failure({}, found)[0].startswith("actual has no field of the expected record")
    for options, said in (
        ({"fmt": "e4m3"}, "fmt or layout is given, and expected has its formats"),
        ({"x": X[:2]}, r"x has \(2, 64\) rows and columns, but the record has \(4, 64\)"),
        ({"x": X.astype(np.float64)}, "x has dtype float64; give float32, float16 or bfloat16"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            assert_bit_exact(found, found, **options)


def test_a_case_of_a_suite():
    case = suite_case(bundled_files(), "mx_blocks", "e4m3.floor")
    right = OPERATIONS[case.operation].engine(case.parameters, case.inputs)
    assert_bit_exact(right, case)
    lines = failure({"scale": right["scale"] ^ 1}, case)
    assert lines[0] == "case e4m3.floor of mx_blocks: 183 entries differ, in 1 of 1 field"
    assert any("no known mistake explains" in line for line in lines)
    with pytest.raises(TypeError, match="x is given, but a case has its own inputs"):
        assert_bit_exact(right, case, x=X)
    inputs = case.inputs
    inputs["x"][:] = 0  # a copy
    assert case.inputs["x"].any()
    parameters = dict(case.parameters)
    case.parameters.clear()
    assert suite_case(bundled_files(), "mx_blocks", "e4m3.floor").parameters == parameters


def test_other_bits_that_are_allowed():
    x = np.array([[np.nan, 1.0] + [0.0] * 30], np.float32)
    found = mor_ref.quantize_mx(x, "e4m3")
    other = found.codes.copy()
    other[found.codes == 0x7F] = 0xFF
    assert failure({"code": other}, found)[1].endswith("equal but for the bits of NaN")
    assert_bit_exact({"code": other}, found, nan="any")
    assert_bit_exact([0xFF, 0x80, 1], [0x7F, 0, 1], "e4m3", nan="any", zero_sign="any")
    packed, fours = np.uint8([[0x08, 0x81]]), np.uint8([[0, 0, 1, 9]])
    lines = failure(packed, fours, "e2m1", layout="packed", zero_sign="any")
    assert lines[0] == "1 of 4 codes of e2m1 differ:"
    assert lines[1].startswith("  [0, 3], at [0, 1] of packed: 0x8 (-0) where 0x9 (-0.5) is")
    with pytest.raises(ValueError, match="nan is 'all', which is not known"):
        assert_bit_exact([1], [1], "e4m3", nan="all")


@pytest.mark.parametrize(
    "record",
    [
        lambda x: mor_ref.quantize(x, "e5m2", scaling="fp32", block=(2, 16)),
        lambda x: mor_ref.quantize(x, "e4m3", block=(1, 16), group="row"),
        lambda x: mor_ref.quantize_mx(x, "e2m3", scale_rule="even", block=16),
        lambda x: mor_ref.quantize_nvfp4(x, profile="te_row"),
        lambda x: mor_ref.mor(x, "three_way", block=(2, 16), scaling="e8m0"),
        lambda x: mor_ref.mor(x, "nvfp4"),
        lambda x: mor_ref.mor(x, OWN),
    ],
)
@pytest.mark.parametrize("columns", [64, 10])
def test_the_parameters_of_a_record_give_it_again(record, columns):
    """In the exact model, which the cause is found with."""
    x = np.ascontiguousarray(X[:, :columns])
    case = case_of(recorded(record(x)), x)
    exact = OPERATIONS[case.operation].exact(case.parameters, case.inputs)
    assert {*case.expected} <= {*exact}
    for name, array in case.expected.items():
        assert np.array_equal(array, exact[name]), name


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, "u1", ">i4"])
def test_codes_of_integers_have_the_dtypes_of_kernels(dtype):
    """As int8, by their bits, or wider: they are the same integers."""
    x = np.random.default_rng(0).standard_normal((8, 64), dtype=np.float32)
    record = mor_ref.quantize_affine(x, "int8")
    codes = record.codes.view(dtype) if dtype == "u1" else record.codes.astype(dtype)
    assert_bit_exact({"code": codes}, record)
    wrong = codes.copy()
    wrong[3, 5] ^= 1
    with pytest.raises(AssertionError, match="code: 1 of 512 differ"):
        assert_bit_exact({"code": wrong}, record)
    found = mor_ref.verify(lambda *_: {"code": codes}, inputs={"x": x}, recipe="int8")
    assert found.verdict == "match"


def test_signed_codes_are_their_bits():
    codes = mor_ref.encode(np.linspace(-2, 2, 9), "e4m3")
    assert_bit_exact(codes.view(np.int8), codes, "e4m3")
    with pytest.raises(ValueError, match="actual holds -"):
        assert_bit_exact(codes.view(np.int8).astype(np.int16), codes, "e4m3")
