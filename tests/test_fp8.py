"""FP8 of libraries: each profile is that of its page, unlike every other, and like the software."""

import itertools

import numpy as np
import pytest
from extras import imported, needs
from test_trace import ROOT, table_after

import mor_ref
from mor_ref import golden
from mor_ref.definitions.blocks import word_of
from mor_ref.exact.block_formats import quantize
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import as_tensor_recipe, short_text
from mor_ref.schemes.fp8.definition import FP8_PROFILES, fp8_formulas

F = np.float32
RANDOM = np.random.default_rng(5)


def adversarial(columns=256, rows=512):
    """Return numbers of many magnitudes, rows of zeros, and numbers next to ties of e4m3."""
    x = RANDOM.standard_normal((rows, columns)).astype(F)
    x *= (F(2) ** RANDOM.integers(-40, 30, (rows, 1))).astype(F)
    x[3], x[4, :4] = 0, [0.0, -0.0, 2.0**-149, -1e-38]
    amax = np.abs(x[8:]).max(axis=1, keepdims=True)
    ties = RANDOM.choice(F([1.0625, 17, 232, 416, 2.0**-10]), (rows - 8, 8))
    x[8:, 8:16] = np.nextafter(ties * (amax / F(448)), F(RANDOM.choice([-1, 1])) * F(np.inf))
    x[8:, 16:24] = ties * (amax / F(448))
    return x


def test_the_printed_profiles_are_those_of_the_catalogue():
    """FPL-001, FPL-002."""
    printed = [tuple(row) for row in table_after(":id: FPL-001", ROOT / "spec/fp8.md")]
    assert printed == [
        (
            p.name, p.element, word_of(p.tile), p.stored, p.counted, f"`{p.number}`",
            f"`{p.encode}`" if p.encode else "x / s",
        )
        for p in FP8_PROFILES.values()
    ]  # fmt: skip
    sources = table_after("## Whose they are", ROOT / "spec/fp8.md")
    assert [tuple(row) for row in sources] == [
        (p.name, p.source, ", ".join(p.also)) for p in FP8_PROFILES.values()
    ]


def test_the_suite_tells_each_profile_from_every_other():
    """FPL-001: by the stored scale, or by a code."""
    expected = {
        case.name.split(".")[0]: case.arrays
        for case in golden.load("fp8")
        if case.name.endswith("turns.f32")
    }
    assert list(expected) == list(FP8_PROFILES.specified)
    for one, other in itertools.combinations(FP8_PROFILES.values(), 2):
        same = (
            fp8_formulas(one, "row").text.partition("\n")[2]
            == (fp8_formulas(other, "row").text.partition("\n")[2])
        )
        differs = [
            field
            for field in ("scale", "code")
            if not np.array_equal(expected[one.name][field], expected[other.name][field])
        ]
        assert bool(differs) != same, (one.name, other.name)


def test_a_profile_is_a_word_at_every_door():
    """FPL-002: with its own tile, or with another one."""
    x = adversarial(160, 130)
    own = mor_ref.quantize(x, "deepgemm")
    assert own.scales["s"].shape == (130, 2)
    square = mor_ref.quantize(x, "deepgemm:128x128")
    assert square.scales["s"].shape == (2, 2)
    assert short_text(as_tensor_recipe("te_current")) == "te_current:tensor"
    assert (
        as_tensor_recipe('{ representation = "fp8", of = "unsloth", tile = "row" }').tile == "row"
    )
    with pytest.raises(ValueError, match="did you mean 'vllm_token'"):
        as_tensor_recipe("fbgemm_row")
    with pytest.raises(ValueError, match="did you mean 'te_block'"):
        mor_ref.quantize(x, "float8_block_scaling")


@pytest.mark.parametrize(
    ("profile", "of_zeros", "of_nan", "of_infinity"),
    [
        ("deepgemm", F(1e-4) / F(448), np.nan, np.inf),
        ("deepseek_v3", 0, F(1) / F(448), np.inf),
        ("vllm_cuda", F(1e-10) / F(448), F(1) / F(448), np.inf),
        ("vllm_token", F(1) / F(229376), F(1) / F(448), np.inf),
        ("unsloth", 1, F(1) / F(448), np.inf),
        ("te_block", 1, 2.0**-8, 1),
        ("te_block_f32", 1, F(1) / (F(448) / F(1)), 1),
        ("trtllm", 1, F(1) / (F(448) / F(1)), np.inf),
        ("deepgemm_ue8m0", 2.0**-22, 2.0**127, 2.0**127),
        ("vllm_ue8m0", 2.0**-33, 2.0**-8, 2.0**127),
    ],
)
def test_scales_of_zeros_nan_and_infinities(profile, of_zeros, of_nan, of_infinity):
    """FPL-003: as the sources of each library have them."""
    x = F([[0, -0.0], [np.nan, 1], [np.inf, 1]])
    record = mor_ref.quantize(x, f"{profile}:row")
    scales = record.scale_numbers["s"].ravel()
    assert np.array_equal(scales, F([of_zeros, of_nan, of_infinity]), equal_nan=True)
    assert record.codes[0].tolist() == ([0x7F, 0x7F] if of_zeros == 0 else [0, 0x80])
    assert record.codes[1, 0] == 0x7F


def test_a_scale_that_is_rounded_after_the_codes_is_named():
    """FPL-001: the confusion of UE8M0 that was reported of six projects."""

    def late(operation, parameters, inputs):
        ask = OPERATIONS[operation]
        scale = ask.engine(parameters, inputs)["scale"]
        before = parameters | {"profile": "deepgemm", "scale_format": "f32"}
        code = ask.engine(before, inputs)["code"]
        y = ask.way_back.restore(parameters, {"code": code, "scale": scale})
        return {"scale": scale, "code": code, "y": y}

    x = RANDOM.standard_normal((8, 256)).astype(F)
    report = str(mor_ref.verify(late, inputs={"x": x}, recipe="deepgemm_ue8m0"))
    assert "mismatches are explained by `s/rounded-late`" in report
    assert "rounded after the codes were made" in report


def unlike(profile, codes, scales, x, tile=None):
    """Return how many codes and scales of a profile are others than those of its library.

    The casts of torch keep the sign of a NaN (FPL-003).
    """
    word = profile if tile is None else f"{profile}:{tile}"
    record = mor_ref.quantize(x, word)
    ours = record.scale_numbers["s"]
    codes = np.where(np.isnan(mor_ref.decode(codes, record.block_format.fmt)), 0x7F, codes)
    return (
        int(np.count_nonzero(record.codes != codes)),
        int(np.count_nonzero(ours.ravel().view(np.uint32) != scales.ravel().view(np.uint32))),
    )


@needs("torch", "torchao")
@pytest.mark.parametrize("source", ["float32", "bfloat16"])
def test_torchao(source):
    """FPL-001: its training in blocks, in rows, and its inference."""
    torch = imported("torch")
    utils = imported("torchao.float8.float8_utils")
    blockwise = imported("torchao.prototype.blockwise_fp8_training.kernels")
    primitives = imported("torchao.quantization.quant_primitives")
    x = torch.from_numpy(adversarial()).to(getattr(torch, source))
    own = x.float().numpy()
    e4m3 = torch.float8_e4m3fn

    codes, scales = blockwise.torch_blockwise_scale_act_quant_lhs(x)
    assert unlike("torchao_fp8", bits(codes), scales.numpy(), own, "1x128") == (0, 0)
    codes, scales = blockwise.torch_blockwise_scale_weight_quant(x)
    assert unlike("torchao_fp8", bits(codes), scales.numpy(), own, "128x128") == (0, 0)

    amax = x.abs().amax(dim=1, keepdim=True)
    factor = utils.amax_to_scale(amax, e4m3)
    codes = utils.to_fp8_saturated(x.to(torch.float32) * factor, e4m3)
    assert unlike("torchao_fp8", bits(codes), (1 / factor).numpy(), own, "row") == (0, 0)

    size = (1, x.shape[1])
    scales = primitives._choose_scale_float8(x, size, e4m3)
    codes = primitives._quantize_affine_float8(x, scales, e4m3)
    profile = "torchao_row" if source == "float32" else "torchao_row_bf16"
    assert unlike(profile, bits(codes), scales.float().numpy(), own) == (0, 0)


@needs("torch", "compressed_tensors")
def test_compressed_tensors():
    """FPL-001: a scale for each row."""
    torch = imported("torch")
    quantization = imported("compressed_tensors.quantization")
    forward = imported("compressed_tensors.quantization.lifecycle.forward")
    x = adversarial()
    tensor = torch.from_numpy(x)
    args = quantization.QuantizationArgs(
        num_bits=8, type="float", symmetric=True, strategy="token", dynamic=True
    )
    ends = tensor.amin(-1, keepdim=True), tensor.amax(-1, keepdim=True)
    scales, zeros = quantization.utils.calculate_qparams(*ends, args)
    codes = forward.quantize(tensor, scales, zeros, args, dtype=torch.float8_e4m3fn)
    assert unlike("compressed_tensors_fp8", bits(codes), scales.numpy(), x) == (0, 0)


def bits(codes):
    return codes.view(imported("torch").uint8).numpy()


def test_mxfp8_in_tiles_of_32x32_is_the_same_of_the_transpose():
    """FPL-001, FPL-002: codes and scales, which are rounded up from the amax by hand."""
    x = adversarial(96, 160)
    found, turned = (mor_ref.quantize(y, "te_mxfp8:32x32") for y in (x, x.T))
    assert np.array_equal(found.codes, turned.codes.T)
    assert np.array_equal(found.scales["s"], turned.scales["s"].T)
    own = fp8_formulas(FP8_PROFILES["te_mxfp8"], (32, 32))
    assert [*quantize(x.ravel().tolist(), x.shape, own).codes] == found.codes.ravel().tolist()
    amaxes = np.abs(x).reshape(5, 32, 3, 32).max(axis=(1, 3)) * F(1 / 448)
    up = mor_ref.encode(amaxes, "e8m0", rounding="rtp")
    assert np.array_equal(found.scales["s"], up)
