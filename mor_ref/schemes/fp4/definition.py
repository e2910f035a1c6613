"""FP4 of libraries: profiles, each a block format of a library's quantizer and its source."""

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mor_ref.argument_checks import known_name
from mor_ref.definitions.block_formats import BlockFormat, BlockScale
from mor_ref.definitions.block_formulas import nvfp4_formulas
from mor_ref.definitions.blocks import Cut
from mor_ref.definitions.catalogue import NAMES_OF_REPRESENTATIONS, Catalogue
from mor_ref.definitions.nvfp4 import PROFILES, ROW_TILE
from mor_ref.definitions.table_format import TableFormat


class FastFormulas(NamedTuple):
    """The number of s, and the encode, with the function of reciprocals in place of `{0}`."""

    number: str
    encode: str | None = None


@dataclass(frozen=True)
class Fp4Profile:
    """How a library quantizes to FP4 (FPF-001).

    `block_format` has the usual tile. `source` says where its formulas are from, and `also` has
    other names of them. `fast` has the formulas of a kernel with fast math.
    """

    name: str
    block_format: BlockFormat
    source: str
    also: tuple[str, ...] = ()
    fast: FastFormulas | None = None

    @property
    def tile(self) -> Cut:
        """The usual tile."""
        return self.block_format.block


@functools.lru_cache
def fp4_formulas(profile: Fp4Profile, tile: Cut) -> BlockFormat:
    """Return a profile with tiles as a block format (FPF-002)."""
    *above, last = profile.block_format.scales
    return replace(profile.block_format, scales=(*above, replace(last, over=tile)))


def fast_formulas(own: BlockFormat, fast: FastFormulas, reciprocal: str) -> BlockFormat:
    """Return the block format of a profile with fast math and its function of reciprocals."""
    *above, last = own.scales
    return replace(
        own,
        name=f"{own.name}_{reciprocal}",
        scales=(*above, replace(last, number=fast.number.format(reciprocal))),
        encode=fast.encode.format(reciprocal) if fast.encode else own.encode,
    )


# ---------------------------------------------------------------------- rows

_FBGEMM = "FBGEMM 71d6f8b (1.8.0rc0), fbgemm_gpu/triton/quantize.py: _kernel_quantize_mx4"
_AITER = "aiter e404860, csrc/include/mx_quant_utils.h"
_DEEPGEMM = "DeepGEMM 54e2261, deep_gemm/utils/math.py: per_token_cast_to_fp4"
_FLASHINFER = "FlashInfer fb28d72 (0.6.18 in development), quantization_utils.cuh"
_TRITON = "triton_kernels, numerics_details/mxfp_details/_downcast_to_mxfp.py"
_TE = "Transformer Engine d0067d0 (2.20 in development), common/cast/nvfp4"
_LLAMA = "llama.cpp, ggml-quants.c"
_DIVIDED_UP = "1 / s if s > 2**-127 else 0"  # a scale of code 0 makes codes 0
_NO_NEGATIVE_ZERO: dict[str, Any] = {"rounding": "rnz", "has_negative_zero": False}
# Ties go toward zero, and zeros of both signs to -0: a limit below 0 is the number below its tie.
_MODELOPT_TABLE = TableFormat(
    "e2m1_modelopt",
    (0.0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6),
    (
        *(-tie - 2.0 ** (math.frexp(tie)[1] - 24) for tie in (5, 3.5, 2.5, 1.75, 1.25, 0.75, 0.25)),
        *(0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5),
    ),
)


def _of_scale(
    name: str,
    scale: BlockScale,
    source: str,
    also: tuple[str, ...] = (),
    *,
    element: str | TableFormat = "e2m1",
    decode: str = "s",
    fast: FastFormulas | None = None,
    **fields: Any,
) -> Fp4Profile:
    """Return a profile with one scale."""
    block_format = BlockFormat(f"fp4_{name}", element, (scale,), decode=decode, **fields)
    return Fp4Profile(name, block_format, source, also, fast)


def _mx(name: str, number: str, *source: Any, **fields: Any) -> Fp4Profile:
    """Return a profile with powers of two for 32 numbers of a row."""
    return _of_scale(name, BlockScale("s", (1, 32), number, "e8m0", "rtp"), *source, **fields)


def _mx_of_libraries() -> Iterator[Fp4Profile]:
    """Yield MXFP4 that is not that of a rule of MX: of other ties, zeros, small or special amaxes.

    Numbers are divided by s without an encode.
    """
    for mode, turn in (
        ("ceil", "1 + 2**-23"),
        ("even", "1.75 + 2**-23"),
        ("floor", "2"),
        ("nearest", "1.4142136573791504"),
    ):
        yield _mx(
            f"fbgemm_mx4_{mode}", f"min(pow2(amax, {turn}) / 4, 2**125)",
            f"{_FBGEMM}, with RoundingMode.{mode}", ("fbgemm_mx4",) if mode == "ceil" else (),
            rounding="rna",
        )  # fmt: skip
    up = "(max({0}, 2**-126) if {0} else 0) + 0 * amax"
    yield _mx(
        "aiter_mxfp4", up.format("amax * (1 / 6)"), f"{_AITER}: RoundUp", ("aiter_mxfp4_up",),
        encode=_DIVIDED_UP,
    )  # fmt: skip
    yield _mx("aiter_mxfp4_even", "pow2(amax, 1.75) / 4", f"{_AITER}: Even", encode="1 / s")
    yield _mx(
        "aiter_mxfp4_down", "pow2(amax, 2) / 4 + 0 * amax", f"{_AITER}: RoundDown", encode="1 / s"
    )
    yield _mx(
        "quark_mxfp4", "pow2(amax, 1.75) / 4",
        "Quark 1d27b55, quark/torch/kernel/mx/triton.py: EVEN", ("amd_quark_mxfp4",),
        encode="1 / s", rounding="rna",
    )  # fmt: skip
    yield _mx(
        "triton_kernels_mxfp4", up.format("amax / 6"),
        f"{_TRITON}, after Triton d1c192b: ROUND_UP", ("triton_mxfp4",),
        encode=_DIVIDED_UP,
    )  # fmt: skip
    yield _mx(
        "triton_kernels_mxfp4_away", up.format("amax / 6"),
        f"{_TRITON}, up to Triton d1c192b: ROUND_UP", ("triton_mxfp4_old",),
        encode=_DIVIDED_UP, rounding="rna",
    )  # fmt: skip
    yield _mx(
        "triton_kernels_mxfp4_down", "pow2(amax / 6, 2) + 0 * amax",
        f"{_TRITON}, up to Triton d1c192b: ROUND_DOWN",
        encode=_DIVIDED_UP, rounding="rna",
    )  # fmt: skip
    yield _mx(
        "flashinfer_mxfp4", "amax * (1 / 6)", f"{_FLASHINFER}: cvt_warp_fp16_to_fp4, with UE8M0",
        ("trtllm_mxfp4",), encode=_DIVIDED_UP, fast=FastFormulas("amax * {0}(6)"),
    )  # fmt: skip
    yield _mx(
        "deepseek_v4_fp4",
        "max(amax, 6 * 2**-126) * (1 / 6)",
        "DeepSeek-V4 inference/kernel.py: fp4_quant_kernel",
        ("deepseek_fp4", "fp4_act_quant"),
    )
    yield _mx(
        "modelopt_mxfp4", "amax / 6",
        "Model Optimizer 0.47.0, torch/quantization/qtensor/mxfp4_tensor.py: MXFP4QTensor",
        ("mxfp4qtensor",), element=_MODELOPT_TABLE,
    )  # fmt: skip
    yield _mx(
        "llama_cpp_mxfp4", "pow2(amax, 2) / 4",
        f"{_LLAMA}: quantize_row_mxfp4_ref; gguf 0.19.0, gguf/quants.py: MXFP4",
        ("gguf_mxfp4", "ggml_mxfp4"), **_NO_NEGATIVE_ZERO,
    )  # fmt: skip


def _deepgemm() -> Iterator[Fp4Profile]:
    """Yield the FP4 of DeepGEMM, with a scale for 128 numbers unless others are asked for."""
    number = "max(amax, 1e-4) / 6"
    yield _of_scale(
        "deepgemm_fp4", BlockScale("s", (1, 128), number), _DEEPGEMM,
        ("deepgemm_per_token_fp4",), encode="1 / s", counted="all", **_NO_NEGATIVE_ZERO,
    )  # fmt: skip
    bounded = f"{number} if amax < 2**128 else 2**127"
    yield _of_scale(
        "deepgemm_fp4_ue8m0", BlockScale("s", (1, 128), bounded, "e8m0", "rtp"),
        f"{_DEEPGEMM} with use_ue8m0", encode="1 / s", counted="all", **_NO_NEGATIVE_ZERO,
    )  # fmt: skip


def _nvfp4(
    name: str,
    of: str,
    source: str,
    also: tuple[str, ...],
    fast: FastFormulas | None = None,
    **fields: Any,
) -> Fp4Profile:
    """Return a profile that differs from one of NVFP4."""
    own = nvfp4_formulas(PROFILES[of], ROW_TILE)
    return Fp4Profile(name, replace(own, name=f"fp4_{name}", **fields), source, also, fast)


def _nvfp4_of_libraries() -> Iterator[Fp4Profile]:
    """Yield NVFP4 that is none of the profiles of its chapter."""
    yield _nvfp4(
        "te_fast_math", "te", f"{_TE}/core_nvfp4.cuh with NVTE_USE_FAST_MATH",
        ("nvte_fast_math", "te_nvfp4_fast_math"),
        encode="bf16(min(S / s, 3.3895313892515355e38))",
    )  # fmt: skip
    for measure, error in (("mae", "abs(v * s - x * S)"), ("mse", "square(v * s - x * S)")):
        yield _nvfp4(
            f"te_4over6_{measure}_fast", f"te_4over6_{measure}",
            f"{_TE}/quantize_4over6_nvfp4.cuh with NVTE_NVFP4_4OVER6_ERR_USE_FAST_MATH",
            (f"te_4over6_{measure}_err_fast_math",), error=error,
        )  # fmt: skip
    te = nvfp4_formulas(PROFILES["te"], ROW_TILE)
    by_quotient = te.scales[0], replace(te.scales[1], number="S * (amax * (1 / 6))")
    reciprocal, number = "1 / (s * (1 / S))", "S * (amax * {0}(6))"
    yield _nvfp4(
        "flashinfer_nvfp4", "te", f"{_FLASHINFER}: cvt_warp_fp16_to_fp4, with fast math",
        ("flashinfer", "trtllm_nvfp4"), FastFormulas(number, "{0}(s * {0}(S)) if amax_s else 0"),
        scales=by_quotient, encode=f"{reciprocal} if amax_s else 0",
    )  # fmt: skip
    yield _nvfp4(
        "vllm_nvfp4", "te",
        "vLLM 0.33.0, csrc/quantization/fp4/nvfp4_utils.cuh: cvt_warp_fp16_to_fp4",
        ("vllm_fp4", "scaled_fp4_quant"), FastFormulas(number, "{0}(s * {0}(S)) if s else 0"),
        scales=by_quotient, encode=f"{reciprocal} if s else 0",
    )  # fmt: skip
    t = "amax / 6"
    small = f"min(max({t}, 2**-10) if {t} > 2**-10 - 2**-33 else {t}, 7 * 2**-9)"
    number = f"({small} if {t} < 2**-6 else {t}) if {t} < 248 else 448"
    yield _of_scale(
        "llama_cpp_nvfp4", BlockScale("s", ROW_TILE, number, "e4m3", "rna"),
        f"{_LLAMA}: quantize_row_nvfp4_ref; ggml-impl.h: ggml_fp32_to_ue4m3",
        ("gguf_nvfp4", "ggml_nvfp4"), decode="s or MAX", **_NO_NEGATIVE_ZERO,
    )  # fmt: skip


FP4_PROFILES: Catalogue[Fp4Profile] = Catalogue(
    "FP4 profile",
    Fp4Profile,
    (*_mx_of_libraries(), *_deepgemm(), *_nvfp4_of_libraries()),
    namespace=NAMES_OF_REPRESENTATIONS,
)


def fp4_profile(name: str) -> Fp4Profile:
    """Return the profile of that name.

    >>> fp4_profile("deepgemm_fp4").block_format.rounding
    'rnz'
    """
    return FP4_PROFILES[known_name("profile", name, FP4_PROFILES)]
