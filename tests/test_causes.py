"""Causes that real software has: bits of NaN, torchao's MX, gguf's scales, the codes of others.

Expected bits are those of that software, on this machine.
"""

import platform
import re
from functools import cache

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs

import mor_ref
from mor_ref import golden
from mor_ref.definitions.formats import encoding_profiles, formats
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.exact.nvfp4 import block_scale_code
from mor_ref.golden import bundled_files
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.reporting import report_files
from mor_ref.verify.reporting import text as report
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

CANONICAL, QUIET, OF_X86 = 0x7FFFFFFF, 0x7FC00000, 0xFFC00000


def on(function, *suites):
    return verify(PythonFunction("other", function), suites_in(bundled_files(), list(suites)))


def causes(found):
    return {
        d.suite: [e.deviations for e in d.explanations if e.is_whole]
        for d in found.diagnosis.suites
    }


def right(operation, parameters, inputs):
    return dict(OPERATIONS[operation].exact(parameters, inputs))


def computed(name, operation, parameters, inputs):
    with applied(CAUSES[name]):
        return right(operation, parameters, inputs)


# ---------------------------------------------------------------------- NaN


def with_nan(bits, *fields):
    """Return a candidate with other bits for each NaN, in some fields or in all."""

    def function(operation, parameters, inputs):
        found = right(operation, parameters, inputs)
        for name in fields or found:
            if found[name].dtype == np.uint32:
                found[name] = np.where(found[name] == CANONICAL, np.uint32(bits), found[name])
        return found

    return function


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    ("bits", "name"), [(QUIET, "ART-003/nan-7fc00000"), (OF_X86, "ART-003/nan-ffc00000")]
)
def test_other_bits_of_nan_are_named(bits, name):
    """ART-003, DEC-002: and it is said that nothing else differs."""
    found = on(with_nan(bits), "quantize_steps", "decode")
    assert causes(found) == {"quantize_steps": [(name,)], "decode": [(name,)]}
    text = "\n".join(report.lines(found))
    (xs,) = (field for field in found.results[0].fields if field.name == "xs")
    assert 0 < xs.nans == xs.differing
    line = f"  xs: {xs.differing:,} of {xs.compared:,} differ; equal but for the bits of NaN\n"
    assert line in text
    assert line.strip().removeprefix("xs: ") in report_files.as_html(found)


@pytest.mark.tier("full")
def test_what_no_deviation_explains_may_be_equal_but_for_the_bits_of_nan():
    """A third NaN, which nobody makes; and a field that is wrong as well."""
    found = on(with_nan(0x7F812345), "quantize_steps")
    assert causes(found) == {"quantize_steps": []}
    text = "\n".join(report.lines(found))
    assert len(re.findall("differ; equal but for the bits of NaN\n", text)) == 2

    def wrong_as_well(operation, parameters, inputs):
        made = with_nan(0x7F812345)(operation, parameters, inputs)
        made["y"][np.flatnonzero(made["y"] == 0)[0]] ^= 1
        return made

    (result,) = on(wrong_as_well, "quantize_steps").results
    assert result.first_mismatching_field.name == "y"  # not xs, which is equal but for NaN
    (y,) = (field for field in result.fields if field.name == "y")
    assert (y.differing, y.nans > 0) == (y.nans + 5, True)
    said = report.of_nans(y.nans, y.differing)
    assert said == f"; {y.nans:,} of these only in the bits of a NaN"


@pytest.mark.tier("full")
def test_a_nan_of_a_packed_code_or_a_digest_is_none():
    """The bits are those of no number there."""

    def flipped(operation, parameters, inputs):
        found = right(operation, parameters, inputs)
        return {"code@transposed": found["code"].T ^ np.uint8(1), "scale": found["scale"]}

    for result in on(flipped, "mx").results:
        assert sum(d.nans for d in result.differences if d.format in ("e2m1", "e2m3", "e3m2")) == 0


def by_numpy(operation, _, inputs):
    """Multiply numbers by scales as this processor does."""
    if operation != "quantize_element":
        return None
    x, scale = (inputs[name].view(np.float32) for name in ("x", "scale"))
    with np.errstate(all="ignore"):
        return {"xs": (x * scale).view(np.uint32)}


@pytest.mark.tier("full")
def test_the_nan_of_this_processor_is_named():
    """NumPy keeps the payload of x, and makes a NaN of infinity times 0."""
    names = {"x86_64": "nan_payload_kept_on_x86", "aarch64": "nan_payload_kept"}
    name = names.get(platform.machine()) or pytest.skip("known for x86-64 and ARM")
    found = on(by_numpy, "quantize_steps")
    assert (name,) in causes(found)["quantize_steps"]
    assert found.results[0].nans == found.results[0].differing


# ---------------------------------------------------------------------- torchao


@cache
def torchao():
    mx = imported("torchao.prototype.mx_formats.mx_tensor")
    config = imported("torchao.prototype.mx_formats.config")
    return imported("torch"), mx, config.ScaleCalculationMode


def mx_by_torchao(operation, parameters, inputs):
    torch, mx, modes = torchao()
    dtypes = {
        "e4m3": torch.float8_e4m3fn,
        "e5m2": torch.float8_e5m2,
        "e2m1": torch.float4_e2m1fn_x2,
    }
    fmt, x = parameters["format"], inputs["x"]
    if fmt == "int8_mx" or operation != "mx_block" or x.shape[1] != 32:
        return None
    dtype = dtypes.get(fmt, f"fp6_{fmt}")
    whole = torch.from_numpy(x.view(np.int32)).view(torch.float32)
    scale, found = mx.to_mx(whole, dtype, 32, modes(parameters["scale_rule"]))
    code = found.view(torch.uint8).numpy()
    if fmt == "e2m1":
        code = np.stack([code & 15, code >> 4], -1).reshape(x.shape)
    y = mx.to_dtype(found, scale, dtype, 32, torch.float32).numpy().view(np.uint32)
    return {"scale": scale.view(torch.uint8).numpy()[:, 0], "code": code, "y": y}


@needs("torch", "torchao")
@pytest.mark.tier("full")
def test_torchao_is_explained_whole():
    """MXS-006, MXS-007: by its ways with code 0, with logarithms and with NaN, and by no other."""
    found = on(mx_by_torchao, "mx_blocks")
    (explained,) = causes(found).values()
    assert explained[0] == ("mx_as_torchao", "ART-003/nan-7fc00000")
    assert all(names[0] == "mx_as_torchao" for names in explained)


def near_thresholds(fmt):
    """Return blocks whose amax is some steps around the largest number times powers of two."""
    bits = np.float32(formats[fmt].largest).view(np.uint32)
    exponents = np.arange(-100, 101, 20) << 23
    steps = np.arange(-2, 12)
    x = np.zeros((exponents.size * steps.size, 32), np.uint32)
    x[:, 0] = (int(bits) + exponents[:, None] + steps).ravel()
    return x


@pytest.mark.tier("full", but=["[e3m2]"])
@needs("torch", "torchao")
@pytest.mark.parametrize("fmt", ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"])
def test_the_scale_of_rceil_is_that_of_torchao(fmt):
    """MXS-006: the logarithm in binary32 is wrong there in most blocks, and in the same ones."""
    parameters = {"format": fmt, "scale_rule": "rceil", "source": "f32"}
    inputs = {"x": near_thresholds(fmt)}
    theirs = mx_by_torchao("mx_block", parameters, inputs)["scale"]
    assert (theirs != right("mx_block", parameters, inputs)["scale"]).mean() > 0.5
    for name in ("MXS-006/log2-in-binary32", "mx_as_torchao"):
        ours = computed(name, "mx_block", parameters, inputs)["scale"]
        assert np.array_equal(theirs, ours)


@needs("torch", "torchao")
@pytest.mark.parametrize("rule", ["floor", "ceil", "even", "rceil"])
def test_scale_code_0_is_applied_as_torchao_does(rule):
    """MXS-007: divided by 2^-126, or not at all."""
    x = np.zeros((8, 32), np.uint32)
    x[:] = (np.arange(256) * 1543 + 7).reshape(8, 32)
    x[::2] |= 0x80000000
    parameters, inputs = {"format": "e4m3", "scale_rule": rule, "source": "f32"}, {"x": x}
    theirs = mx_by_torchao("mx_block", parameters, inputs)
    assert not theirs["scale"].any()
    name = (
        "mx_rceil_leaves_code_0_unscaled"
        if rule == "rceil"
        else "mx_divisor_at_least_smallest_normal"
    )
    ours = computed(name, "mx_block", parameters, inputs)
    assert all(np.array_equal(theirs[field], ours[field]) for field in theirs)
    plain = right("mx_block", parameters, inputs)
    assert not np.array_equal(theirs["code"], plain["code"])


# ---------------------------------------------------------------------- gguf

MXFP4_OF_GGUF = {"format": "e2m1", "scale_rule": "floor", "source": "f32"}


@needs("gguf")
def test_scale_codes_wrap_as_those_of_gguf_do():
    """MXS-002: below 2^-125, and nowhere else."""
    quants = imported("gguf.quants")
    x = np.zeros((149, 32), np.float32)
    x[:, 3] = np.ldexp(np.float32(1.5), np.arange(-148, 1))
    with np.errstate(all="ignore"):
        theirs = quants.MXFP4.quantize_blocks(x)[:, 0]
    parameters, inputs = MXFP4_OF_GGUF, {"x": x.view(np.uint32)}
    ours = computed("mx_scale_code_wraps", "mx_block", parameters, inputs)["scale"]
    assert np.array_equal(theirs, ours)
    plain = right("mx_block", parameters, inputs)["scale"]
    assert (plain != ours).sum() == 148 - 125


@needs("gguf")
def test_scales_saturate_as_those_of_gguf_do():
    """NVF-002: e4m3 without a sign, on normal numbers other than ties, which gguf rounds up."""
    quants = imported("gguf.quants")
    s = np.random.default_rng(0).uniform(2**-6, 500, 2000).astype(np.float32)
    s = np.concatenate([s, np.float32([247.9, 248, 256, 448, np.inf])])
    theirs = quants.NVFP4.fp32_to_ue4m3(s).tolist()
    with applied(DEVIATIONS["block_scale_saturates_from_248"]):
        ours = [block_scale_code(float(one)) for one in s]
    assert ours == theirs
    assert ours != [block_scale_code(float(one)) for one in s]


def mx_by_gguf(operation, parameters, inputs):
    """Return the fields of gguf's MXFP4 for blocks; None for another recipe."""
    quants = imported("gguf.quants")
    if (operation, parameters["format"], parameters["scale_rule"]) != ("mx_block", "e2m1", "floor"):
        return None
    if inputs["x"].shape[1] != 32:
        return None
    with np.errstate(all="ignore"):
        found = quants.MXFP4.quantize_blocks(inputs["x"].view(np.float32))
        y = quants.MXFP4.dequantize_blocks(found).astype(np.float32)
    code = np.concatenate([found[:, 1:] & 15, found[:, 1:] >> 4], axis=1)
    return {"scale": found[:, 0], "code": code, "y": y.view(np.uint32)}


@pytest.mark.tier("full")
@needs("gguf")
def test_gguf_is_explained_whole():
    """MXS-002, MXS-007: ties, zeros, and scale codes that wrap or follow from infinities."""
    found = on(mx_by_gguf, "mx_blocks")
    (explained,) = causes(found).values()
    assert ("mx_as_gguf",) in explained


@needs("gguf")
def test_mxfp4_is_that_of_gguf():
    """Bit for bit: also numbers that its scale makes infinite, and blocks with an infinity."""
    random = np.random.default_rng(5)
    x = np.ldexp(
        random.choice(np.arange(-12, 13) / 2, (60, 32)), random.integers(-149, 126, (60, 1))
    )
    x = x.astype(np.float32)
    x[0] = np.finfo(np.float32).max * np.linspace(-1, 1, 32, dtype=np.float32)
    x[1, 5], x[2, 7], x[3, 9], x[3, 11] = np.inf, np.nan, -np.inf, -np.nan
    parameters, inputs = MXFP4_OF_GGUF, {"x": x.view(np.uint32)}
    theirs = mx_by_gguf("mx_block", parameters, inputs)
    ours = computed("mx_as_gguf", "mx_block", parameters, inputs)
    assert all(np.array_equal(theirs[field], ours[field]) for field in theirs)


@pytest.mark.tier("full")
def test_wrapped_scale_codes_of_a_kernel_are_named():
    def wrapping(operation, parameters, inputs):
        found = computed("mx_scale_code_wraps", operation, parameters, inputs)
        return {"scale": found["scale"]}

    assert causes(on(wrapping, "mx_blocks"))["mx_blocks"] == [("mx_scale_code_wraps",)]


@pytest.mark.tier("full")
def test_each_of_two_that_explain_one_suite_is_tried_first_on_the_next():
    """A wrong cause that explains it as well is not named in its place."""

    def both(operation, parameters, inputs):
        with applied(DEVIATIONS["mx_as_torchao"], CAUSES["ART-003/nan-ffc00000"]):
            found = right(operation, parameters, inputs)
        return {name: found[name] for name in ("scale", "code", "y")}

    def some(operation, parameters, inputs):
        """Leave out tensors with NaN under rceil, where flushing explains the same."""
        if operation == "mx":
            is_mine = (parameters["scale_rule"], parameters["source"]) == ("rceil", "f32")
            if not is_mine or np.isnan(inputs["x"].view(np.float32)).any():
                return None
        return both(operation, parameters, inputs)

    found = on(some, "mx_blocks", "mx")
    assert causes(found)["mx"][0] == ("mx_as_torchao",)


@pytest.mark.tier("full")
def test_two_that_explain_all_between_them_are_tried_first(monkeypatch):
    """NaN in one row, scale code 0 in another; a tensor so large that few pairs are tried."""
    names = "mx_rceil_leaves_code_0_unscaled", "ART-003/nan-7fc00000"

    def both(operation, parameters, inputs):
        with applied(*(CAUSES[name] for name in names)):
            return right(operation, parameters, inputs)

    x = np.random.default_rng(5).standard_normal((6, 32)).astype(np.float32)
    x[1, 3] = np.nan
    x[4] *= np.float32(2.0**-133)
    for module in ("diagnosing.diagnosis", "reporting.text"):
        monkeypatch.setattr(f"mor_ref.verify.{module}.PAIRS_END", 20 * x.size)
    found = mor_ref.verify(both, inputs={"x": x}, recipe="mxfp8:rceil")
    assert causes(found)["own"][0] == names


# ---------------------------------------------------------------------- codes of libraries

DTYPES = {
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e2m1": "float4_e2m1fn",
    "bf16": "bfloat16",
}


def by_ml_dtypes(operation, parameters, inputs):
    """Encode as the first example of the guide, in a few formats."""
    name, source = DTYPES.get(parameters["format"]), parameters.get("source")
    if operation != "encode" or name is None or source not in ("f32", "f64"):
        return None
    if parameters["rounding"] != "rne" or parameters["overflow"] != "satfinite":
        return None
    x = inputs["x"].view(np.float32 if source == "f32" else np.float64)
    with np.errstate(all="ignore"):
        codes = x.astype(getattr(ml_dtypes, name))
    return {"code": codes.view(np.uint16 if name == "bfloat16" else np.uint8)}


def test_a_candidate_that_encodes_with_ml_dtypes_is_explained():
    """ENC-016."""
    assert causes(on(by_ml_dtypes, "encode")) == {"encode": [("encode_as_ml_dtypes",)]}


@pytest.mark.parametrize("library", encoding_profiles)
def test_codes_are_those_of_the_preset(library):
    """ENC-016: whatever is asked for; from binary64 by way of binary32, as two of them do."""
    for case in golden.load("encode_presets"):
        name = case.parameters["format"]
        if case.parameters["preset"] == library and formats[name].bits <= 8:
            asked = {**case.parameters, "rounding": "rtz", "overflow": "ieee", "nan": "signed"}
            found = computed(f"encode_as_{library}", "encode", asked, {"x": case.arrays["x"][::7]})
            assert np.array_equal(found["code"], case.arrays["code"][::7]), name


@needs("torch")
def test_torch_rounds_binary64_through_binary32():
    torch = imported("torch")
    x = np.array([0.3, 1.0625 + 2.0**-40, 1.0625 - 2.0**-40, 1.1875 - 2.0**-40, -1.0625 - 2.0**-40])
    theirs = torch.from_numpy(x).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    parameters = {"format": "e4m3", "source": "f64", "rounding": "rne"}
    parameters |= {"overflow": "satfinite", "nan": "canonical"}
    inputs = {"x": x.view(np.uint64)}
    ours = computed("encode_as_torch", "encode", parameters, inputs)["code"]
    assert np.array_equal(theirs, ours)
    assert not np.array_equal(theirs, right("encode", parameters, inputs)["code"])


# ---------------------------------------------------------------------- guesses


@pytest.mark.tier("full")
def test_a_part_is_a_guess_with_its_share():
    """Never a cause."""

    def odd(operation, parameters, inputs):
        with applied(CAUSES["ENC-003/ties-away"]):
            found = right(operation, parameters, inputs)
        found["code"] = found["code"] ^ (np.arange(len(found["code"])) % 50 == 3)
        return found

    found = on(odd, "quantize_steps")
    text = "\n".join(report.lines(found))
    best = found.diagnosis.suites[0].explanations[0]
    assert f"; `ENC-003/ties-away` (rule ENC-003) explains {report.share(best)}: all " in text
    assert f"({best.explained:,} of {best.of:,})" in text
    assert "explained by" not in text
    page = report_files.as_html(found)
    assert "explained by" not in page
    assert "What explains all of them is not known" in page
