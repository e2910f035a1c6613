"""Remarks on instructions: bits that PTX leaves open, and results of options of the compiler."""

import re
from dataclasses import dataclass

from mor_ref.ptx.program import Instruction

NO_CONTRACTION = "compile without contraction (NVRTC: --fmad=false; Triton: enable_fp_fusion=False)"
# Options of the compiler that have changed a result, by their bits in machine.h.
OPTIONS = {
    1: "a product and a sum are rounded as one here, and another result if they are not; this may "
    f"be the cause: {NO_CONTRACTION}, or write __fmul_rn(x, y) for the product",
    2: "subnormal numbers are 0 here, and another result if they are not; this may be the cause: "
    "compile with --ftz=false (CuPy's RawKernel appends -ftz=true)",
}
# Notes of launches on open bits, by their numbers in machine.h.
NOTED = {
    1: "its divisor was 0, and PTX leaves the quotient open",
    2: "its operand was NaN, and PTX leaves the bits of the NaN open",
    3: "it read local memory that was not written, and PTX leaves its bits open",
    4: "it read shared memory that was not written, and PTX leaves its bits open",
    5: "its result was a NaN of no operand, or of several, and PTX leaves its bits open",
    6: "its result was the NaN of an operand, and ptxas may change the sign of that",
    7: "its operand was NaN, and ptxas makes different bits of constants and of registers",
    8: "ptxas may round it as one with the product that it multiplies by a power of two; "
    f"{NO_CONTRACTION}",
    9: "it met a NaN, and PTX does not say what an atomic minimum or maximum makes of it",
}
_CONTRACTED = re.compile(r"(?:fma|mad)\.rn(?:\.\w+)*\.(?:f32|f64|b?f16)(?:x2)?")


@dataclass(frozen=True)
class Remark:
    """A remark on an instruction: its line, its text, and what to do.

    `source` is the place in the source, such as kernel.py:17, if the PTX has it.
    """

    line: int
    text: str
    why: str
    source: str = ""

    @property
    def opcode(self) -> str:
        """The instruction without a predicate and operands."""
        return self.text.split()[self.text.startswith("@")]

    def __str__(self) -> str:
        return f"line {self.line}{self.source and f' ({self.source})'}: {self.text}: {self.why}"


@dataclass(frozen=True)
class Undefined(Remark):
    """An instruction whose bits PTX leaves open.

    `always` is false if the bits matter for some operands only, or not at all. An example of the
    latter is a register that only completes a pair.
    """

    always: bool = True


def by_options(of: Instruction, found: str) -> str:
    """Return a result as C++ that notes its line if an option of the compiler has changed it."""
    name, more = "by_option", ""
    if "Nan<" in found:  # open bits may be drawn each time
        kind = of.opcode.split(".")[-2 if of.opcode.startswith("cvt.") else -1]
        name, more = (
            "by_option_of",
            f", {kind.removesuffix('x2').upper()}, {1 + kind.endswith('x2')}",
        )
    if "ftz" in of.opcode.split("."):
        without = found.replace("FTZ", "0").replace("flushed_", "")
        found = f"{name}<Option::ftz{more}>(m, {of.line}, {found}, {without})"
    if _CONTRACTED.fullmatch(of.opcode):
        apart = re.sub(r"\bfma_(f32|f64|half)\b", r"apart_\1", found)
        found = f"{name}<Option::fmad{more}>(m, {of.line}, {found}, {apart})"
    return found
