"""Notes on contraction and flushing, which options of the compiler decide, if a result changes."""

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER, program

from mor_ref.golden import bundled_files
from mor_ref.operations import OPERATIONS
from mor_ref.ptx import Candidate, Module
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.reporting.page import as_html
from mor_ref.verify.reporting.text import lines
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

FUSED, FLUSHED = "rounded as one", "subnormal numbers are 0"
ONE, SMALL = 0x3F800000, 0x00000001
A, B = 0x3F800800, 0xBF801000  # A * A + B is 2^-24 if it is rounded once, and 0 if twice
A16, B16 = 0x3C21, 0xBC42
# The types of an instruction, operands for which an option changes the result, and others.
ROWS = {
    "fma.rn.f32": (("f32",) * 4, (A, A, B), (ONE, A, B), FUSED),
    "fma.rn.sat.f32": (("f32",) * 4, (A, A, B), (ONE, A, B), FUSED),
    "mad.rn.f32": (("f32",) * 4, (A, A, B), (ONE, A, B), FUSED),
    "fma.rn.f16": (("b16",) * 4, (A16, A16, B16), (0x3C00, A16, B16), FUSED),
    "fma.rn.f16x2": (("b32",) * 4, (A16 << 16, A16 << 16, B16 << 16), (0, A16, B16), FUSED),
    "fma.rn.f64": (("f64",) * 4, (0x3FF0000002000000, 0x3FF0000002000000, 0xBFF0000004000000),
                   (0x3FF0000000000000, 1, 1), FUSED),
    "fma.rn.ftz.f32": (("f32",) * 4, (ONE, SMALL, 0), (ONE, 0, B), FLUSHED),
    "mul.ftz.f32": (("f32",) * 3, (ONE, SMALL), (ONE, A), FLUSHED),
    "mul.rn.ftz.f32": (("f32",) * 3, (0x1F800000, 0x1F800000), (0, 0), FLUSHED),
    "add.ftz.f32": (("f32",) * 3, (SMALL, SMALL), (ONE, SMALL), FLUSHED),
    "neg.ftz.f32": (("f32",) * 2, (SMALL,), (ONE,), FLUSHED),
    "max.ftz.f32": (("f32",) * 3, (0, SMALL), (ONE, SMALL), FLUSHED),
    "div.full.ftz.f32": (("f32",) * 3, (SMALL, ONE), (ONE, A), FLUSHED),
    "cvt.rzi.ftz.s32.f32": (("s32", "f32"), (SMALL,), (ONE,), None),
    "cvt.rpi.ftz.s32.f32": (("s32", "f32"), (SMALL,), (ONE,), FLUSHED),
    "set.lt.ftz.u32.f32": (("b32", "f32", "f32"), (0, SMALL), (SMALL, ONE), FLUSHED),
    "setp.lt.ftz.f32": (("pred", "f32", "f32"), (0, SMALL), (SMALL, ONE), FLUSHED),
    "mul.rn.f32": (("f32",) * 3, (ONE, SMALL), (ONE, A), None),
    "fma.rz.f32": (("f32",) * 4, (A, A, B), (ONE, A, B), None),  # no compiler makes it of two
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def line_of(opcode, types, operands):
    """Return a line that runs an instruction on registers with these bits."""
    names = [f"%{'p' if kind == 'pred' else {16: 'h', 32: 'r', 64: 'd'}[int(kind[1:])]}{k}"
             for k, kind in enumerate(types)]  # fmt: skip
    pairs = zip(types[1:], names[1:], operands, strict=True)
    moves = "".join(f"mov.b{kind[1:]} {name}, {bits}; " for kind, name, bits in pairs)
    return f"{moves}\n{opcode} {', '.join(names)};\n"


def test_lines_whose_result_an_option_changed():
    """An instruction that did not run, or has the same result without the option, has no note."""
    declared = ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n"
    body, wanted = "", []
    for opcode, (types, changed, same, words) in ROWS.items():
        body += line_of(opcode, types, same) + line_of(opcode, types, changed)
        if words:
            wanted.append((f"line {5 + body.count(chr(10))}: {opcode}", words))
    text = f"{HEADER}.visible .entry run() {{\n{declared}{body}bra END;\n{body}END: ret; }}"
    kernel = Module(text, undefined="nearest")["run"]
    kernel[1, 1]()
    found = [str(note) for note in kernel.notes]
    assert [note.split(" %")[0] for note in found] == [line for line, _ in wanted]
    assert all(words in note for note, (_, words) in zip(found, wanted, strict=True))


def verified(opcode, more=()):
    """Verify the engine on single numbers, with xs put through an opcode of PTX."""
    text = program(opcode, ("f32",) * (2 + len(more)))

    def launch(module, operation, parameters, inputs):
        if parameters["format"] != "e4m3":
            return None
        found = dict(OPERATIONS[operation].engine(parameters, inputs))
        out, xs = np.zeros(len(found["xs"]), np.uint64), found["xs"].astype(np.uint64)
        others = [np.full(len(out), bits, np.uint64) for bits in more]
        module(text)["run"][len(out), 1](out, xs, *others)
        return found | {"xs": out.astype(np.uint32)}

    suites = suites_in(bundled_files(), ["quantize_steps"])
    return verify(PythonFunction("kernel:run", Candidate(launch)), suites)


@pytest.mark.tier("full")
def test_a_mismatch_names_the_option():
    """The suite has subnormal numbers; what matches has no notes."""
    found = verified("mul.rn.ftz.f32", [ONE])
    assert found.verdict == "mismatch"
    (note,) = [line for line in lines(found) if FLUSHED in line]
    assert "line 18: mul.rn.ftz.f32: " in note
    assert "--ftz=false" in note
    assert "--ftz=false" in as_html(found)
    found = verified("mul.rn.f32", [0x40000000])
    assert found.verdict == "mismatch"
    assert not [line for line in lines(found) if "--ftz" in line]


def test_notes_are_those_since_they_were_asked_last():
    """A kernel that runs again without subnormal numbers has none; alike ones are a line."""
    lines_of_it = "add.ftz.f32 %f2, %f1, %f1;\n" * 3 + "st.global.f32 [%d1], %f2;"
    text = HEADER + (
        ".visible .entry run(.param .u64 x) { .reg .f32 %f<3>; .reg .b64 %d<2>;\n"
        f"ld.param.u64 %d1, [x]; ld.global.f32 %f1, [%d1];\n{lines_of_it} ret; }}"
    )

    def launch(module, operation, parameters, inputs):
        assert (operation, parameters) == ("add", {})
        module(text)["run"][1, 1](inputs["x"])
        return {"x": inputs["x"]}

    candidate = Candidate(launch)
    for bits, count in ((SMALL, 1), (ONE, 0)):
        candidate("add", {}, {"x": np.array([bits], np.uint32)})
        notes = candidate.notes()
        found = [note.split(": subnormal")[0] for note in notes]
        assert found == ["line 6 and 2 more: add.ftz.f32"] * count
        candidate.remarks()


def test_nans_that_are_drawn_are_no_results_of_an_option():
    """Both results are NaN, with other bits at each draw."""
    text = f"""{HEADER}.visible .entry run(.param .u64 out) {{ .reg .b64 %d<4>; .reg .b32 %r<3>;
ld.param.u64 %d0, [out]; mov.b64 %d1, 0x7FF8000000000123; mov.b64 %d2, 0xFFF8000000000456;
fma.rn.f64 %d3, %d1, %d2, %d1;
mov.b32 %r1, 0x7FC00001; neg.ftz.f32 %r2, %r1; st.global.b64 [%d0], %d3; ret; }}"""
    found = set()
    for seed in range(9):
        kernel, out = Module(text, undefined="drawn", seed=seed)["run"], np.zeros(1, np.uint64)
        kernel[1, 1](out)
        found.add(out.item())
        assert kernel.notes == ()
    assert found == {0x7FF8000000000123, 0xFFF8000000000456, 0x7FF8000000000000}
