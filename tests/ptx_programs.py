"""PTX for tests: a kernel that runs one instruction on every row of its arrays."""

import re

import numpy as np

from mor_ref.ptx import Module

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
# Instructions that sm_90 does not have, and those of PTX 9.1 and 9.2.
_NARROW = re.compile(r"cvt\..*(?:e2m1|e2m3|e3m2|ue8m0).*|cvt\.rs\..*|redux\..*\.f32")
_OF_BF16 = re.compile(r"cvt\..*(?:e\dm\dx2\.bf16x2|bf16x2\.e\dm\dx2|e[23]m\dx2\.f16x2)")
_LATER = re.compile(r".*f32x2|(?:add|sub|fma)\..*f32\.b?f16|cvt\.r[nz]\..*satfinite.*tf32.*")
_WORDS = {"8": np.uint8, "16": np.uint16, "32": np.uint32, "64": np.uint64}
_REGISTERS = """
  .reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<19>;
  mov.u32 %r8, %ctaid.x;
  mul.wide.u32 %d18, %r8, 8;
"""


def bits_of(kind):
    """Return how many bits a type has."""
    return kind.lstrip("bsuf")


def _register(kind, number):
    letter = {"16": "h", "8": "h", "32": "r", "64": "d"}[bits_of(kind)]
    return f"%{letter}{number}"


def header(opcode, count=2):
    """Return the head of a module that has an instruction with so many operands."""
    is_of_three = re.fullmatch(r"(?:min|max)\..*\bf32", opcode) and count > 3
    if _NARROW.fullmatch(opcode) or _OF_BF16.fullmatch(opcode):
        version = "9.2" if _OF_BF16.fullmatch(opcode) else "9.0"
        return HEADER.replace("9.0", version).replace("sm_90", "sm_100a")
    is_later = _LATER.fullmatch(opcode) or is_of_three
    return HEADER.replace("sm_90", "sm_100") if is_later else HEADER


def program(opcode, types, immediate="", *, vector=False):
    """Return the text of a kernel; `types` are those of the result and of the operands.

    With `vector`, the first four operands are in braces.
    """
    places = ["out", *"abcdefg"[: len(types) - 1]]
    lines = [
        header(opcode, len(types)),
        ".visible .entry run(",
        ", ".join(f".param .u64 {p}" for p in places),
        ") {",
    ]
    lines.append(_REGISTERS)
    for k, (place, kind) in enumerate(zip(places, types, strict=True)):
        lines.append(f"  ld.param.u64 %d{9 + k}, [{place}]; add.s64 %d{9 + k}, %d{9 + k}, %d18;")
        if k and kind == "pred":
            lines.append(f"  ld.global.u8 %h{k}, [%d{9 + k}]; setp.ne.u16 %p{k}, %h{k}, 0;")
        elif k:
            lines.append(f"  ld.global.b{bits_of(kind)} {_register(kind, k)}, [%d{9 + k}];")
    names = [f"%p{k}" if kind == "pred" else _register(kind, k) for k, kind in enumerate(types)]
    if vector:
        names[1:5] = [f"{{{', '.join(names[1:5])}}}"]
    lines.append(f"  {opcode} {', '.join(names)}{immediate};")
    if types[0] == "pred":
        lines.append("  selp.u16 %h0, 1, 0, %p0; st.global.u8 [%d9], %h0;")
    else:
        lines.append(f"  st.global.b{bits_of(types[0])} [%d9], {_register(types[0], 0)};")
    return "\n".join([*lines, "  ret;\n}\n"])


def run(opcode, types, operands, immediate=""):
    """Return the results of an instruction, as integers, for rows of operands that are bits."""
    rows = list(operands)
    arrays = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    out = np.zeros(len(rows), np.uint64)
    Module(program(opcode, types, immediate))["run"][len(rows), 1](out, *arrays)
    return out.tolist()
