"""The way back alone: from codes and scales to float32."""

import functools

import mor_ref
from benchmarks import block_decoders as peers
from benchmarks import inputs
from benchmarks.peers import with_one_nan
from benchmarks.rows import OURS, Contender, Difference, Row

USUAL, FEW = 22, 14
NO_MINUS_ZERO = Difference("decodes -0 as +0", 150_000, 130_000)
IN_BF16 = Difference("returns bfloat16", 4_000_000, 3_800_000)


def ours(quantize):
    """Return our contender, on the result of `quantize`."""

    def prepare(found):
        return lambda: found.dequantize(threads=1)

    return Contender(prepare, lambda y: with_one_nan(y.reshape(-1)), given=quantize)


def of_nvfp4():
    """Yield each profile next to the library of its name, and te next to eager torch."""
    everyone = {
        "te": ("eager torch", peers.eager_nvfp4, "torch", None),
        "torchao": ("torchao", peers.torchao_nvfp4, "torchao", None),
        "modelopt": ("Model Optimizer", peers.modelopt_nvfp4, "modelopt", NO_MINUS_ZERO),
        "compressed_tensors": (
            "compressed-tensors",
            peers.compressed_tensors_nvfp4,
            "compressed_tensors",
            IN_BF16,
        ),
    }
    for profile, (name, prepare, needs, differs) in everyone.items():
        quantize = functools.partial(mor_ref.quantize_nvfp4, profile=profile, threads=1)
        contenders = {
            OURS: ours(quantize),
            name: peers.decoding(quantize, prepare, needs, differs),
        }
        yield Row(
            f"dequantize NVFP4, {profile}", inputs.normal(USUAL), contenders, compared="numbers"
        )


def of_mx():
    """Yield rows of formats with scales of blocks of 32."""
    for fmt in ("e4m3", "e5m2", "e2m1"):
        quantize = functools.partial(mor_ref.quantize_mx, fmt=fmt, threads=1)
        contenders = {
            OURS: ours(quantize),
            "torchao": peers.decoding(quantize, peers.torchao_mx, "torchao"),
        }
        if fmt != "e2m1":  # which torch cannot cast
            contenders["eager torch"] = peers.decoding(quantize, peers.eager_mx, "torch")
        if fmt == "e4m3":
            contenders["Model Optimizer"] = peers.decoding(quantize, peers.modelopt_mx, "modelopt")
        yield Row(f"dequantize MX {fmt}", inputs.normal(USUAL), contenders, compared="numbers")
    quantize = functools.partial(mor_ref.quantize_mx, fmt="e4m3", threads=1)
    few = {OURS: ours(quantize), "gfloat": peers.decoding(quantize, peers.gfloat_mx, "gfloat")}
    yield Row("dequantize MX e4m3, few", inputs.normal(FEW), few, compared="numbers")


ROWS = [*of_nvfp4(), *of_mx()]
