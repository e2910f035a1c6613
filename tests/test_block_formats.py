"""Block formats in the engine and in the public functions: the bits of the formulas."""

import dataclasses
import re
import subprocess
import sys
import tomllib
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from kernels import needed
from test_block_formulas import OWN, UE5M3

import mor_ref
from mor_ref import BlockFormat, BlockQuantized, BlockScale, Format, golden
from mor_ref.analysis import analyze, compare, settings_for, settings_under
from mor_ref.argument_checks import UnknownNameError
from mor_ref.definitions.block_formulas import mx_formulas, nvfp4_formulas, scaled_formulas
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.formats import as_format, formats
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.scales import AmaxOrScale
from mor_ref.engine.formulas import nearest_binary32
from mor_ref.exact import block_formats as exact
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.errors import error_sum
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import sha256_128x128
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import tensor_of
from mor_ref.policies import POLICIES
from mor_ref.recipes import as_block_format, as_tensor_recipe, own_recipe
from mor_ref.representations import FormulaBlocks
from mor_ref.verify.candidates.kernels import kernels_named
from mor_ref.verify.candidates.numba_engine import Engine

_UINT = {"exponent_bits": 1, "specials": "none", "sign": "none"}
WIDE_AND_UNSIGNED = (
    formats["f16"],
    Format("uint4", mantissa_bits=3, bias=-2, **_UINT),
    Format("uint16", mantissa_bits=15, bias=0, **_UINT),
    Format("int16", exponent_bits=0, mantissa_bits=15, bias=1, specials="none",
           sign="twos-complement"),
    Format("e7m8", exponent_bits=7, mantissa_bits=8, bias=0, specials="fn"),
    Format("e6m3fnuz", exponent_bits=6, mantissa_bits=3, bias=50, specials="fnuz"),
)  # fmt: skip
_TRIES = ("t", "0.875 * t", "1.5 * t")


def tensor(rows: int, columns: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return numbers of many magnitudes, with zeros of both signs, NaNs and infinities."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns)) * np.exp2(rng.integers(-20, 20, (rows, columns)))
    for number in (0.0, -0.0, np.nan, np.inf, -np.inf):
        x[rng.random((rows, columns)) < (0.02 if number == 0 else 0.002)] = number
    x[rows // 2] *= 2.0**-130
    return x.astype(np.float32)


def assert_equals_exact(block_format: BlockFormat, x: Any, **options: Any) -> None:
    """Compare codes, scales and y with those of the exact model."""
    record = mor_ref.quantize(x, block_format, **options)
    blocks = exact.quantize(np.float32(x).reshape(-1).tolist(), x.shape, block_format)
    np.testing.assert_array_equal(record.codes.reshape(-1), blocks.codes)
    np.testing.assert_array_equal(record.dequantize().reshape(-1), blocks.y)
    for name, scale in blocks.scales.items():
        numbers = np.array(scale.numbers[name], np.float32).reshape(scale.parts.grid)
        np.testing.assert_array_equal(record.scale_numbers[name], numbers, name)
        if scale.codes:
            np.testing.assert_array_equal(record.scales[name].reshape(-1), scale.codes, name)


def stored_in(stored: str, rounding: Any, element: str) -> BlockFormat:
    """Return blocks whose scales have a format, and can be negative before they are stored."""
    scale = BlockScale("s", (4, 8), "bf16(amax) / 448 - 0.001", stored, rounding)
    return BlockFormat("stored", element, (scale,), encode="abs(1 / s)")


_ABOVE = (BlockScale("g", (6, 200), "amax or 3"), BlockScale("h", (3, 100), "amax / g", "bf16"))
FORMATS = {
    "own": OWN,
    "one try": dataclasses.replace(OWN, tries=("t",)),
    "bf16": stored_in("bf16", "rne", "e4m3"),
    "f16, down": stored_in("f16", "rtz", "int8_mx"),
    "e5m2, up": stored_in("e5m2", "rtp", "e4m3fnuz"),
    "fnuz": stored_in("e4m3fnuz", "rne", "e5m2"),
    "integers": stored_in("int8_mx", "rne", "e2m1"),
    "powers, to nearest": stored_in("e8m0", "rne", "e4m3"),
    "tall": BlockFormat(
        "tall", "int8_mx", (
            BlockScale("g", "column", "amax or 3"),
            BlockScale("s", (300, 1), "amax / g if amax > 2 else (amax < 1) * 3", "e4m3", "rtn"),
        ), decode="s * g", encode="1 / max(s * g, 1e-3)", tries=_TRIES,
    ),
    "wide": BlockFormat(
        "wide", "e4m3", (
            BlockScale("g", "row", "pow2(amax, 1.5) or 3"),
            BlockScale("s", (1, 5000), "amax / g / 6", "e4m3"),
        ), decode="s * g", tries=_TRIES, counted="finite", drops_sign_of_zero=True,
        error="abs(v) * y - min(x, MAX)",
    ),
    "percentiles": BlockFormat(
        "percentiles", "e4m3", (
            BlockScale("g", "row", "percentile(99.9) or 1"),
            BlockScale("s", (1, 32), "percentile(87.5) / g / 6", "e4m3"),
        ), decode="s * g", tries=("t", "percentile(50) / g / 448", "amax / g / 448"),
    ),
    "percentiles of finite numbers": BlockFormat(
        "finite", "e2m1", (BlockScale("s", (3, 7), "percentile(66.6667) / 6", "e8m0", "rtp"),),
        decode="s", counted="finite",
    ),
    "percentiles of all": BlockFormat(
        "all", "int8_mx", (
            BlockScale("g", "tensor", "percentile(0.0001) + percentile(100)"),
            BlockScale("s", "column", "percentile(33.3333)"),
        ), decode="s", counted="all",
    ),
    **{
        fmt.name: BlockFormat(
            f"own_{fmt.name}", fmt, (BlockScale("s", (1, 32), f"percentile(95) / {fmt.largest}"),),
            decode="s", counted="finite", tries=("t", "0.875 * t"),
        )
        for fmt in WIDE_AND_UNSIGNED
    },
    "unsigned, multiplied": BlockFormat(
        "unsigned", UE5M3, (BlockScale("s", (4, 8), "448 / amax"),), encode="s", counted="all",
        drops_sign_of_zero=True,
    ),
    **{
        f"{element}, ties {rounding}{'' if has_negative_zero else ', no -0'}": BlockFormat(
            "ties", element, (BlockScale("s", (1, 32), "pow2(amax, 2) / 4", "e8m0"),),
            decode="s", encode="1 / s", rounding=rounding, has_negative_zero=has_negative_zero,
            tries=("t", "t / 2"),
        )
        for element, rounding, has_negative_zero in (
            ("e2m1", "rna", True), ("e2m1", "rnz", False), ("e4m3", "rnz", True),
            ("e5m2", "rna", False), ("int8_mx", "rnz", True), ("e4m3fnuz", "rna", True),
            ("f16", "rnz", False),
        )
    },
    "three scales": BlockFormat(
        "three", "e2m1", (*_ABOVE, BlockScale("s", (3, 20), "amax / g / h / 6", "e4m3")),
        decode="s * g * h", tries=_TRIES, counted="all",
        error="square((v * s) * amax_g - amax_h * x) / decode",
    ),
}  # fmt: skip


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("shape", [(7, 90), (310, 6), (2, 6000)])
@pytest.mark.parametrize("name", FORMATS)
def test_the_engine_has_the_bits_of_the_exact_model(
    name: str, shape: tuple[int, int], dtype: Any
) -> None:
    """BLF-002, BLF-003, BLF-004, BLF-005 and BLF-007."""
    with np.errstate(over="ignore"):
        x = tensor(*shape).astype(dtype)
    assert_equals_exact(FORMATS[name], x)


@pytest.mark.parametrize("rounding", ["rne", "rna", "rnz"])
@pytest.mark.parametrize("fmt", [*WIDE_AND_UNSIGNED, formats["e2m1"]], ids=lambda fmt: fmt.name)
def test_elements_at_and_next_to_ties(fmt: Format, rounding: Any) -> None:
    """BLF-004, BLF-014: of both signs; ties of some formats have more bits than those of 8."""
    codes = range(0, fmt.largest_code, -(-fmt.largest_code // 300))
    below, above = (np.array([fmt.value(code + n) for code in codes]) for n in (0, 1))
    ties = ((below + above) / 2).astype(np.float32)
    near = [np.nextafter(ties, np.float32(end)) for end in (0, np.inf)]
    x = np.concatenate([below.astype(np.float32), ties, *near])
    scale = BlockScale("s", "tensor", "1")
    assert_equals_exact(
        BlockFormat("as_it_is", fmt, (scale,), decode="s", rounding=rounding),
        np.concatenate([x, -x])[None],
    )


@pytest.mark.parametrize(
    ("rounding", "codes"),
    [
        ("rne", [0, 1, 2, 2, 4, 4, 6, 6, 8, 9]),
        ("rna", [1, 1, 2, 3, 4, 5, 6, 7, 9, 9]),
        ("rnz", [0, 1, 1, 2, 3, 4, 5, 6, 8, 9]),
    ],
)
def test_where_ties_of_e2m1_go(rounding: Any, codes: list[int]) -> None:
    """BLF-014: 0.3 is no tie, and becomes 0.5 under each."""
    x = np.float32([[0.25, 0.3, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -0.25, -0.3]])
    scale = BlockScale("s", "tensor", "1")
    own = BlockFormat("as_it_is", "e2m1", (scale,), decode="s", rounding=rounding)
    assert mor_ref.quantize(x, own).codes[0].tolist() == codes
    without = dataclasses.replace(own, has_negative_zero=False)
    assert mor_ref.quantize(x, without).codes[0].tolist() == [
        code if code != 8 else 0 for code in codes
    ]
    assert mor_ref.quantize(x, tomllib.loads(without.text)).block_format == without
    with pytest.raises(
        TypeError, match="e2m1 with ties or zeros of their own, which are not round"
    ):
        mor_ref.quantize(x, without, random_bits=np.zeros(x.shape, np.uint32), n_random_bits=8)


def test_records_of_wide_and_of_unsigned_elements() -> None:
    """Codes of 16 bits go into an array, through a file, and to `verify`."""
    words = np.random.default_rng(1).integers(0, 256, X.shape, np.uint32)
    for name, dtype in (("int16", np.uint16), ("uint4", np.uint8)):
        out = np.empty(X.shape, dtype)
        record = mor_ref.quantize(X, FORMATS[name], out=out)
        assert record.codes is out
        report = mor_ref.verify(as_kernels_return, inputs={"x": X}, recipe=FORMATS[name])
        assert report.verdict == "match", str(report)
    at_random = mor_ref.quantize(X, FORMATS["uint4"], random_bits=words, n_random_bits=8)
    assert not at_random.codes[X < 0].any()
    assert at_random.codes.any()


def as_kernels_return(_: str, parameters: Any, inputs: Any) -> dict[str, Any]:
    """Return codes in the dtype of the format."""
    record = mor_ref.quantize(inputs["x"].view(np.float32), parameters["block_format"])
    y = record.dequantize().view(np.uint32)
    return {"scale": record.scales["s"].view(np.uint32), "code": record.codes, "y": y}


def test_a_scale_rounded_to_the_nearest_power_of_two() -> None:
    """ENC-013, BLF-003: as ml_dtypes has it; rne and rna are one rounding, and have one text."""
    amaxes = np.float32([[1, 1.4375, 1.5, 1.5625, 3, 2.9, 6, 100, 2.0**-120, 1e30]])
    own = BlockFormat("own", "e4m3", (BlockScale("s", (1, 1), "amax", "e8m0", "rne"),), decode="s")
    record = mor_ref.quantize(amaxes, own)
    powers = amaxes.astype(ml_dtypes.float8_e8m0fnu)
    np.testing.assert_array_equal(record.scales["s"], powers.view(np.uint8))
    away = own.text.replace('"rne"', '"rna"')
    assert 'rounding = "rna"' in away
    assert mor_ref.quantize(amaxes, away.replace('"rna"', '"rne"')) == record
    assert own.text == away


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 64, 199, 200, 201, 1000])
@pytest.mark.parametrize("percent", ["100", "99.9", "99.5", "50", "12.5", "0.5", "0.0001"])
def test_percentiles_are_those_of_numpy(count: int, percent: str) -> None:
    """BLF-007, at ranks that are whole numbers and next to them."""
    x = np.random.default_rng(count).integers(-40, 40, (3, count)).astype(np.float32)
    expected = np.percentile(abs(x), float(percent), axis=1, method="inverted_cdf")
    scale = BlockScale("s", "row", f"percentile({percent})")
    found = mor_ref.quantize(x, BlockFormat("ranks", "e4m3", (scale,), decode="s"))
    np.testing.assert_array_equal(found.scales["s"][:, 0], expected)
    for row, number in zip(x.tolist(), expected, strict=True):
        assert exact.percentile_of(row, Fraction(percent), "not nan") == number


@pytest.mark.parametrize(
    ("counted", "expected"), [("finite", 2.0), ("not nan", 3.0), ("all", np.nan)]
)
def test_a_percentile_counts_what_an_amax_counts(counted: Any, expected: float) -> None:
    """BLF-007."""
    x = np.float32([[np.nan, -np.inf, 1.0, -2.0, 3.0], [np.nan] * 5])
    scale = BlockScale("s", "row", "percentile(60)")
    block_format = BlockFormat("some", "e4m3", (scale,), decode="s", counted=counted)
    found = mor_ref.quantize(x, block_format).scales["s"][:, 0]
    np.testing.assert_array_equal(found, [expected, np.nan if counted == "all" else 0])


@pytest.mark.parametrize("name", ["own", "percentiles", "three scales"])
def test_threads_change_no_bit(name: str) -> None:
    x = tensor(1100, 1000)
    one, two = (mor_ref.quantize(x, FORMATS[name], threads=threads) for threads in (1, 2))
    assert one == two


# ---------------------------------------------------------------------- golden vectors

_TENSORS = ("mx", "quantize", *(f"nvfp4_{profile}" for profile in PROFILES))
_LARGE = ("mx_large", "quantize_large", "nvfp4_large")


def block_format_for(operation: str, parameters: Any, shape: tuple[int, ...]) -> BlockFormat:
    """Return the block format that a case of the suites has."""
    if operation == "mx":
        fmt = as_format(parameters["format"])
        return mx_formulas(fmt, parameters["scale_rule"], parameters["block"])
    if operation == "nvfp4":
        return nvfp4_formulas(PROFILES[parameters["profile"]], tuple(parameters["tile"]))
    cuts = (
        tuple(cut) if isinstance(cut := parameters[name], list) else cut
        for name in ("block", "group")
    )
    cut = partition(shape, *cuts)
    fmt = as_format(parameters["format"])
    return scaled_formulas(fmt, parameters["scaling"], cut.block, cut.group)


def fields_of(record: BlockQuantized) -> dict[str, Any]:
    """Return the fields of the suites that a record has."""
    fields = {"code": record.codes, "y": record.dequantize().view(np.uint32)}
    if len(record.scales) == 2 and "m" not in record.scales:
        return {**fields, "block_scale": record.scales["s"]}
    if record.block_format.decode is not None:
        return {**fields, "scale": record.scales["s"]}
    return {**fields, "scale": record.factor.view(np.uint32)}


@pytest.mark.parametrize("suite", [*_TENSORS, *_LARGE])
def test_the_engine_gives_each_golden_row(suite: str) -> None:
    operation, compared = SUITES[suite].operation, 0
    for case in golden.load(suite):
        if {"amax", "scale", "global_scale", "n_random_bits"} & set(case.parameters):
            continue  # numbers or random words are given
        x = tensor_of(case.arrays["x"], case.parameters["source"])
        block_format = block_format_for(operation, case.parameters, x.shape)
        for name, bits in fields_of(mor_ref.quantize(x, block_format)).items():
            if name in case.arrays:
                np.testing.assert_array_equal(bits, case.arrays[name], f"{case.name}, {name}")
            else:
                digests = sha256_128x128(np.ascontiguousarray(bits), case.parameters)
                expected = case.arrays[f"{name}@sha256_128x128"]
                np.testing.assert_array_equal(digests, expected, f"{case.name}, {name}")
            compared += bits.size
    assert compared > 20_000


def test_the_engine_gives_each_golden_block_of_mx() -> None:
    for case in golden.load("mx_blocks"):
        fmt, rule = as_format(case.parameters["format"]), case.parameters["scale_rule"]
        x = tensor_of(case.arrays["x"], case.parameters["source"])
        record = mor_ref.quantize(x, mx_formulas(fmt, rule, x.shape[1]))
        for name, bits in fields_of(record).items():
            np.testing.assert_array_equal(bits.reshape(case.arrays[name].shape), case.arrays[name])


@pytest.mark.parametrize("suite", ["quantize_blocks", "scale_steps"])
def test_the_engine_gives_each_golden_block_of_scaled_formats(suite: str) -> None:
    """The amax of the group is a number of its own, in a block of its own."""
    for case in golden.load(suite):
        given, parameters = case.arrays, case.parameters
        x = given["x"] if "x" in given else given["block_amax"][:, None]
        x = tensor_of(x, parameters.get("source", "f32")).astype(np.float32)
        group = given["group_amax"].view(np.float32)[:, None]
        width = x.shape[1]
        outer: Any = (1, 2 * width) if parameters["scaling"] == "gam" else "tensor"
        fmt = as_format(parameters["format"])
        formula = scaled_formulas(fmt, parameters["scaling"], (1, width), outer)
        record = mor_ref.quantize(np.concatenate([x, group], 1), formula)
        np.testing.assert_array_equal(record.factor[:, 0].view(np.uint32), given["scale"])
        if "code" in given:
            np.testing.assert_array_equal(record.codes[:, :width], given["code"])


def test_the_engine_gives_each_golden_block_of_nvfp4() -> None:
    """The amax of the tensor is a number of its own, in a tile of its own."""
    compared = 0
    for case in golden.load("nvfp4_blocks"):
        x = tensor_of(case.arrays["x"], case.parameters["source"]).astype(np.float32)
        amax = case.arrays["amax"].view(np.float32)
        holds = amax >= np.nan_to_num(case.arrays["block_amax"].view(np.float32), posinf=np.inf)
        formula = nvfp4_formulas(PROFILES[case.parameters["profile"]], (1, 16))
        above = dataclasses.replace(formula.scales[0], over="row")
        formula = dataclasses.replace(formula, scales=(above, formula.scales[1]))
        record = mor_ref.quantize(np.concatenate([x, amax[:, None]], 1)[holds], formula)
        expected = case.arrays["block_scale"][holds]
        np.testing.assert_array_equal(record.scales["s"][:, 0], expected)
        np.testing.assert_array_equal(record.codes[:, :16], case.arrays["code"][holds])
        compared += expected.size
    assert compared > 4000


# ---------------------------------------------------------------------- the public function

X = tensor(64, 128, 3)
X[~np.isfinite(X)] = 1.0


def test_a_block_format_is_given_by_itself_by_its_text_or_by_a_recipe() -> None:
    """BLF-006."""
    record = mor_ref.quantize(X, OWN)
    assert record == mor_ref.quantize(X, OWN.text)
    assert record == mor_ref.quantize(X, as_tensor_recipe(OWN).text)
    assert mor_ref.quantize(X, "mxfp8:rceil").block_format.name == "mx_e4m3_rceil_32"
    for text, other in (
        ("mxfp8:rceil", mor_ref.quantize_mx(X, "e4m3", scale_rule="rceil")),
        ("nvfp4:torchao", mor_ref.quantize_nvfp4(X, profile="torchao")),
        ("e4m3:gam:32x32", mor_ref.quantize(X, "e4m3", block=(32, 32))),
    ):
        found = mor_ref.quantize(X, text)
        assert isinstance(found, BlockQuantized)
        np.testing.assert_array_equal(found.codes, other.codes)
        np.testing.assert_array_equal(found.dequantize(), other.dequantize())


def test_a_record_has_scales_by_name_and_goes_through_a_file(tmp_path: Any) -> None:
    record = mor_ref.quantize(X, OWN)
    assert (record.scales["S"].shape, record.scales["s"].shape) == ((1, 1), (64, 2))
    assert (record.scales["S"].dtype, record.scales["s"].dtype) == (np.float32, np.uint8)
    factor = record.scale_numbers["s"] * record.scale_numbers["S"]
    y = mor_ref.decode(record.codes, "e2m1") * factor.repeat(64, 1)
    np.testing.assert_array_equal(record.dequantize(), y)
    record.save(tmp_path / "own.npz")
    assert mor_ref.load(tmp_path / "own.npz") == record
    wide = mor_ref.quantize(X, FORMATS["int16"])
    wide.save(tmp_path / "wide.safetensors")
    assert mor_ref.load(tmp_path / "wide.safetensors") == wide
    assert repr(record).startswith("<64x128 float32 as own: 128 blocks of 1x64, mean relative err")


def test_codes_can_be_rounded_at_random_and_written_into_an_array() -> None:
    words = np.random.default_rng(1).integers(0, 256, X.shape, np.uint32)
    out = np.empty(X.shape, np.uint8)
    found = mor_ref.quantize(X, "mxfp4", random_bits=words, n_random_bits=8, out=out)
    other = mor_ref.quantize_mx(X, "e2m1", random_bits=words, n_random_bits=8)
    assert found.codes is out
    np.testing.assert_array_equal(out, other.codes)


@pytest.mark.parametrize(
    ("arguments", "has"),
    [
        ({"block": "row"}, "block is 'row', but the formulas of block format 'own' have its scal"),
        ({"scaling": "fp32"}, "scaling is 'fp32', but the formulas"),
        ({"scaling": "gam"}, "scaling is 'gam', but the formulas"),  # what other formats have
        ({"block": "tensor"}, "block is 'tensor', but the formulas"),
        ({"group": "tensor"}, "group is 'tensor', but the formulas"),
    ],
)
@pytest.mark.parametrize("given", [OWN, OWN.text], ids=["record", "text"])
def test_arguments_that_formulas_replace_are_refused(given: Any, arguments: Any, has: str) -> None:
    with pytest.raises(ValueError, match=re.escape(has)):
        mor_ref.quantize(X, given, **arguments)


def test_a_kind_of_scales_that_no_rung_has_is_refused() -> None:
    policy = mor_ref.Policy("mine", (mor_ref.Rung(OWN, mor_ref.MeanRelativeError(0.5)),))
    has = "scaling is 'gam', but the representations of policy 'mine' have their own scales; omit"
    for refused in (
        lambda: mor_ref.mor(X, policy, scaling="gam"),
        lambda: settings_for(policy, scaling="gam"),
        lambda: as_tensor_recipe({"representation": "mor", "policy": policy, "scaling": "gam"}),
    ):
        with pytest.raises(ValueError, match=re.escape(has)):
            refused()
    recipe = as_tensor_recipe({"representation": "mor", "policy": policy})
    assert "scaling" not in recipe.text
    assert as_tensor_recipe(recipe.text) == recipe
    both = mor_ref.Policy(
        "both", (*policy.ladder, mor_ref.Rung("e4m3", mor_ref.MeanRelativeError(1)))
    )
    assert mor_ref.mor(X, both, scaling="fp32").scaling == "fp32"


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ('amax = 5.5\naxis = "columns"\n', AmaxOrScale(amax=5.5)),
        ("amax = { x = 5.5, y = 1.0 }\n", AmaxOrScale(amax=5.5)),
        ("scale = 0.125\n", AmaxOrScale(scale=0.125)),
    ],
)
def test_a_recipe_of_tensors_has_an_amax_or_a_scale(words: str, given: AmaxOrScale) -> None:
    recipe = own_recipe(words + OWN.text)
    assert own_recipe(str(recipe)) == recipe
    parameters = {**recipe.parameters_for("x"), "source": "f32"}
    found = OPERATIONS["blocks"].engine(parameters, {"x": X.view(np.uint32)})
    expected = exact.quantize(X.ravel().tolist(), X.shape, OWN, {OWN.scales[0].name: given})
    assert found["code"].ravel().tolist() == expected.codes


def test_an_amax_is_refused_where_no_tensor_is_given() -> None:
    has = "a block format has amax, which is no part of it; give amax to mor_ref.quantize, or at"
    with pytest.raises(ValueError, match=has):
        mor_ref.quantize(X, f"amax = 5.5\n{OWN.text}")
    recipe = own_recipe(f"amax = {{ {OWN.scales[0].name} = 5.5 }}\n{OWN.text}")
    with pytest.raises(ValueError, match="'x' has no amax in the recipe, whose numbers have the n"):
        recipe.parameters_for("x")


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("e4m5", "format is 'e4m5', which is not known"),
        ("mxfp8:rcei", "recipe is 'mxfp8:rcei', where 'rcei' is not known"),
        ("mor:tensor", "format is 'mor:tensor', which is a policy; call mor_ref.mor(x, 'tensor')"),
        ("name = 'a'\nelement = 'e4m3'", "a block format has no scales"),
        ("element = 'e4m3'\nscale = []", "a key of a block format is 'scale', which is not known"),
        (
            OWN.text + "counted = 'all'\n",
            "scale 's' has counted; give it to the block format, as all of its scales count the sa",
        ),
        (OWN.text.replace("/ S", "/ T"), "number of scale s is a formula '(amax / 6) / T' that ha"),
    ],
)
def test_a_text_that_is_no_block_format_is_refused(text: str, has: str) -> None:
    with pytest.raises((ValueError, UnknownNameError), match=re.escape(has)):
        mor_ref.quantize(X, text)


def test_a_recipe_without_formulas_is_no_block_format() -> None:
    with pytest.raises(ValueError, match="recipe is llm_int8, which is no block format; give"):
        as_block_format("llm_int8")


def test_blocks_with_tries_have_a_bounded_height() -> None:
    """BLF-005."""
    tall = dataclasses.replace(FORMATS["tall"], scales=(BlockScale("s", "column", "amax"),),
                               decode="s", encode=None)  # fmt: skip
    x = np.broadcast_to(ml_dtypes.bfloat16(1), (2**24 + 1, 1))
    words = "'tall' has several tries, and its blocks have 16,777,217 rows in this tensor; give blo"
    with pytest.raises(ValueError, match=words):
        mor_ref.quantize(x, tall)
    with pytest.raises(ValueError, match=words):
        exact.quantize([], (2**24 + 1, 1), tall)


def test_a_negative_factor_is_refused_by_the_engine() -> None:
    negative = dataclasses.replace(OWN, decode="0 - s", tries=("t",))
    with pytest.raises(ValueError, match=r"decode of block format 'own' is '0 - s', which is neg"):
        mor_ref.quantize(X, negative)


@pytest.mark.parametrize("numerator", [1, 3, 2**25 + 1, 2**25 + 3, 10**38 * 4, -7])
@pytest.mark.parametrize("denominator", [1, 3, 2**149, 2**150, 3 * 2**150, 10**40])
def test_numbers_of_formulas_are_rounded_once(numerator: int, denominator: int) -> None:
    number = Fraction(numerator, denominator)
    assert float(nearest_binary32(number)) == rn32(number)


def test_kernels_of_formulas_are_kept_on_disk(tmp_path: Any) -> None:
    """Another process finds them, and compiles nothing."""
    program = (
        "import mor_ref, numpy as np\n"
        "from mor_ref.engine import block_formats\n"
        "mor_ref.quantize(np.ones((2, 64), np.float32), 'mxfp8')\n"
        "kernel = block_formats.kernel_of(mor_ref.recipes.as_block_format('mxfp8'), 0).run\n"
        "print(sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))\n"
    )
    counts = [
        subprocess.run(
            [sys.executable, "-c", program.replace("import mor_ref,", "import mor_ref.recipes,")],
            env={"NUMBA_CACHE_DIR": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(2)
    ]
    assert counts == [["0", "1"], ["1", "0"]]


def test_block_formats_of_the_same_formulas_share_a_kernel() -> None:
    from mor_ref.engine.block_formats import kernel_of

    kernels = {
        kernel_of(mx_formulas(formats[name], rule, block), 0).run
        for name in ("e4m3", "e2m1", "int8_mx")
        for rule in ("floor", "ceil", "even")
        for block in (16, 32)
    }
    assert len(kernels) == 1


# ---------------------------------------------------------------------- everywhere else


def test_compare_and_analyze_take_a_block_format() -> None:
    found = compare(X, [OWN, "nvfp4"])
    assert list(found) == ["own", "nvfp4"]
    y = mor_ref.quantize(X, OWN).dequantize().astype(np.float64)
    noise = float(np.sum((y - X) ** 2))
    assert float(found["own"].measures.noise) * 2.0**-298 == pytest.approx(noise)
    assert found["own"].bits == 4 * X.size + 8 * 128 + 32
    report = analyze(X, settings_under(OWN)).report
    assert report.shares == {"own": 1.0, "bf16": 0.0}


def one_try(_: str, parameters: Any, inputs: Any) -> dict[str, Any]:
    """Quantize as a kernel does that forgets the tries."""
    text = parameters["block_format"].replace('["t", "0.875 * t", "1.5 * t"]', '["t"]')
    record = mor_ref.quantize(inputs["x"].view(np.float32), text)
    return {"scale": record.scales["s"].astype(np.uint32), "code": record.codes}


def test_verify_takes_a_block_format() -> None:
    report = mor_ref.verify("numba", inputs={"x": X}, recipe=OWN)
    assert (report.verdict, report.results[0].title) == ("match", "Own tensors with own")
    assert f"own: match, {2 * X.size + 2 * 128 + 1:,} entries" in str(report)
    report = mor_ref.verify(one_try, inputs={"x": X}, recipe=OWN)
    assert report.verdict == "mismatch"


def test_commands_take_a_file_of_toml(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "own.toml").write_text(OWN.text)

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "mor_ref", *arguments, "--recipe", "own.toml"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    assert "own: 4.13 bits" in run("compare", "x.npy")
    assert "share of elements: own" in run("analyze", "x.npy")
    assert "1 tensor with own" in run("quantize", "x.npy", "--out", "made.npz")
    with np.load(tmp_path / "made.npz") as made:
        np.testing.assert_array_equal(made["x.npy/code"], mor_ref.quantize(X, OWN).codes)
    assert "own: match" in run("verify", "numba", "--inputs", "x.npy")


def test_a_rung_of_a_policy_can_be_a_block_format() -> None:
    policy = mor_ref.Policy("mine", (mor_ref.Rung(OWN, mor_ref.MeanRelativeError(0.5)),))
    x = np.random.default_rng(0).standard_normal((64, 128), dtype=np.float32)
    result = mor_ref.mor(x, policy)
    assert result.ladder == ("own", "bf16")
    assert result.choice.tolist() == [[0]]
    whole = mor_ref.quantize(x, OWN).dequantize(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(result.output, whole.view(np.uint16))


def without_numbers(element: str, number: str, stored: str = "f32", **more: Any) -> BlockFormat:
    scale = BlockScale("s", (1, 32), number, stored)
    return BlockFormat(f"zero_{element}", element, (scale,), **{"decode": "s", **more})


@pytest.mark.parametrize(
    "block_format",
    [
        without_numbers("e4m3", "amax / 448"),
        without_numbers("e4m3", "amax / 448", encode="1 / s"),
        without_numbers("e5m2", "0", "bf16", counted="all"),
        without_numbers("e4m3", "amax / 448", drops_sign_of_zero=True, tries=("t", "2 * t")),
        without_numbers("e2m1", "amax / 6"),
        # factors that do not belong together: finite numbers have the code of NaN
        *(without_numbers(name, "amax", decode="s or 1", encode="s / s")
          for name in ("e4m3", "e2m1", "int8_mx")),
    ],
    ids=lambda own: f"{own.fmt.name}, {own.scales[0].number}, {own.encode}",
)  # fmt: skip
def test_a_zero_whose_y_is_nan_is_lost(block_format: BlockFormat) -> None:
    """ERR-003: blocks of zeros whose scale is 0, or that have another NaN instead of a number."""
    x = np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32)
    x[1], x[2, :32], x[3, 5] = 0, -0.0, np.inf
    record = mor_ref.quantize(x, block_format)
    y = exact.quantize(x.reshape(-1).tolist(), x.shape, block_format).y
    np.testing.assert_array_equal(record.dequantize().reshape(-1), y)
    pairs = list(zip(x.reshape(-1).tolist(), y, strict=True))
    got = record.error
    of_blocks = [error_sum(pairs[start : start + 32]) for start in range(0, x.size, 32)]
    for name in ("sum", "nonzero", "nonfinite"):
        expected = sum(getattr(own, name) for own in of_blocks)
        assert int(getattr(got, name).sum()) == expected, name
    policy = mor_ref.Policy(
        "mine", (mor_ref.Rung(block_format, mor_ref.MeanRelativeError(1)),), "block", block=(1, 32)
    )
    decided = mor_ref.mor(x, policy)
    lost = [own.nonfinite > 0 for own in of_blocks]
    assert not (decided.choice.reshape(-1) == 0)[lost].any()
    is_taken = np.repeat(decided.choice, 32, axis=1) == 0
    as_bf16 = mor_ref.encode(record.dequantize(), "bf16", overflow="ieee")
    np.testing.assert_array_equal(decided.output[is_taken], as_bf16[is_taken])


@pytest.mark.parametrize("name", ["nvfp4", "mxfp8", "te", "e4m3", "int8", "mx9", "mor"])
def test_a_block_format_cannot_have_the_name_of_another_representation(name: str) -> None:
    """MOR-007: tables and pictures would have two recipes of one name."""
    own = dataclasses.replace(OWN, name=name)
    for given in (own, own.text):
        with pytest.raises(ValueError, match=f"block format has the name '{name}', which is that"):
            as_tensor_recipe(given)


def test_quantize_takes_the_table_of_a_block_format() -> None:
    table = tomllib.loads(OWN.text)
    assert mor_ref.quantize(X, table) == mor_ref.quantize(X, OWN)


def test_the_exact_model_of_the_representation_has_the_elements() -> None:
    rows = X[:3].tolist()
    elements = FormulaBlocks(OWN).exact(rows, "gam", None)  # type: ignore[arg-type]
    record = mor_ref.quantize(X[:3], OWN)
    assert [[element.code for element in row] for row in elements] == record.codes.tolist()
    assert [[element.y for element in row] for row in elements] == record.dequantize().tolist()
    factor = np.array(
        exact.quantize(X[:3].reshape(-1).tolist(), (3, 128), OWN).scales["s"].numbers["encode"]
    ).astype(np.float32)
    xs = X[:3] * factor.reshape(3, 2).repeat(64, 1)
    assert [[element.xs for element in row] for row in elements] == xs.tolist()


def test_an_unsigned_format_of_its_own_stores_scales() -> None:
    record = mor_ref.quantize(X, OWN)
    assert record.scales["s"].max() > 127  # codes of 8 bits without a sign
    assert OWN.scales[1].fmt == UE5M3


UNSIGNED = dataclasses.replace(
    FORMATS["uint4"], scales=(BlockScale("s", (4, 64), "amax / 15"),), tries=("t",)
)


@pytest.mark.parametrize(
    ("block_format", "threshold", "source"),
    [(OWN, "0.21", "f32"), (OWN, "0.21", "bf16"), (OWN, "0.21", "f16"), (UNSIGNED, "0.58", "f32")],
)
def test_a_policy_with_a_block_format_decides_alike_in_all_implementations(
    block_format: BlockFormat, threshold: str, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed.compiler()
    rung = mor_ref.Rung(block_format, mor_ref.MeanRelativeError(threshold))
    monkeypatch.setitem(POLICIES, "mine", mor_ref.Policy("mine", (rung,), unit="block"))
    x = np.random.default_rng(2).standard_normal((8, 128), dtype=np.float32)
    bits = mor_ref.encode(x, source, overflow="ieee")
    parameters = {"policy": "mine", "scaling": "gam", "block": [4, 64], "source": source}
    mor, case = OPERATIONS["mor"], Case("x", parameters, {"x": bits})
    expected = mor.exact(parameters, case.arrays)
    assert len(set(expected["choice"].flat)) == 2
    for candidate in (Engine(), kernels_named("cuda-host")):
        answer = candidate.answer("mor", "mor", case)
        for name, field in expected.items():
            np.testing.assert_array_equal(answer[name], field, f"{candidate}, {name}")
    many = mor.exact_of_many(parameters, case.arrays)
    for name, field in many.items():
        np.testing.assert_array_equal(field, expected[name], name)


def test_an_amax_that_no_formula_reads_is_refused():
    """BLF-007, BLF-008: a scale of percentiles has a scale given, but no amax."""
    own = BlockScale("s", (1, 32), "percentile(90) / 6 or 1", "e4m3")
    clipped = BlockFormat("clipped", "e2m1", (own,), decode="s")
    with pytest.raises(ValueError, match="amax of 's' is given, but its formula has percentiles a"):
        mor_ref.quantize(np.ones((1, 32), np.float32), clipped, amax=2.0)
    both = dataclasses.replace(own, number="max(percentile(90), amax / 2) or 1")
    found = mor_ref.quantize(
        np.zeros((1, 32), np.float32), BlockFormat("both", "e2m1", (both,), decode="s"), amax=4.0
    )
    assert found.scales["s"].item() == 0x40  # 2 in e4m3
