"""All forms of the arithmetic instructions of `mor_ref.ptx` that a GPU has, on numbers at edges.

`gpu.ptx_launches` records these tests, and a GPU repeats them. ptxas says which forms there are.
"""

import functools
import itertools
import random
import re
import re._constants as codes
import re._parser as parser
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from ptx_programs import bits_of

from mor_ref.ptx import Module, PtxError
from mor_ref.ptx.instructions import bounded, conversions, floats, halves, integers
from mor_ref.ptx.parsing import parsed
from mor_ref.ptx.rows import found_in
from mor_ref.ptx.translation import translated

TABLES = {
    module.__name__.rpartition(".")[2]: module.ROWS
    for module in (bounded, conversions, floats, halves, integers)
}
ROWS, TOGETHER, THREADS = 2048, 32, 128
# Carries are of two instructions, the table of lop3 is a constant, and e2m1 is of other GPUs.
_LEFT_OUT = re.compile(r"(?:add|sub|mad)c?\..*|lop3.*|fns.*|.*(?:e2m1|e2m3|e3m2|ue8m0).*|cvt\.rs.*")
_KEPT = re.compile(r"(?:add|sub|mad)\.(?!.*cc)(?!cc).*")
_COMPARISONS = (
    *("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"),
    *("lo", "ls", "hi", "hs"),
)


# ---------------------------------------------------------------------- opcodes


def texts_of(parsed, groups):
    """Yield the texts of a parsed pattern, and those of its groups."""
    if not parsed:
        yield "", groups
        return
    for head, found in texts_of_one(*parsed[0], groups):
        for tail, more in texts_of(parsed[1:], found):
            yield head + tail, more


def texts_of_one(operation, argument, groups):
    """Yield the texts of a part of a pattern."""
    if operation is codes.BRANCH:
        for branch in argument[1]:
            yield from texts_of(list(branch), groups)
    elif operation is codes.SUBPATTERN:
        for text, found in texts_of(list(argument[3]), groups):
            yield text, {**found, argument[0]: text}
    elif operation is codes.MAX_REPEAT:
        for count in range(argument[0], argument[1] + 1):
            yield from texts_of(list(argument[2]) * count, groups)
    else:
        for text in _LEAVES[operation](argument, groups):
            yield text, groups


_LEAVES = {
    codes.LITERAL: lambda code, _: [chr(code)],
    codes.ASSERT: lambda *_: [""],
    codes.GROUPREF: lambda number, groups: [groups[number]],
    codes.IN: lambda parts, _: [chr(code) for part in parts for code in codes_of(*part)],
}


def codes_of(kind, value):
    """Return the characters of a part of a set."""
    return [value] if kind is codes.LITERAL else range(value[0], value[1] + 1)


def forms_of(name):
    """Return the opcodes of a table, in lists of those with the same types."""
    found = {}
    for row in TABLES[name]:
        texts = {text for text, _ in texts_of(list(parser.parse(row.pattern)), {})}
        for text in sorted(text for text in texts if re.fullmatch(row.pattern, text)):
            types = found_in(TABLES[name], text, len(row.types)).types
            if len(types) == len(row.types) and not is_left_out(text):
                found.setdefault(registers(types), {})[text] = None
    return found


def registers(types):
    """Return types with the widths of their registers; later operands of u32 are often counts."""
    return tuple(
        kind if kind == "pred" or (k > 1 and kind == "u32") else f"b{width_of(kind)}"
        for k, kind in enumerate(types)
    )


def width_of(kind):
    """Return how many bits the register of a type has."""
    return {"pred": "16", "8": "16"}.get(bits_of(kind), bits_of(kind))


def is_left_out(text):
    """Return whether an opcode is of no use here."""
    return bool(_LEFT_OUT.fullmatch(text)) and not _KEPT.fullmatch(text)


def comparisons():
    """Return all comparisons, by the types of their results and operands."""
    kinds = [f"{letter}{width}" for letter in "bsu" for width in (16, 32, 64)]
    found = {}
    for kind, how in itertools.product([*kinds, "f16", "bf16", "f32", "f64"], _COMPARISONS):
        for ftz in ("", ".ftz"):
            both = (kind, kind)
            found.setdefault(registers(("pred", *both)), {})[f"setp.{how}{ftz}.{kind}"] = None
            for to in ("u32", "s32", "f32", "u16", "f16", "bf16"):
                found.setdefault(registers((to, *both)), {})[f"set.{how}{ftz}.{to}.{kind}"] = None
    return found


def groups():
    """Yield a name, types, and opcodes that run in one kernel."""
    tables = {name: forms_of(name) for name in TABLES} | {"comparisons": comparisons()}
    for name, forms in tables.items():
        for types, opcodes in forms.items():
            every = list(opcodes)
            for first in range(0, len(every), TOGETHER):
                yield name, types, tuple(every[first : first + TOGETHER])


# ---------------------------------------------------------------------- programs


def program(types, opcodes):
    """Return a kernel that runs instructions on each row of its operands; each has a line."""
    operands = [f"x{k}" for k in range(1, len(types))]
    letters = {"16": "h", "32": "r", "64": "d"}
    names = [f"%{letters[width_of(kind)]}{k}" for k, kind in enumerate(types)]
    lines = [
        ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry run(",
        ", ".join(f".param .u64 {place}" for place in ("out", *operands)),
        ") {\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<19>; .reg .b64 %d<19>;",
        "mov.u32 %r10, %ctaid.x; mov.u32 %r11, %ntid.x; mov.u32 %r12, %tid.x;",
        "mad.lo.u32 %r10, %r10, %r11, %r12; mul.wide.u32 %d10, %r10, 8;",
        "ld.param.u64 %d11, [out]; add.s64 %d11, %d11, %d10;",
    ]
    for k, kind in enumerate(types[1:], 1):
        lines.append(f"ld.param.u64 %d12, [x{k}]; add.s64 %d12, %d12, %d10;")
        lines.append(f"ld.global.b{width_of(kind)} {names[k]}, [%d12];")
        if kind == "pred":
            lines.append(f"and.b16 {names[k]}, {names[k]}, 1; setp.ne.u16 %p{k}, {names[k]}, 0;")
            names[k] = f"%p{k}"
    for k, opcode in enumerate(opcodes):
        at = f"[%d11+{8 * ROWS * k}]"
        if types[0] == "pred":
            line = f"{opcode} %p0, {', '.join(names[1:])}; selp.u16 %h0, 1, 0, %p0;"
        else:
            line = f"{opcode} {', '.join(names)};"
        lines.append(f"{line} st.global.b{width_of(types[0])} {at}, {names[0]};")
    return "\n".join([*lines, "ret; }\n"])


def assembled(types, opcodes):
    """Return those of the opcodes that ptxas takes."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run.ptx"
        while opcodes:
            text = program(types, opcodes)
            path.write_text(text, "utf-8")
            command = ["ptxas", "-arch=sm_90a", "-o", f"{path}.cubin", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if not done.returncode:
                return opcodes
            lines = text.split("\n")
            wrong = {lines[int(n) - 1] for n in re.findall(r"line (\d+); error", done.stderr)}
            kept = tuple(each for each in opcodes if not any(f"{each} %" in one for one in wrong))
            assert len(kept) < len(opcodes), done.stderr
            opcodes = kept
    return ()


# ---------------------------------------------------------------------- numbers


@functools.cache
def pool(width):
    """Return bits at which implementations differ, for integers and numbers of all formats."""
    rng = random.Random(width)  # noqa: S311  # the same inputs each time
    found = {n % (1 << width) for k in range(width) for n in ((1 << k) - 1, 1 << k, -1 << k)}
    if width == 16:
        tops = [0, 0x3C00, 0x3F80, 0x7BFF, 0x7C00, 0x7F7F, 0x7F80, 0x7FFF, 0x0400, 0x0080]
        found |= {(top + k) % (1 << 16) for top in tops for k in range(-2, 3)}
        found |= {0x7E01, 0x7FC1, 0x4300, 0x4049, 0x5BC0, 0x5BFF, 0x43E0, 0x43F0, 0x4770}
    elif width == 32:
        found |= {exponent << 23 | low for exponent in range(256) for low in (0, 1, 0x400000)}
        cuts = (1 << 12, 1 << 13, 1 << 15, 1 << 16, 1 << 19, 1 << 20, 1 << 21)
        tops = [0x3F800000, 0x477FE000, 0x7F7F0000, 0x43E00000, 0x47600000, 0x38800000, 0x00800000]
        found |= {top + (cut >> 1) * n + k for top in tops for cut in cuts for n in (1, 3)
                  for k in (-1, 0, 1)}  # fmt: skip
        found |= {a << 16 | b for a, b in zip(pool(16)[::2], pool(16)[1::2], strict=False)}
    else:
        found |= {a << 32 | b for a, b in zip(pool(32)[::3], pool(32)[1::3], strict=False)}
        found |= {(exponent + 896) << 52 | low for exponent in range(-30, 286, 5)
                  for low in (0, 1, 1 << 28, (1 << 28) + 1, 3 << 28)}  # fmt: skip
        found |= {exponent << 52 | low for exponent in (0, 1, 1023, 1075, 2046, 2047)
                  for low in (0, 1, (1 << 52) - 1, 1 << 51)}  # fmt: skip
    found |= {n ^ 1 << width - 1 for n in list(found)}
    found |= {rng.getrandbits(width) for _ in range(150)}
    return sorted(found)


def columns(name, types, opcode):
    """Return the operands of each row."""
    rng = random.Random(f"{name} {types} {opcode}")  # noqa: S311  # the same inputs each time
    for k, kind in enumerate(types[1:]):
        numbers = list(pool(int(width_of(kind))))
        rng.shuffle(numbers)
        if len(numbers) < ROWS or len(types) > 2:
            numbers = [*numbers, *rng.choices(numbers, k=ROWS)]
        if k and kind == "u32":
            numbers = [rng.choice((n, n % 70)) for n in numbers]
        if k and re.match(r"(?:div|rem)\.[us]", opcode):
            numbers = [n or 3 for n in numbers]
        yield np.array(numbers[:ROWS], np.uint64)


def named(part):
    """Return a part of the name of a test."""
    return part if isinstance(part, str) else "-".join(part[:3])


@pytest.mark.parametrize(("name", "types", "opcodes"), list(groups()), ids=named)
def test_forms(name, types, opcodes):
    """Nothing is compared here: a GPU does it."""
    if not shutil.which("ptxas"):
        pytest.skip("ptxas is not installed: pip install nvidia-cuda-nvcc")
    opcodes = supported(types, assembled(types, opcodes))
    if not opcodes:
        return
    out = np.zeros(len(opcodes) * ROWS, np.uint64)
    module = Module(program(types, opcodes), undefined="nearest")
    module["run"][ROWS // THREADS, THREADS](out, *columns(name, types, opcodes[0]))
    session, _ = module.__dict__.get("session", (None, None))
    if session:
        session.labels = opcodes


def supported(types, opcodes):
    """Return those of the opcodes that `mor_ref.ptx` takes."""
    while opcodes:
        text = program(types, opcodes)
        try:
            translated(parsed(text), "run")
        except PtxError as error:
            line = text.split("\n")[int(re.match(r"line (\d+)", str(error)).group(1)) - 1]
            opcodes = tuple(each for each in opcodes if f"{each} %" not in line)
        else:
            break
    return opcodes
