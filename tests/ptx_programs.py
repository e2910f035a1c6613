"""PTX for tests: a kernel that runs one instruction on every row of its arrays."""

import numpy as np

from mor_ref.ptx import Module
from mor_ref.ptx.targets import is_target, needs_of

HEADER = ".version 9.0\n.target sm_90\n.address_size 64\n"
_TARGETS = ("sm_90", "sm_100", "sm_100a")
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
    needs = needs_of(opcode, count)
    able = (one for one in _TARGETS if all(is_target(need, one) for need in needs))
    version = max(["9.0", *(need.version for need in needs)])
    return HEADER.replace("9.0", version).replace("sm_90", next(able, "sm_90"))


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
