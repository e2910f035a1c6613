"""Names that are not known: a hint never changes the meaning."""

import functools
import math

import ml_dtypes
import numpy as np
import pytest

import mor_ref
from mor_ref import exact, formats
from mor_ref.argument_checks import UnknownNameError, hint_of
from mor_ref.definitions.format_names import DTYPES, MLIR_TYPES, OTHER_NAMES
from mor_ref.definitions.formats import as_format
from mor_ref.definitions.formats import formats as catalogue
from mor_ref.recipes import as_tensor_recipe


def answer_to(name):
    """Return the whole answer to a name of a format that is not known."""
    with pytest.raises(UnknownNameError) as refused:
        mor_ref.encode(0.3, name)
    return str(refused.value)


def hinted(text):
    """Return the names that a text asks for."""
    question = text.partition("did you mean ")[2].partition("?")[0]
    return [name.strip("'") for name in question.split(" or ") if name]


# Their dtypes of floats, and NumPy's; one code in each byte or word.
FLOATS = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in dir(ml_dtypes)
    if isinstance(getattr(ml_dtypes, name), type)
    and name not in ("finfo", "iinfo")
    and "int" not in name
} | {"float16": np.dtype("f2"), "float32": np.dtype("f4")}
INTEGERS = [name for name in dir(ml_dtypes) if name.startswith(("int", "uint"))]


def values_by_dtype(dtype, bits):
    """Return all values of a dtype by its own conversions: NaN is None, and -0 is not 0."""
    codes = np.arange(1 << bits, dtype=f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # of signalling NaNs
        numbers = codes.view(dtype).astype(np.float64).tolist()
    return [None if math.isnan(x) else str(x) for x in numbers]


@functools.cache
def values_of(fmt):
    """Return all values of a format by the exact model."""
    words = np.array([exact.decode(code, fmt) for code in range(fmt.code_count)], np.uint32)
    return [None if math.isnan(x) else str(x) for x in words.view(np.float32).tolist()]


@pytest.mark.parametrize("name", [name for name in FLOATS if FLOATS[name].itemsize < 4])
@pytest.mark.parametrize("prefix", ["", "torch.", "jnp."])
def test_the_name_of_a_dtype_is_that_of_the_format_of_its_values(name, prefix):
    """If there is such a format here; else to none."""
    bits = ml_dtypes.finfo(FLOATS[name]).bits
    right = values_by_dtype(FLOATS[name], bits)
    same = [fmt.name for fmt in catalogue.values() if fmt.bits == bits and values_of(fmt) == right]
    assert [DTYPES[name]] == same if name in DTYPES else same == []
    if same:
        assert as_format(prefix + name) is formats[same[0]]
    else:
        with pytest.raises(UnknownNameError, match="none of the known names means the same"):
            as_format(prefix + name)


# Their definitions in MLIR are those of the dtypes of ml_dtypes.
MLIR = {
    "f8E4M3": "float8_e4m3",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E3M4": "float8_e3m4",
    "f8E8M0FNU": "float8_e8m0fnu",
    "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn",
    "f4E2M1FN": "float4_e2m1fn",
}


@pytest.mark.parametrize("name", MLIR)
def test_a_type_of_mlir_is_the_format_of_its_values(name):
    bits = ml_dtypes.finfo(MLIR[name]).bits
    right = values_by_dtype(FLOATS[MLIR[name]], bits)
    assert values_of(as_format(name)) == right
    x = np.float32([300.0, 1.1])
    assert mor_ref.encode(x, name).tolist() == mor_ref.encode(x, as_format(name)).tolist()


def test_every_type_of_mlir_is_tested():
    assert {*MLIR} == {*MLIR_TYPES}
    assert str(as_tensor_recipe("f8E4M3:fp32:tensor")) == str(
        as_tensor_recipe("e4m3_ieee:fp32:tensor")
    )


def test_a_dtype_of_32_bits_is_the_format_of_its_values():
    assert as_format("float32") is formats["f32"]


@pytest.mark.parametrize("name", [*INTEGERS, "int8", "uint8", "int32"])
def test_integers_lead_to_no_format(name):
    """Those of `int8_mx` are 64ths."""
    assert "none of the known names means the same; take one of e4m3, e5m2" in answer_to(name)


@pytest.mark.parametrize(
    "name", ["tf32", "float64", "ue4m3", "e5m2fn", "nf4", "float8e4b15", "double"]
)
def test_other_formats_of_the_field_lead_to_none(name):
    assert not hinted(answer_to(name))
    assert "none of the known names means the same" in answer_to(name)


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("fp8", ["e4m3", "e5m2"]),
        ("FP6", ["e2m3", "e3m2"]),
        ("fp4", ["e2m1", "e2m1_ieee"]),
        ("F8_E4M3", ["e4m3", "e4m3_ieee"]),
        ("f8e4m3", ["e4m3", "e4m3_ieee"]),
        ("F8E4M3FN", ["e4m3"]),
        ("__nv_fp8_e4m3", ["e4m3"]),
        ("e4m3-ieee", ["e4m3_ieee"]),
        ("half", ["f16"]),
        # Not spellings of anything: other bits would be guessed.
        ("e4m4", []),
        ("e4m33", []),
        ("e9m3", []),
        ("e4", []),
        ("e4m3fnu", []),
        ("se4m3", []),
        ("f23", []),
    ],
)
def test_names_of_formats(name, choices):
    assert hinted(answer_to(name)) == choices


def test_a_dtype_itself_is_read_by_its_name():
    assert as_format(ml_dtypes.float8_e4m3fnuz) is formats["e4m3fnuz"]


def test_every_name_of_other_software_leads_to_a_format_or_to_none():
    assert all(name in formats for names in OTHER_NAMES.values() for name in names)
    ours = {hint_of(name.upper(), list(formats), OTHER_NAMES) for name in formats}
    assert ours == {f"did you mean {name!r}? " for name in formats}


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("rn", ["rne"]),
        ("RTNE", ["rne"]),
        ("rz", ["rtz"]),
        ("rd", ["rtn"]),
        ("ru", ["rtp"]),
        ("nearest", ["rne", "rna"]),
        ("stochastic", ["sr"]),
        ("rnd", []),
        ("rni", []),
    ],
)
def test_names_of_roundings(name, choices):
    with pytest.raises(UnknownNameError, match="take one of rne") as refused:
        mor_ref.encode(0.3, "e4m3", rounding=name)
    assert hinted(str(refused.value)) == choices


@pytest.mark.parametrize(
    ("recipe", "choices"),
    [
        ("e4m3fn", ["e4m3"]),
        ("fp8_e5m2", ["e5m2"]),
        ("mxfp6", ["mxfp6_e2m3", "mxfp6_e3m2"]),
        ("MXFP8", ["mxfp8"]),
        ("three-way", ["mor:three_way"]),
        ("mxfp9", []),
        ("nvfp5", []),
        ("mxfp8_e5m3", []),
        ("lsq2", []),
        ("nf4", []),
        ("nvfp4:te_2_12", []),
        ("nvfp4:te-2-13", ["te_2_13"]),
        ("mor:four_way", []),
        ("mor:tenor", ["tensor"]),
    ],
)
def test_names_of_recipes(recipe, choices):
    with pytest.raises(ValueError, match="not known") as refused:
        as_tensor_recipe(recipe)
    assert hinted(str(refused.value)) == choices


def test_another_version_is_no_slip():
    with pytest.raises(UnknownNameError) as refused:
        mor_ref.quantize_nvfp4([0.3], profile="te_2_14")
    assert not hinted(str(refused.value))


@pytest.mark.parametrize(
    ("given", "names", "hint"),
    [
        ("tensors", ["tensor", "row"], "did you mean 'tensor'? "),
        ("tenor", ["tensor", "row"], "did you mean 'tensor'? "),
        ("tenser", ["tensor", "row"], "did you mean 'tensor'? "),
        ("fceil", ["ceil", "rceil"], ""),  # one letter from both
        ("rows", ["row", "column"], "did you mean 'row'? "),
        ("ro", ["row"], ""),
        ("texnor", ["tensor"], ""),
        ("hoper_fp8", ["hopper_fp8", "hopper_fp16"], "did you mean 'hopper_fp8'? "),
        ("hopper_bf61", ["hopper_bf16"], ""),
    ],
)
def test_a_slip_is_one_letter_and_near_to_one_name(given, names, hint):
    assert hint_of(given, names) == hint
