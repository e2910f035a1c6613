"""The dot products of MMA-Sim 2.1.1 for the profiles that it has, on codes."""

import importlib
import re
import sys
from functools import cache
from subprocess import CalledProcessError
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.definitions.dot import DotProfile
from mor_ref.definitions.format import Format

_NVIDIA = re.compile(
    "(?P<arch>volta|turing|ampere|ada|hopper|blackwell|rtx_blackwell)_"
    "(?P<kind>fp16|bf16|tf32|fp8|mxfp8|mxfp4|nvfp4)(?P<start>_from_f16)?(?P<result>_f16)?"
    "(?:_k(?P<k>[0-9]+))?"
)
_LONGEST = {
    "volta": {"fp16": 4},
    "turing": {"fp16": 8},
    "ampere": {"fp16": 16, "bf16": 16, "tf32": 8},
    "ada": {"fp16": 16, "bf16": 16, "tf32": 8, "fp8": 32},
}
_USUAL = {"fp16": 16, "bf16": 16, "tf32": 8, "fp8": 32, "mxfp8": 32, "mxfp4": 64, "nvfp4": 64}
_AMD = {
    "cdna1_fp16": ("CDNA1", "f32_16x16x16f16"),
    "cdna1_bf16": ("CDNA1", "f32_16x16x8bf16"),
    "cdna2_fp16": ("CDNA2", "f32_16x16x16f16"),
    "cdna2_bf16": ("CDNA2", "f32_16x16x8bf16"),
    "cdna2_bf16_k4": ("CDNA2", "f32_32x32x4bf16"),
    "cdna2_bf16_k2": ("CDNA2", "f32_4x4x2bf16"),
    "cdna2_bf16_1k": ("CDNA2", "f32_16x16x16bf16_1k"),
    "cdna2_bf16_1k_k8": ("CDNA2", "f32_32x32x8bf16_1k"),
    "cdna2_bf16_1k_k4": ("CDNA2", "f32_4x4x4bf16_1k"),
    "cdna3_xf32": ("CDNA3", "f32_16x16x8_xf32"),
    "cdna3_fp16": ("CDNA3", "f32_16x16x16_f16"),
    "cdna3_fp16_k4": ("CDNA3", "f32_32x32x4_2b_f16"),
    "cdna3_bf16": ("CDNA3", "f32_16x16x16_bf16"),
    "cdna3_bf16_k4": ("CDNA3", "f32_32x32x4_2b_bf16"),
    "cdna3_fp8": ("CDNA3", "f32_16x16x32_fp8_fp8"),
}
_FUSED = {  # with code for FMA, which MMA-Sim compiles when it is imported
    "cdna1_fp32": ("CDNA1", "f32_16x16x4f32"),
    "cdna2_fp32": ("CDNA2", "f32_16x16x4f32"),
    "cdna3_fp32": ("CDNA3", "f32_16x16x4_f32"),
}
_ARCHITECTURES = {"ada": "Ada Lovelace", "rtx_blackwell": "RTX Blackwell"}
_PTX = {"f32": "tf32"}
_DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "f32": "float32",
    "e8m0": "float8_e8m0fnu",
}


_FMA = "mmasim.arithmetic.fma"
Bits = NDArray[np.unsignedinteger[Any]]


def is_simulated(profile: DotProfile) -> bool:
    """Return whether MMA-Sim has the instruction of a profile."""
    return profile.name in {**_AMD, **_FUSED} or bool(_NVIDIA.fullmatch(profile.name))


def needs_compiler(profile: DotProfile) -> bool:
    """Return whether the instruction is one of FMA, whose code MMA-Sim compiles."""
    return profile.name in _FUSED


@cache
def simulators() -> tuple[Any, Any]:
    """Return the modules of NVIDIA and AMD, without the code for FMA, which needs a compiler."""
    importlib.import_module("mmasim")
    stub: Any = ModuleType(_FMA)
    stub.MMA_FMA = object
    sys.modules.setdefault(_FMA, stub)
    return importlib.import_module("mmasim.nv_ptx.sim"), importlib.import_module("mmasim.amd.sim")


@cache
def fused() -> Any:
    """Return MMA-Sim's module for FMA, which ninja and a compiler build once; None without them."""
    simulators()
    stub = sys.modules.pop(_FMA)
    try:
        return importlib.import_module(_FMA)
    except (ImportError, OSError, RuntimeError, CalledProcessError):
        sys.modules[_FMA] = stub
        return None


@cache
def operation(
    profile: DotProfile,
    of: tuple[Format, Format],
    scale_format: str | None = None,
    block: int | None = None,
) -> tuple[Any, int]:
    """Return MMA-Sim's own object for the instruction of a profile, and its length along K."""
    nvidia, amd = simulators()
    if profile.name in _AMD:
        found = amd.MFMA(*_AMD[profile.name])
        return found, found.k
    if profile.name in _FUSED:
        amd.fma = fused()
        found = amd.MFMA(*_FUSED[profile.name])
        return found, found.k
    match = _NVIDIA.fullmatch(profile.name)
    parts: dict[str, Any] = match.groupdict() if match else {}
    arch, kind = parts["arch"], parts["kind"]
    name = _ARCHITECTURES.get(arch, arch.capitalize())
    k = int(parts["k"] or _LONGEST.get(arch, _USUAL)[kind])
    out = "f16" if parts["result"] else "f32"
    a, b = (_PTX.get(fmt.name, fmt.name) for fmt in of)
    if block and scale_format:
        ptx = {"e8m0": "ue8m0", "e4m3": "ue4m3"}[scale_format]
        family = {"mxfp8": "mxf8f6f4", "mxfp4": "mxf4nvf4", "nvfp4": "mxf4nvf4"}[kind]
        if arch == "blackwell":
            text = f"m128n8k{k}.kind::{family}.block{block}.f32.{a}.{b}.{ptx}"
            return nvidia.TCGen05MMABlockScale(name, text), k
        text = f"m16n8k{k}.kind::{family}.block{block}.f32.{a}.{b}.f32.{ptx}"
        return nvidia.MMABlockScale(name, text), k
    if parts["k"] is None and arch == "hopper":
        return nvidia.WGMMA(name, f"m64n8k{k}.{out}.{a}.{b}"), k
    if parts["k"] is None and arch == "blackwell":
        tcgen05 = {"fp16": "f16", "bf16": "f16", "tf32": "tf32", "fp8": "f8f6f4"}[kind]
        return nvidia.TCGen05MMA(name, f"m64n8k{k}.kind::{tcgen05}.{out}.{a}.{b}"), k
    shape = f"m8n8k{k}" if arch in ("volta", "turing") and k == 4 else f"m16n8k{k}"
    start = "f16" if parts["start"] else out
    middle = ".kind::f8f6f4" if arch == "rtx_blackwell" and kind == "fp8" and k == 32 else ""
    return nvidia.MMA(name, f"{shape}{middle}.{out}.{a}.{b}.{start}"), k


def as_operand(codes: Bits, fmt: Format) -> Any:
    """Return codes as the tensor that MMA-Sim takes."""
    import torch

    if fmt.name in _DTYPES:
        return torch.from_numpy(codes.copy()).view(getattr(torch, _DTYPES[fmt.name]))
    if fmt.name == "e2m1" and codes.dtype == np.uint8:
        return torch.from_numpy(codes << 2)
    return torch.from_numpy(codes.copy())


def dot_of_mmasim(
    a: Bits,
    b: Bits,
    c: NDArray[np.float32],
    profile: DotProfile,
    of: tuple[Format, Format],
    scales: tuple[Bits, Bits] | None = None,
    scale_format: Format | None = None,
    block: int | None = None,
) -> NDArray[np.uint32]:
    """Return the bits of dot products, instruction after instruction.

    a and b are codes (n, K) and c is binary32 (n,), a number of f16 if the profile starts with one.
    """
    import torch

    found, k = operation(profile, of, scale_format.name if scale_format else None, block)
    of_c = torch.float16 if profile.start == "f16" else torch.float32
    sums = torch.from_numpy(c).to(of_c)
    for start in range(0, a.shape[1], k):
        part = slice(start, start + k)
        if block is None or scales is None or scale_format is None:
            pair = [as_operand(a[:, part], of[0]), as_operand(b[:, part], of[1])]
            sums = found.dpa(*pair, sums)
            continue
        blocks = slice(start // block, (start + k) // block)
        two = [as_operand(codes[:, blocks], scale_format) for codes in scales]
        if found.packing == 2:  # the even element of a pair is the high nibble in MMA-Sim
            pair = [torch.from_numpy(x[:, part][:, ::2] << 4 | x[:, part][:, 1::2]) for x in (a, b)]
        else:
            pair = [as_operand(codes[:, part], fmt) for codes, fmt in zip((a, b), of, strict=True)]
        sums = found.dpa(*pair, sums, *two)
    return canonical(sums.float().numpy())


def canonical(x: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Return the bits of binary32 numbers, with one NaN."""
    found: NDArray[np.uint32] = np.where(np.isnan(x), np.uint32(0x7FFFFFFF), x.view(np.uint32))
    return found
