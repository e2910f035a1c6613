"""FP8 of libraries: profiles, each with the formulas of a library's quantizer and their source."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from mor_ref.argument_checks import known_name
from mor_ref.definitions.block_formats import BlockFormat, BlockScale, Counted
from mor_ref.definitions.blocks import Cut, in_parameters
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue

ROW_OF_128: Cut = (1, 128)
_ROW_OF_32: Cut = (1, 32)
_ROUNDINGS: Mapping[str, Literal["rne", "rtp"]] = {"f32": "rne", "e8m0": "rtp"}


@dataclass(frozen=True)
class Fp8Profile:
    """How a library quantizes to FP8 (FPL-001).

    `number`, `encode` and the other fields are those of a block format with one scale s, which is
    the factor of the way back. `tile` is the usual one. `source` says where the formulas are from.
    `also` has other names of the same formulas. What zeros, NaN and infinities become follows from
    the formulas and from `counted` (FPL-003).
    """

    name: str
    number: str
    _: KW_ONLY
    source: str
    encode: str | None = None  # numbers are divided by s without it
    tile: Cut = ROW_OF_128
    element: str = "e4m3"
    stored: Literal["f32", "e8m0"] = "f32"
    counted: Counted = "not nan"
    drops_sign_of_zero: bool = False
    also: tuple[str, ...] = ()


@functools.lru_cache
def fp8_formulas(profile: Fp8Profile, tile: Cut) -> BlockFormat:
    """Return a profile with tiles as a block format."""
    return BlockFormat(
        f"fp8_{profile.name}",
        profile.element,
        (BlockScale("s", tile, profile.number, profile.stored, _ROUNDINGS[profile.stored]),),
        decode="s",
        encode=profile.encode,
        counted=profile.counted,
        drops_sign_of_zero=profile.drops_sign_of_zero,
    )


def fp8_parameters(profile: Fp8Profile, tile: Cut) -> dict[str, Any]:
    """Return the parameters of the operation `fp8`, without the source."""
    formats = {"format": profile.element, "scale_format": profile.stored}
    return {"profile": profile.name, **formats, "block": in_parameters(tile)}


# ---------------------------------------------------------------------- rows

_DEEPGEMM = "DeepGEMM 54e2261, deep_gemm/utils/math.py"
_DEEPSEEK = "DeepSeek-V3 inference/kernel.py"
_VLLM = "vLLM 0.33.0"
_VLLM_TRITON = "vllm/model_executor/layers/quantization/utils/fp8_utils.py"
_VLLM_NATIVE = "vllm/model_executor/layers/quantization/input_quant_fp8.py"
_VLLM_CUDA = "csrc/quantization/w8a8/fp8/per_token_group_quant.cu"
_SGLANG = "SGLang 0.5.23"
_TORCHAO = "torchao 0.18.0"
_AITER = "aiter e404860"
_TE = "Transformer Engine d0067d0 (2.20 in development)"
_FBGEMM = "FBGEMM 71d6f8b (1.8.0rc0)"
_FLASHINFER = "FlashInfer fb28d72 (0.6.18 in development)"


def _factor_first(name: str, factor: str, **others: Any) -> Fp8Profile:
    """Return a profile whose scale is the reciprocal of the factor of numbers."""
    encode = factor.replace("amax", "amax_s")
    return Fp8Profile(name, f"1 / ({factor})", encode=encode, **others)


def _te(largest: float, of_source: str = "") -> str:
    """The factor of Transformer Engine, bounded by FLT_MAX or the largest number of a source."""
    ratio = f"{largest} / amax"
    finite = (
        f"({ratio} if {ratio} < 2**128 else {of_source})" if of_source else f"min({ratio}, MAX)"
    )
    return f"({finite} if amax < 2**128 else 1) if amax else 1"


def _quotients() -> Iterator[Fp8Profile]:
    """Yield those whose scale is amax / Q."""
    floor, low, least = "max(amax, 1e-4)", "max(amax, 1e-10)", "1 / 229376"
    yield Fp8Profile(
        "deepgemm", f"{floor} / 448", encode="1 / s", counted="all",
        source=f"{_DEEPGEMM}: per_token_cast_to_fp8, per_block_cast_to_fp8",
        also=("deepgemm_per_token", "deepgemm_per_block", "deepgemm_per_channel"),
    )  # fmt: skip
    yield Fp8Profile(
        "deepseek_v3", "amax / 448",
        source=f"{_DEEPSEEK} 4c2fdb8 (December 2024): act_quant_kernel",
    )  # fmt: skip
    yield Fp8Profile(
        "deepseek_v3_1", f"{floor} / 448",
        source=f"{_DEEPSEEK} 9b4e978 (since August 2025): act_quant_kernel",
        also=("deepseek", "deepseek_act_quant", "act_quant"),
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_cuda", f"{low} / 448", encode="1 / s",
        source=f"{_VLLM}, {_VLLM_CUDA}: ComputeGroupScale, QuantizeGroup; {_SGLANG}, "
        "kernels/ops/quantization/fp8_kernel.py: _per_token_group_quant_8bit",
        also=("vllm_group", "sglang_triton_row", "per_token_group_quant_fp8"),
    )  # fmt: skip
    yield Fp8Profile(
        "lightllm", f"{low} / 448",
        source="LightLLM fc72ffa, common/quantization/triton_quant/fp8/fp8act_quant_kernel.py; "
        f"{_SGLANG}, _per_token_group_quant_8bit_colmajor; vLLM 0f5257e, {_VLLM_CUDA}",
        also=("sglang_triton", "sglang_triton_col", "vllm_cuda_div"),
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_token", f"max(amax / 448, {least})", tile="row",
        source=f"{_VLLM}, csrc/quantization/w8a8/fp8/common.cu: "
        f"dynamic_per_token_scaled_fp8_quant_kernel_strided; {_FBGEMM}, "
        "experimental/gen_ai/src/quantize/quantize.cu: fused_quantize_rowwise",
        also=("vllm_dynamic_per_token", "fbgemm_row", "fbgemm", "scaled_fp8_quant"),
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_native", f"max(amax / 448, {least})", encode="1 / s", counted="all", tile="row",
        source=f"{_VLLM}, {_VLLM_NATIVE}: forward_native",
        also=("quantfp8", "vllm_quantfp8"),
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_native_group", f"max(amax / 448, {least})", counted="all",
        source=f"{_VLLM}, {_VLLM_NATIVE}: _quantize_group_native",
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_tensor", "amax / 448", encode="1 / s", tile="tensor",
        source=f"{_VLLM}, csrc/quantization/w8a8/fp8/common.cu: "
        f"scaled_fp8_quant_kernel_strided_dynamic; {_SGLANG}, "
        f"kernels/jit/csrc/gemm/per_tensor_quant_fp8.cuh; {_AITER}, "
        "aiter/ops/triton/_triton_kernels/quant/quant.py",
        also=("sglang_tensor", "aiter_triton", "sgl_per_tensor_quant_fp8"),
    )  # fmt: skip
    yield Fp8Profile(
        "sglang_token", "amax / 448", encode="1 / s if s else 0", tile="row",
        source=f"{_SGLANG}, kernels/jit/csrc/gemm/per_token_quant_fp8.cuh",
        also=("sgl_per_token_quant_fp8",),
    )  # fmt: skip
    yield Fp8Profile(
        "unsloth", "amax / 448 or 1",
        source="Unsloth 015bdef (0.1.801), unsloth/kernels/fp8.py: act_quant_kernel",
        also=("unsloth_act_quant",),
    )  # fmt: skip
    yield Fp8Profile(
        "aiter_torch", "amax / 448 or 1", counted="all", tile="row",
        source=f"{_AITER}, aiter/ops/quant.py: pertoken_quant", also=("aiter_pertoken_quant",),
    )  # fmt: skip
    yield Fp8Profile(
        "torchao_row", "amax / 448", counted="all", tile="row",
        source=f"{_TORCHAO}, quantization/quant_primitives.py: _choose_scale_float8, "
        "_quantize_affine_float8, of float32",
        also=("torchao_inference", "torchao_per_row", "torchao_per_tensor"),
    )  # fmt: skip
    yield Fp8Profile(
        "torchao_row_bf16", "bf16(amax / 448) if amax < 2**128 else amax / 448", counted="all",
        tile="row", source=f"{_TORCHAO}, as torchao_row, of bfloat16: the quotient is bfloat16",
    )  # fmt: skip
    yield Fp8Profile(
        "compressed_tensors_fp8", "amax / 448 or 2**-23", counted="all", drops_sign_of_zero=True,
        tile="row", source="compressed-tensors 0.20.0, quantization/utils/helpers.py: "
        "calculate_qparams; lifecycle/forward_helpers.py, of float32",
        also=("llmcompressor_fp8",),
    )  # fmt: skip
    yield Fp8Profile(
        "flashinfer_moe", "max(amax / 448, 1e-12)", counted="all",
        source=f"{_FLASHINFER}, fused_moe/prepare.py: _deepseek_fp8_quantize_activations",
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_fnuz", f"{low} / 224", element="e4m3fnuz", encode="1 / s",
        source=f"{_VLLM}, as vllm_cuda, with the bound 224 of ROCm", also=("sglang_fnuz",),
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_token_fnuz", "max(amax / 224, 1 / 114688)", element="e4m3fnuz", tile="row",
        source=f"{_VLLM}, as vllm_token, with the bound 224 of ROCm",
    )  # fmt: skip
    yield Fp8Profile(
        "fbgemm_row_fnuz", "max(amax / 240, 1 / 122880)", element="e4m3fnuz", tile="row",
        source=f"{_FBGEMM}, as vllm_token, with the bound 240 of ROCm",
    )  # fmt: skip
    yield Fp8Profile(
        "fbgemm_row_e5m2", "max(amax / 57344, 1 / 29360128)", element="e5m2", tile="row",
        source=f"{_FBGEMM}, as vllm_token, in e5m2",
    )  # fmt: skip


def _products() -> Iterator[Fp8Profile]:
    """Yield those whose scale is amax times 1 / Q."""
    low = "max(amax, 1e-10)"
    yield Fp8Profile(
        "sgl_kernel", f"{low} * (1 / 448)", encode="448 / max(amax_s, 1e-10)",
        source=f"{_SGLANG}, kernels/jit/csrc/gemm/per_token_group_quant_8bit_v2.cuh: "
        "calculate_fp8_scales; sgl-kernel/csrc/gemm/per_token_group_quant_8bit.cu",
        also=("sglang", "sgl_per_token_group_quant_fp8", "sgl_per_token_group_quant_8bit"),
    )  # fmt: skip
    yield Fp8Profile(
        "deepseek_v3_2", "max(amax, 1e-4) * (1 / 448)",
        source=f"{_SGLANG}, kernels/ops/quantization/act_quant_tilelang.py, a copy of DeepSeek's",
        also=("deepseek_v4", "deepseek_tilelang"),
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_triton", f"{low} * (1 / 448)",
        source=f"{_VLLM}, {_VLLM_TRITON}: _per_token_group_quant_fp8", also=("vllm",),
    )  # fmt: skip
    yield Fp8Profile(
        "aiter_group", f"{low} * (1 / 448)", encode="1 / s",
        source=f"{_AITER}, csrc/kernels/quant_kernels.cu: dynamic_per_group_scaled_quant_kernel",
        also=("aiter", "aiter_per_group_128"),
    )  # fmt: skip
    yield Fp8Profile(
        "aiter_token", "amax * (1 / 448)", encode="1 / s", tile="row",
        source=f"{_AITER}, csrc/kernels/quant_kernels.cu: data_to_per_row_scale, scaled_quant_impl",
        also=("aiter_per_token",),
    )  # fmt: skip
    yield Fp8Profile(
        "aiter_group_fnuz", f"{low} * (1 / 240)", element="e4m3fnuz", encode="1 / s",
        source=f"{_AITER}, as aiter_group, with the largest number of e4m3fnuz",
    )  # fmt: skip


def _powers_of_two() -> Iterator[Fp8Profile]:
    """Yield those whose scale is rounded up to a power of two before there are codes."""
    yield Fp8Profile(
        "deepgemm_ue8m0", "max(amax, 1e-4) / 448 if amax < 2**128 else 2**127", encode="1 / s",
        stored="e8m0", counted="all", source=f"{_DEEPGEMM}: ceil_to_ue8m0",
        also=("deepgemm_packed",),
    )  # fmt: skip
    yield Fp8Profile(
        "deepseek_ue8m0", "max(amax, 1e-4) / 448", stored="e8m0",
        source=f"{_DEEPSEEK} 9b4e978: act_quant_kernel with scale_fmt ue8m0",
        also=("deepseek_v3_1_ue8m0", "deepseek_v3_2_ue8m0", "deepseek_v4_ue8m0"),
    )  # fmt: skip
    yield Fp8Profile(
        "sgl_kernel_ue8m0", "max(amax, 1e-10) * (1 / 448)", encode="1 / s", stored="e8m0",
        source=f"{_SGLANG}, per_token_group_quant_8bit_v2.cuh; {_AITER}, "
        f"csrc/include/mx_quant_utils.h; {_VLLM}, {_VLLM_TRITON}: use_ue8m0",
        also=("sglang_ue8m0", "aiter_group_ue8m0", "vllm_triton_ue8m0", "sglang_triton_ue8m0"),
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_ue8m0", "max(max(amax, 1e-10) / 448, 1e-10)", encode="1 / s", stored="e8m0",
        source=f"{_VLLM}, {_VLLM_CUDA}: per_token_group_quant_8bit_packed_register_kernel",
        also=("vllm_deepgemm_packed", "vllm_packed"),
    )  # fmt: skip
    yield Fp8Profile(
        "vllm_native_ue8m0", "max(amax / 448, 1 / 229376)", stored="e8m0", counted="all",
        source=f"{_VLLM}, {_VLLM_NATIVE}: _quantize_group_native with use_ue8m0",
    )  # fmt: skip


def _mx() -> Iterator[Fp8Profile]:
    """Yield MXFP8 that is not that of a rule of MX: in other blocks, or of other specials.

    Quotients below the normal numbers have the code 1, and a scale of code 0 makes codes 0.
    """
    lost = "1 / s if s > 2**-127 else 0"
    yield Fp8Profile(
        "te_mxfp8", "amax * (1 / 448)", encode="1 / s", stored="e8m0", tile=_ROW_OF_32,
        source=f"{_TE}, common/cast/mxfp8/quantize_mxfp8.cuh: also with 2D scaling, in 32x32",
        also=("te_mxfp8_2d", "te_nv", "mxfp8blockscaling"),
    )  # fmt: skip
    yield Fp8Profile(
        "flashinfer_mxfp8", "amax * (1 / 448)", encode=lost, stored="e8m0", tile=_ROW_OF_32,
        source=f"{_FLASHINFER}, quantization_utils.cuh: cvt_warp_fp16_to_mxfp8",
        also=("trtllm_mxfp8",),
    )  # fmt: skip
    yield Fp8Profile(
        "triton_kernels_mxfp8", "(max(amax / 448, 2**-126) if amax / 448 else 0) + 0 * amax",
        encode=lost, stored="e8m0", tile=_ROW_OF_32,
        source="triton_kernels 1.0.0.post20260510, numerics_details/_downcast_to_mxfp.py: ROUND_UP",
        also=("triton_mxfp8", "downcast_to_mxfp"),
    )  # fmt: skip
    yield Fp8Profile(
        "aiter_mxfp8",
        "(max(amax * (1 / 448), 2**-126) if amax * (1 / 448) else 0) + 0 * amax",
        encode=lost, stored="e8m0", tile=_ROW_OF_32,
        source=f"{_AITER}, csrc/include/mx_quant_utils.h: RoundUp", also=("aiter_mxfp8_hip",),
    )  # fmt: skip
    yield Fp8Profile(
        "aiter_mxfp8_triton", "pow2(amax, 1.75) / 256", encode="1 / s", stored="e8m0",
        tile=_ROW_OF_32, source=f"{_AITER}, aiter/ops/triton/_triton_kernels/quant/quant.py: "
        "_mxfp8_quant_op, with the threshold of e2m1",
        also=("aiter_mxfp8_quant",),
    )  # fmt: skip


def _reciprocals() -> Iterator[Fp8Profile]:
    """Yield those whose factor is Q / amax, and whose scale is the reciprocal of it."""
    floor = "max(amax, 1e-12)"
    yield _factor_first(
        "torchao_fp8", f"448 / {floor}", counted="all", tile="tensor",
        source=f"{_TORCHAO}, float8/float8_utils.py: amax_to_scale, to_fp8_saturated; "
        "prototype/blockwise_fp8_training/kernels.py: torch_blockwise_scale_act_quant_lhs",
        also=("torchao_float8", "torchao_float8_training"),
    )  # fmt: skip
    yield _factor_first(
        "torchao_block", f"448 / {floor}",
        source=f"{_TORCHAO}, prototype/blockwise_fp8_training/kernels.py: triton_fp8_blockwise_*; "
        f"{_FBGEMM}, experimental/gemm/triton_gemm/fp8_gemm.py: _kernel_quantize_fp8_row, _block",
        also=("torchao_act_lhs", "torchao_act_rhs", "torchao_weight_rhs", "fbgemm_triton"),
    )  # fmt: skip
    yield _factor_first(
        "fbgemm_cpu", f"(1 / {floor}) * 448", counted="all", tile="row",
        source=f"{_FBGEMM}, experimental/gemm/triton_gemm/fp8_gemm.py on a CPU, where torch makes "
        f"a product with the reciprocal of 448 / tensor; {_VLLM}, {_VLLM_TRITON}, and {_SGLANG}: "
        "input_to_float8, of float32",
        also=("input_to_float8", "fbgemm_torch"),
    )  # fmt: skip
    yield _factor_first(
        "torchao_pow2", f"pow2(448 / {floor}, 2)", counted="all", tile="row",
        source=f"{_TORCHAO}, float8/float8_utils.py: _round_scale_down_to_power_of_2",
        also=("torchao_rowwise_pow2",),
    )  # fmt: skip
    yield _factor_first(
        "torchao_fp8_e5m2", f"57344 / {floor}", element="e5m2", counted="all", tile="tensor",
        source=f"{_TORCHAO}, as torchao_fp8, of gradients",
    )  # fmt: skip
    yield _factor_first(
        "torchao_fp8_fnuz", f"240 / {floor}", element="e4m3fnuz", counted="all", tile="tensor",
        source=f"{_TORCHAO}, as torchao_fp8, on ROCm",
    )  # fmt: skip
    yield _factor_first(
        "te_block_f32", _te(448),
        source=f"{_TE}, common/recipe/recipe_common.cuh: compute_scale_from_amax, of float32; "
        "common/transpose/quantize_transpose_vector_blockwise.cu",
        also=("te_f32_scales", "te_current_f32"),
    )  # fmt: skip
    yield _factor_first(
        "te_block_bf16", _te(448, "3.3895313892515355e38"),
        source=f"{_TE}, as te_block_f32, of bfloat16 in blocks",
    )  # fmt: skip
    yield _factor_first(
        "te_block", f"pow2({_te(448)}, 2)",
        source=f"{_TE}, as te_block_f32, with powers of two, as Float8BlockScaling has them",
        also=("te_block_pow2", "float8blockscaling", "te_current_pow2"),
    )  # fmt: skip
    yield _factor_first(
        "te_block_f16", f"pow2({_te(448, '65504')}, 2)",
        source=f"{_TE}, as te_block, of float16",
    )  # fmt: skip
    yield _factor_first(
        "te_current", _te(448), tile="tensor",
        source=f"{_TE}, common/recipe/current_scaling.cu", also=("float8currentscaling",),
    )  # fmt: skip
    yield _factor_first(
        "te_current_e5m2", _te(57344), element="e5m2", tile="tensor",
        source=f"{_TE}, as te_current, of gradients",
    )  # fmt: skip
    yield _factor_first(
        "trtllm", "448 / amax if amax else 1",
        source=f"{_FLASHINFER}, csrc/nv_internal/tensorrt_llm/kernels/cutlass_kernels/"
        "fp8_blockscale_gemm/fp8_blockscale_gemm_kernel.cuh: scale_1x128_kernel",
        also=("trtllm_1x128", "trtllm_128x128", "flashinfer_blockscale"),
    )  # fmt: skip
    yield Fp8Profile(
        "trtllm_token", "max(max(amax, 1e-6) / 448, 1 / 229376)", tile="row",
        encode="min(448 / max(amax_s, 1e-6), 229376)",
        source=f"{_FLASHINFER}, csrc/nv_internal/tensorrt_llm/kernels/quantization.cuh: "
        "perTokenQuantization, of float32",
    )  # fmt: skip


FP8_PROFILES: Catalogue[Fp8Profile] = Catalogue(
    "FP8 profile",
    Fp8Profile,
    (*_quotients(), *_products(), *_powers_of_two(), *_mx(), *_reciprocals()),
    namespace=NAMES_OF_REPRESENTATIONS,
)


def fp8_profile(name: str) -> Fp8Profile:
    """Return the profile of that name.

    >>> fp8_profile("deepgemm").number, fp8_profile("deepgemm").encode
    ('max(amax, 1e-4) / 448', '1 / s')
    """
    return FP8_PROFILES[known_name("profile", name, FP8_PROFILES)]
