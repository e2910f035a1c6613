"""What PTX must not hold, if its results are to be the same bits on every GPU (ART-002)."""

import re
from typing import NamedTuple

from mor_ref.cuda.errors import CudaError

_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"[^"\n]*"', re.DOTALL)
_FUNCTION = re.compile(r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)")
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_ELSEWHERE = re.compile(r"\.(?:extern|weak)\s+\.func\s+(?:\([^)]*\)\s*)?([\w$]+)")
# Wherever it stands, behind a label, a predicate or a brace: a word with dots in it.
_INSTRUCTION = re.compile(r"(?<![\w.$%])[a-z]\w*(?:\s*(?:\.|::)\s*\w+)+")
_REALS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64")
_NOT_TO_NEAREST = {"rz", "rm", "rp", "rs"}
_ROUNDED = ("add", "sub", "mul", "div", "sqrt", "rcp")


class Violation(NamedTuple):
    """An instruction that depends on the GPU or on its settings."""

    kernel: str
    instruction: str
    why: str


class PtxError(CudaError):
    """A kernel was compiled to what is not bit-exact."""


def instructions(ptx: str) -> dict[str, list[str]]:
    """The instructions of each kernel and of each function, up to the next, without operands."""
    plain = _NO_CODE.sub(" ", ptx)
    _, *parts = _FUNCTION.split(plain)
    found: dict[str, list[str]] = {}
    for function, body in zip(parts[::2], parts[1::2], strict=True):
        words = ("".join(word.split()) for word in _INSTRUCTION.findall(body))
        found.setdefault(function, []).extend(words)
    return found


def violations(ptx: str) -> list[Violation]:
    """All that is contracted, flushed, approximate, or depends on an order."""
    return [
        Violation(kernel, instruction, why)
        for kernel, all_of_it in instructions(ptx).items()
        for instruction in all_of_it
        if (why := _fault(instruction.split(".")))
    ]


def _fault(parts: list[str]) -> str | None:
    name, kind = parts[0], parts[-1]
    is_real = kind in _REALS
    if name in ("fma", "mad") and is_real:
        return "a product and a sum are rounded as one"
    if "ftz" in parts:
        return "subnormal numbers are flushed"
    if "approx" in parts or (name == "div" and "full" in parts):
        return "it is an approximation"
    if name in _ROUNDED and is_real and "rn" not in parts:
        return "it does not say that it is rounded to nearest, and may be contracted"
    if name == "cvt" and parts[-2] in _REALS and _NOT_TO_NEAREST.intersection(parts):
        return "it is not rounded to nearest"
    if name in ("atom", "red") and is_real:
        return "a sum of floating-point numbers depends on its order"
    return None


def check(ptx: str, name: str) -> None:
    """Refuse what is not bit-exact, before anything is loaded."""
    plain = _NO_CODE.sub(" ", ptx)
    if not _ENTRY.search(plain):
        raise PtxError(f"{name}: its PTX has no kernel that could be checked; nothing was loaded")
    elsewhere = _ELSEWHERE.search(plain)
    if elsewhere:
        raise PtxError(
            f"{name}: its PTX calls {elsewhere.group(1)}, which may be another function than one "
            "that could be checked; nothing was loaded"
        )
    found = violations(ptx)
    if found:
        first = found[0]
        raise PtxError(
            f"{name}: kernel {first.kernel} holds {first.instruction}, and {first.why}"
            f"{f'; {len(found) - 1} more' if len(found) > 1 else ''}; nothing was loaded"
        )
