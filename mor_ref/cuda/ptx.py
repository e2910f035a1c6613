"""A check that PTX has the same results, bit for bit, on every GPU (ART-002)."""

import re
from typing import NamedTuple

from mor_ref.cuda.unavailable import CudaError

_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', re.DOTALL)
_FUNCTION = re.compile(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_ELSEWHERE = re.compile(r"\.(?:extern|weak)\s+\.func\s+(?:\([^)]*\)\s*)?([\w$]+)")
# Anywhere: behind a label, a predicate or a brace: a word with dots in it.
_INSTRUCTION = re.compile(r"(?<![\w.$%])[a-z]\w*(?:\s*(?:\.|::)\s*\w+)+")
# A type of numbers that are not integers.
_REAL = re.compile(r"(?:t?f32|b?f16|f64|u?e\dm\d|mxf\w+|f8f6f4)(?:x\d)?")
# An instruction that adds numbers without naming their type.
_UNNAMED = ["cp", "reduce", "async", "bulk", "tensor"]
# All that may be done with such: to round nothing, or as IEEE 754 rounds to nearest.
_UNROUNDED = {"ld", "st", "mov", "selp", "setp", "min", "max", "neg", "abs", "copysign"}
_ROUNDED = {f"{name}.rn.f32" for name in ("add", "sub", "mul", "div", "sqrt")}
_ROUNDED |= {"mul.rn.f64", "cvt.rn.f32.f64", "cvt.f64.f32"}
_ROUNDED |= {"sub.rn.f64", "cvt.rn.f64.s32"}
_ROUNDED |= {"cvt.rn.f32.s32", "cvt.rzi.s32.f32"}  # of integers: exact, rounded once or cut off
# Of small formats: rounded once, to nearest, and back exactly.
_ROUNDED |= {f"cvt.rn.satfinite.{name}x2.f32" for name in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")}
_ROUNDED |= {f"cvt.rn.f16x2.{name}x2" for name in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")}
_ROUNDED |= {"cvt.f32.f16", "cvt.rp.satfinite.ue8m0x2.f32", "cvt.rz.satfinite.ue8m0x2.f32"}
# In kernels of these names a product and a sum are rounded once (AFF-007).
_FUSED = re.compile(r"affine_fused_\w+")


class Violation(NamedTuple):
    """An instruction that depends on the GPU or on its settings."""

    kernel: str
    instruction: str
    why: str


class PtxError(CudaError):
    """A kernel was compiled to code that is not bit-exact."""


def instructions(ptx: str) -> dict[str, list[str]]:
    """Return the instructions of each kernel and of each function, without operands."""
    plain = _NO_CODE.sub(" ", ptx)
    _, *parts = _FUNCTION.split(plain)
    by_function: dict[str, list[str]] = {}
    for function, body in zip(parts[::2], parts[1::2], strict=True):
        words = ("".join(word.split()) for word in _INSTRUCTION.findall(body))
        by_function.setdefault(function, []).extend(words)
    return by_function


def violations(ptx: str) -> list[Violation]:
    """Return each instruction that is contracted, flushed, approximate, or order-dependent."""
    return [
        Violation(kernel, instruction, _fault(parts))
        for kernel, words in instructions(ptx).items()
        for instruction in words
        if not _is_exact(instruction, parts := re.split(r"\W+", instruction))
        and not (instruction == "fma.rn.f32" and _FUSED.fullmatch(kernel))
    ]


def _is_exact(instruction: str, parts: list[str]) -> bool:
    if not any(map(_REAL.fullmatch, parts)):
        return parts[: len(_UNNAMED)] != _UNNAMED
    return instruction in _ROUNDED or (parts[0] in _UNROUNDED and "ftz" not in parts)


def _fault(parts: list[str]) -> str:
    """Return the fault of an instruction that is not exact."""
    if parts[0] in ("fma", "mad"):
        return "a product and a sum are rounded as one"
    if "ftz" in parts:
        return "subnormal numbers are flushed"
    if "approx" in parts or "full" in parts:
        return "it is an approximation"
    if parts[: len(_UNNAMED)] == _UNNAMED:
        return "it does not name the type of the numbers that it adds"
    if parts[0] in ("atom", "red", "multimem"):
        return "a sum of floating-point numbers depends on its order"
    return "it is not known to be rounded to nearest, by itself and on every GPU alike"


def check(ptx: str, name: str) -> None:
    """Refuse instructions that are not bit-exact, before anything is loaded."""
    plain = _NO_CODE.sub(" ", ptx)
    if not _ENTRY.search(plain):
        raise PtxError(f"{name}: its PTX has no kernel that could be checked; nothing was loaded")
    elsewhere = _ELSEWHERE.search(plain)
    if elsewhere:
        raise PtxError(
            f"{name}: its PTX calls {elsewhere.group(1)}, which may be another function than one "
            "that could be checked; nothing was loaded"
        )
    refused = violations(ptx)
    if refused:
        first = refused[0]
        raise PtxError(
            f"{name}: kernel {first.kernel} holds {first.instruction}, and {first.why}"
            f"{f'; {len(refused) - 1} more' if len(refused) > 1 else ''}; nothing was loaded"
        )
