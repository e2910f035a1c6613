"""What the PTX of a kernel must not hold, if its results are to be the same bits on every GPU."""

import re
from typing import NamedTuple

from mor_ref.cuda.errors import CudaError

_FUNCTION = re.compile(
    r"\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)\s*\([^)]*\)[^{;]*\{(.*?)^\}",
    re.DOTALL | re.MULTILINE,
)
_INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s", re.MULTILINE)
_REALS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64")
_ROUNDED = ("add", "sub", "mul", "div", "sqrt", "rcp")


class Violation(NamedTuple):
    """An instruction that depends on the GPU or on its settings."""

    kernel: str
    instruction: str
    why: str


class PtxError(CudaError):
    """A kernel was compiled to what is not bit-exact."""


def instructions(ptx: str) -> dict[str, list[str]]:
    """The instructions of each kernel and of each function that they call, without operands."""
    found = {}
    for function, body in _FUNCTION.findall(ptx):
        plain = re.sub(r"//.*", "", body).replace("{", "\n").replace(";", ";\n")
        found[function] = _INSTRUCTION.findall(plain)
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
    if name in ("atom", "red") and is_real:
        return "a sum of floating-point numbers depends on its order"
    return None


def check(ptx: str, name: str) -> None:
    """Refuse what is not bit-exact, before anything is loaded."""
    found = violations(ptx)
    if found:
        first = found[0]
        raise PtxError(
            f"{name}: kernel {first.kernel} holds {first.instruction}, and {first.why}"
            f"{f'; {len(found) - 1} more' if len(found) > 1 else ''}; nothing was loaded"
        )
