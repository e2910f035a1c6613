"""Seldom forms of PTX: spaces of addresses, long vectors, atomics, reductions."""

from dataclasses import replace

import numpy as np
import pytest
from kernels import needed
from ptx_programs import HEADER, program

from mor_ref.cuda.unavailable import CudaError
from mor_ref.ptx import LaunchError, Module, PtxError, Schedule


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


def of_a_warp(body, memory=None, target="sm_90"):
    """Run lines on 32 threads: %r1 is the lane, %d4 an array, and %r2 goes out."""
    text = f"""
.visible .entry run(.param .u64 out, .param .u64 memory) {{
  .reg .pred %p<3>; .reg .b32 %r<19>; .reg .f32 %f<9>; .reg .b64 %d<9>; .reg .b128 %q<2>;
  .shared .align 16 .b8 shared[256]; .reg .b16 %h<3>;
  ld.param.u64 %d1, [out];
  ld.param.u64 %d4, [memory];
  mov.u32 %r1, %laneid;
  mov.u32 %r2, 0;
  {body}
  mul.wide.u32 %d2, %r1, 4;
  add.s64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r2;
  ret;
}}
"""
    out = np.zeros(32, np.uint32)
    memory = np.zeros(8, np.uint32) if memory is None else memory
    Module(HEADER.replace("sm_90", target) + text)["run"][1, 32](out, memory)
    return out, memory


SPACES = {
    "global": "mov.u64 %d5, %d4;",
    "shared": "mov.u32 %r3, shared; cvt.u64.u32 %d6, %r3; cvta.shared.u64 %d5, %d6;",
    "local": "{ .local .align 4 .b8 mine[8]; mov.u64 %d6, mine; cvta.local.u64 %d5, %d6; ASK }",
}


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("asked", SPACES)
def test_spaces_of_addresses(space, asked):
    question = f"isspacep.{asked} %p1, %d5; selp.u32 %r2, 1, 0, %p1;"
    made = SPACES[space]
    body = made.replace("ASK", question) if "ASK" in made else f"{made} {question}"
    found, _ = of_a_warp(body)
    assert set(found.tolist()) == {int(space == asked)}


def test_addresses_to_and_from_shared_memory():
    """A generic address of shared memory, and back: both reach the same number."""
    body = """
  mov.u32 %r3, shared; shl.b32 %r4, %r1, 2; add.s32 %r4, %r4, %r3; cvt.u64.u32 %d5, %r4;
  cvta.shared.u64 %d6, %d5;
  st.u32 [%d6], %r1;
  cvta.to.shared.u64 %d7, %d6;
  ld.shared.u32 %r2, [%d7];
"""
    assert of_a_warp(body)[0].tolist() == list(range(32))


FLOATS = {
    "min": -31.0, "max": 0.0, "min.abs": 0.0, "max.abs": 31.0, "max.NaN": 0.0, "min.abs.NaN": 0.0,
}  # fmt: skip


@pytest.mark.tier("full", but=["[min]"])
@pytest.mark.parametrize("operation", FLOATS)
def test_reductions_of_binary32(operation):
    """Of 0, -1, -2 and so on; -0 is the number of lane 0."""
    body = f"""
  cvt.rn.f32.u32 %f1, %r1; neg.f32 %f1, %f1;
  redux.sync.{operation}.f32 %f2, %f1, 0xffffffff;
  mov.b32 %r2, %f2;
"""
    found = of_a_warp(body, target="sm_100a")[0].view(np.float32)
    assert set(found.tolist()) == {FLOATS[operation]}
    assert np.signbit(found).all() == (operation in ("min", "max", "max.NaN"))


@pytest.mark.parametrize(("words", "is_nan"), [("min", False), ("min.NaN", True), ("max", False)])
def test_reductions_with_nan(words, is_nan):
    """A number wins over NaN, and NaN over numbers with .NaN."""
    body = f"""
  cvt.rn.f32.u32 %f1, %r1; setp.eq.u32 %p1, %r1, 7; selp.f32 %f1, 0fFFC00001, %f1, %p1;
  redux.sync.{words}.f32 %f2, %f1, 0xffffffff;
  mov.b32 %r2, %f2;
"""
    wanted = 0x7FFFFFFF if is_nan else {"min": 0, "max": 0x41F80000}[words]
    assert set(of_a_warp(body, target="sm_100a")[0].tolist()) == {wanted}


def test_compare_and_swap():
    """Each lane takes its turn: the memory counts up to 32, if lanes go in ascending order."""
    body = "add.s32 %r3, %r1, 1; atom.global.cas.b32 %r2, [%d4], %r1, %r3;"
    found, memory = of_a_warp(body)
    assert found.tolist() == list(range(32))
    assert memory[0] == 32
    found, memory = of_a_warp("atom.global.cas.b32 %r2, [%d4], 5, 9;")
    assert set(found.tolist()) == {0}
    assert memory[0] == 0


def test_decrements():
    """From 0 to the limit, then down: 3, 2, 1, 0, 3 and so on."""
    found, memory = of_a_warp("atom.global.dec.u32 %r2, [%d4], 3;")
    assert found.tolist() == [0, *[3, 2, 1, 0] * 7, 3, 2, 1]
    assert memory[0] == 0
    found, memory = of_a_warp("atom.global.dec.u32 %r2, [%d4], 3;", np.full(8, 9, np.uint32))
    assert found.tolist()[:3] == [9, 3, 2]


def test_vectors_of_eight():
    """They are aligned to all of their bytes."""
    whole = np.zeros(40, np.uint32)
    first = -(whole.ctypes.data // 4) % 8
    memory = whole[first : first + 8]
    memory[:] = range(1, 9)
    names = ", ".join(f"%r{k}" for k in range(3, 11))
    body = f"""
  ld.global.v8.b32 {{{names}}}, [%d4];
  mul.lo.u32 %r2, %r3, 100; add.s32 %r2, %r2, %r10;
  setp.eq.u32 %p1, %r1, 31; @%p1 st.global.v8.b32 [%d4], {{%r10, {names.rpartition(",")[0]}}};
"""
    found, memory = of_a_warp(body, memory, "sm_100")
    assert set(found.tolist()[:32]) == {108}
    assert memory.tolist() == [8, 1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(LaunchError, match="its address is misaligned"):
        of_a_warp(body, whole[first + 4 : first + 12], "sm_100")


def test_executed_instructions_are_counted():
    """Those of all threads, each time that a loop runs them; guarded ones too, but no moves."""
    text = """
.visible .entry run() {
  .reg .pred %p<2>; .reg .b32 %r<3>;
  mov.u32 %r1, %tid.x;
  AGAIN:
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  sub.u32 %r1, %r1, 1;
  bra AGAIN;
  DONE: ret;
}
"""
    kernel = Module(HEADER + text)["run"]
    kernel[2, 3]()
    one = sum(4 * tid + 2 + 1 for tid in range(3))
    assert kernel.executed == 2 * one
    kernel[1, 1]()
    assert kernel.executed == 2 * one + 3


def test_names_that_differ_in_signs_alone():
    """Registers, labels and functions: C++ has no $ and no % in the names of its own."""
    text = """
.func (.param .b32 x) f$1() { .reg .b32 %r<2>; mov.u32 %r1, 100; st.param.b32 [x], %r1; ret; }
.func (.param .b32 x) f_1() { .reg .b32 %r<2>; mov.u32 %r1, 200; st.param.b32 [x], %r1; ret; }
.visible .entry run$it(.param .u64 out) {
  .reg .b64 %d<2>; .reg .b32 %r<4>; .reg .b32 %a$1; .reg .b32 %a_1; .reg .b32 a_1; .reg .b32 a__1;
  .param .b32 x;
  mov.u32 %a$1, 1; mov.u32 %a_1, 2; mov.u32 a_1, 4; mov.u32 a__1, 8; bra L$1;
L_1: add.u32 %a$1, %a$1, 16;
L$1: call (x), f$1, (); ld.param.b32 %r1, [x]; call (x), f_1, (); ld.param.b32 %r2, [x];
  ld.param.u64 %d1, [out]; add.u32 %r1, %r1, %r2;
  add.u32 %r1, %r1, %a$1; add.u32 %r1, %r1, %a_1; add.u32 %r1, %r1, a_1; add.u32 %r1, %r1, a__1;
  st.global.u32 [%d1], %r1;
  ret; }
"""
    out = np.zeros(1, np.uint32)
    Module(HEADER + text)["run$it"][1, 1](out)
    assert out == 315


MALFORMED = (
    "mov.u32 %r3;", "mov.u32 %r3, %r1, %r1;", "mov.u32 %r3, 089;", "mov.u32 %r3, %p1;",
    "mov.b64 {%r3, %r4, %r5}, %d4;", "ld.global.u32 %r3;",
    "ld.global.v2.u32 {%r3}, [%d4];", "st.global.u32 [%d4];", "st.global.u32 %r1, [%d4];", "bra;",
    "bra NOWHERE;", "setp.foo.u32 %p1, %r1, %r1;", "setp.foo.f32 %p1, 0f00000000, 0f00000000;",
    "setp.lo.f32 %p1, 0f00000000, 0f00000000;", "setp.eq.and.u32 %p1, %r1, %r1;",
    "setp.foo.f16x2 %p1|%p2, %r1, %r1;", "set.lt.f32.f16x2 %f1, %r1, %r1;",
    "set.lt.f16x2.f32 %r3, %f1, %f1;", "set.foo.f16x2.f16x2 %r3, %r1, %r1;",
    "shfl.sync.idx.b32 %r3, %r1;", "bar.warp.sync;",
    "vote.sync.all.pred %p1;", "match.any.sync.b32 %r3, %r1;", "redux.sync.add.s32 %r3, %r1;",
    "atom.global.add.u32 %r3;", "atom.global.cas.b32 %r3, [%d4], %r1;",
    "atom.global.and.b128 %q1, [%d4], %q1;", "red.global.add.u32 [%d4];",
    "cvta.to.global.u64 %d5;", "add.s32 %r3, %r1;", "call;", "bar.sync;", "cp.async.wait_group;",
    "cp.async.wait_group %r1;", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1};",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r3};", "set.lt.u32.u32 %r3, %r1;", "ret 1;",
    "ld.global.f16x2 %r3, [%d4+];", "brx.idx %r1;", "isspacep.shared %p1;", "mov.f32 %f1, 0f12;",
    "prmt.b32.f4e %r3, %r1, %r1;", "lop3.b32 %r3, %r1, %r1, %r1, , ;", "cvt.rn.f32 %f1, %r1;",
    "@%p1;", "@1 add.u32 %r3, %r1, %r1;", "bar.sync 99;", "bar.sync -1;", "bar.sync 1.5;",
    "lop3.b32 %r3, %r1, %r1, %r1, 256;", "lop3.b32 %r3, %r1, %r1, %r1, %r1;",
    "add.u32 %r3, %d4, %r1;", "add.u32 %d5, %r1, %r1;", "add.u32 %r3, %r1, 1.5;",
    "add.u32 %r3, %r1, 0f3F800000;", "add.u32 %r3, %r1, %f1;", "add.f32 %f1, %f1, 1;",
    "and.b32 %r3, %r1, 1.5;", "mov.u32 %r3, %d4;", "mov.u32 %f1, %r1;", "mov.b32 %r3, 1.5;",
    "mov.f32 %f1, 1;", "setp.eq.u32 %p1, %d4, %r1;", "setp.eq.u32 %r3, %r1, %r1;",
    "shfl.sync.idx.b32 %r3|%r4, %r1, 0, 31, -1;", "ld.global.u64 %r3, [%d4];",
    "ld.global.u32 %f1, [%d4];", "st.global.u32 [%d4], %f1;", "st.global.f32 [%d4], 1;",
    "cvt.u32.u64 %r3, %r1;", "shl.b32 %r3, %r1, %d4;", "atom.global.add.u32 %d5, [%d4], %r1;",
    "set.lt.u32.u32 %d5, %r1, %r1;", "vote.sync.ballot.b32 %p1, %p1, -1;", "bar.sync %d4;",
    ".reg .b32 %r<2>;", "setp.eq.u3 %p1, %r1, %r1;", "set.eq.u32.u3 %r3, %r1, %r1;",
    "set.lt.u16.u32 %h1, %r1, %r1;", "set.lt.s16.f32 %h1, %f1, %f1;",
    "set.lt.f16.bf16 %h1, %h1, %h1;", "set.lt.f32.f16 %f1, %h1, %h1;",
    "set.lt.ftz.u32.u32 %r3, %r1, %r1;",
    "cvt.f16.f32 %h1, %f1;", "cvt.rn.f64.f32 %d5, %f1;", "cvt.rz.f32.f16 %f1, %h1;",
    "cvt.rn.f32.f32 %f1, %f1;", "cvt.rn.ftz.f64.s32 %d5, %r1;", "cvt.rzi.u8.bf16 %h1, %h1;",
    "cvt.rn.sat.bf16.f32 %h1, %f1;", "cvt.sat.s32.u16 %r3, %h1;", "cvt.sat.u32.u32 %r3, %r1;",
    "cvt.rna.relu.tf32.f32 %r3, %f1;", "add.ftz.bf16 %h1, %h1, %h1;",
    "selp.f16 %h1, %h1, %h1, %p1;",
    "mov.b32 {%r3, %r3, %r3, %r3, %r3, %r3, %r3, %r3}, %r1;", "mov.b16 {%r3, %r3, %r3, %r3}, 1;",
    "brx;", "elect;", "elect %r3;", "ldmatrix;", "stmatrix;", "createpolicy;", "cvta;",
    "cvta %d5, %d4;", "isspacep;", "isspacep %p1, %d4;", "bra.foo;", "createpolicy %d5;",
    "cvt.f16.f32 %h1, %f1;", "cvt.bf16.f32 %h1, %f1;", "cvt.f32.u32 %f1, %r1;",
    "cvt.u32.f32 %r3, %f1;", "cvt.rn.f32.f16 %f1, %h1;", "cvt.rn.sat.bf16.f32 %h1, %f1;",
    "cvt.rn.f32.f32 %f1, %f1;", "cvt.rn.ftz.f16.s32 %h1, %r1;", "cvt.rni.u8.bf16 %r3, %h1;",
    "add.f16 %h1, %h1, 0x3c00;", "add.f16 %h1, %h1, 0f3F800000;", "fma.rn.f16x2 %r3, %r1, 1, %r1;",
    "call , ;", "st.param.u64 [memory], %d4;", ".shared .b8 s[08];", ".shared .u32 s = 1;",
)  # fmt: skip


def test_malformed_instructions_are_refused_with_their_line():
    for text in MALFORMED:
        with pytest.raises(PtxError) as found:
            of_a_warp(f"\n  {text}")
        message = str(found.value)
        assert message.startswith("line 13: "), text
        assert "\n" not in message
        assert " ".join(text.rstrip(";").split()) in message


# As ptxas takes them: bits agree with every type, and conversions and loads fill wider registers.
WELL_FORMED = (
    "mov.b32 %r3, 0f3F800000;", "mov.b32 %f1, %r1;", "mov.f32 %f1, %r1;",
    "add.rn.f32 %f1, %r1, %f1;",
    "and.b32 %r3, %r1, %f1;", "selp.f32 %f1, %r1, %r1, %p1;", "mov.b64 %d5, {%r1, %f1};",
    "cvt.u64.u32 %d5, %d4;", "cvt.u16.u32 %r3, %r1;", "ld.global.u8 %r3, [%d4];",
    "ld.global.f32 %r3, [%d4];", "st.global.u8 [%d4], %d4;", "mov.b32 %r3, -1;",
    "shfl.sync.idx.b32 %f1, %f1, 0, 31, -1;", "bar.sync %r2;", "lop3.b32 %r3, %r1, %r1, %r1, 0xFF;",
    "{ .reg .b32 %r; .reg .b32 %r<2>; mov.b32 %r, %r1; }", "add.f32 %f1, %f1, 1.5;",
)  # fmt: skip
USES_X = ".entry run() {.reg .b64 %d; mov.u64 %d, x; ret;}"
MODULES = {
    ".visible .entry run() { ret; }\n.entry run() { ret; }": "line 5: .entry run: the module has",
    ".target sm_90": "line 4: .target sm_90: a module has one .target, such as",
    ".global .u32 x;\n.global .u64 x;": "line 5: .global .u64 x: x is in line 4, too",
    ".entry run() { L: ret;\nL: ret; }": "line 5: L:: this label is there twice",
    ".entry run() { ret }\n.entry walk() { ret; }": "line 4: ret: no ';' follows",
    f".global .f16 x = 1.0;\n{USES_X}": "line 4: x: initial",
    f".global .f32 x = 1;\n{USES_X}": "line 4: x: initial",
    f"{USES_X}\n.global .u32 x;": "line 4: mov.u64 %d, x: x is declared later, in line 5",
    f".global .u64 x = y;\n.global .u32 y;\n{USES_X}": "line 4: x: initial value 'y'",
    f".global .u64 x = x;\n{USES_X}": "line 4: x: initial value 'x'",
    ".entry run() { call f; ret; }\n.func f() { ret; }": "line 4: call f: f is declared later, in",
    ".entry run() {.reg .u32 %r; brx.idx %r, T;\nT: .branchtargets L; L: ret; }": "T is declared",
    ".entry run() .maxntid 32 45 { ret; }": "line 4: .maxntid 32 45: '32 45' is not a number",
    ".entry run() .reqntid\n{ ret; }": "line 4: .reqntid: '' is not a number",
    ".entry run() .maxntid 1, 0 { ret; }": "line 4: .maxntid 1, 0: give one to three",
    ".global .align 3 .u32 x;": "line 4: .global .align 3 .u32 x: the number of .align",
    ".entry run() {\n mov.b64 {%r1, ;\n } ret; }": "line 5: mov.b64 {%r1,: its braces",
    ".entry run() { T: .branchtargets {A;\n }\n }": "line 5: }: no brace opens this one",
    "\f\n.entry r\u00fcn() { ret; }": r"line 5: '\\xfc': PTX has ASCII characters alone",
    ".func g() { ret; }\n.func f() { ret; }\n.alias g, f;": "line 6: .alias g, f;: the module has",
    ".entry run() { ret; }\n.func g();\n.alias g, run;": "line 6: .* has no function run",
    ".entry run() {\n ret;\x00 }": r"line 5: '\\x00': PTX has",
}
HEADS = {
    ("sm_90", "foo"): "line 2: .target foo: a module has one .target, such as .target sm_90",
    ("9.0", "x"): "line 1: .version x: a module has one .version",
    ("64", "32"): "addresses are of 32 bits",
    ("size 64", "size"): "line 3: .address_size: a module has one .address_size",
}


def test_well_formed_instructions_of_all_types():
    of_a_warp("\n".join(WELL_FORMED))


def test_what_is_declared_again_later_is_known_from_its_first_line():
    text = f".extern .global .u64 x;\n.func f();\n{USES_X.replace('ret', 'call f; ret')}"
    Module(f"{HEADER}{text}\n.visible .global .u64 x;\n.func f() {{ ret; }}")["run"][1, 1]()


def test_malformed_modules_are_refused_with_their_line():
    heads = {HEADER.replace(*change): words for change, words in HEADS.items()}
    for text, words in ({HEADER + text: words for text, words in MODULES.items()} | heads).items():
        with pytest.raises(PtxError, match=words):
            Module(text)["run"][1, 1]()


OTHERS = """.pragma "nounroll"; .global .attribute(.unified(19,95)) .u32 count;
.func f() { .reg .b32 %r<1>; st.global.u32 [count], 3; ret; }
.global .u64 table[2] = {0, f}; .global .u64 tables[1] = {table};
.global .align 4 .u32 rows[2][3] = {{1}, {4, 5}};
.const .v2 .u32 pairs[] = {{6, 7}, {8, 9}}; .global .texref picture; .func g(); .alias g, f;
.entry textures(.param .texref t, .param .u64 .ptr .surfref s) { tex.1d.v4.f32.s32 {a}, [t]; ret; }
.entry clusters() .reqnctapercluster 2, 1, 1 { ret; }
.entry calls() { P: .callprototype (.param .b32 _) _ (); ret; }
.entry names(.param .u64 out) { .reg .b64 %d<2>; mov.u64 %d1, tables; ret; }
"""
READ = """.visible .entry run(.param .u64 out) {
  .reg .b64 %d<2>; .reg .b32 %r<9>; ld.param.u64 %d1, [out];
  call g, (); ld.global.u32 %r0, [count]; ld.global.u32 %r1, [rows+4]; ld.global.u32 %r2, [rows+12];
  ld.global.u32 %r3, [rows+16]; ld.const.v2.u32 {%r4, %r5}, [pairs+8];
  st.global.v4.u32 [%d1], {%r0, %r1, %r2, %r3}; st.global.v2.u32 [%d1+16], {%r4, %r5}; ret; }
"""


def test_other_kernels_of_a_module_may_have_what_is_refused():
    """Each is refused when it is launched; rows of initial values have their places."""
    module, out = Module(HEADER + OTHERS + READ), np.zeros(6, np.uint32)
    module["run"][1, 1](out)
    assert out.tolist() == [3, 0, 4, 5, 8, 9]
    refused = {
        "textures": "line 9: tex.1d",
        "clusters": "line 10: .*.reqnctapercluster is not supported",
        "calls": "line 11: .*.callprototype is not supported",
        "names": "line 6: table: initial value 'f' is not supported",
    }
    for name, words in refused.items():
        with pytest.raises(PtxError, match=words):
            module[name][1, 1](*[out] * {"names": 1, "textures": 2}.get(name, 0))


def test_what_only_the_compiler_of_the_translation_finds():
    """The last net: its error is that of a line, too."""
    text = program("add.s32", ("u32",) * 3)
    kernel = Module(text)["run"]
    made = kernel.translated
    kernel.__dict__["translated"] = replace(
        made, source=made.source.replace("add<s32>", "mad<s32>")
    )
    with pytest.raises(PtxError, match="^line 18: add.s32 .*: this form is not supported, as its"):
        kernel[1, 1](*[np.zeros(1, np.uint64)] * 3)


@pytest.mark.parametrize("given", ["a", 1.5, 0, (1, 1, 1, 1), (), None, -1])
def test_wrong_grids(given):
    kernel = Module(program("add.s32", ("u32",) * 3))["run"]
    with pytest.raises(LaunchError, match="give one to three whole numbers above 0"):
        kernel[given, 1]
    with pytest.raises(LaunchError, match="shared is 'a'; give a number of bytes"):
        kernel[1, 1, "a"]


@pytest.mark.parametrize(
    "given", [{"workers": -1}, {"workers": 0}, {"workers": 1.5}, {"filling": 256}, {"order": "a"}]
)
def test_wrong_schedules(given):
    ((name, value),) = given.items()
    with pytest.raises(CudaError, match=f"{name} is {value!r}; give a whole number from"):
        Schedule(**given)


ADDED = """st.shared.b32 [shared], 1; mov.u64 %d5, shared; cvta.shared.u64 %d5, %d5;
  setp.eq.u32 %p1, %r1, 0; @!%p1 bra END;
  red.shared.add.f32 [shared], 0f00000001; red.add.f32 [%d5], 0f00000001;
  red.add.f32 [%d4+4], 0f80000001; red.global.add.f32 [%d4], 0f00000001;
  ld.volatile.shared.b32 %r2, [shared]; END:"""


def test_sums_in_global_memory_are_flushed():
    """As the programming guide has it: FADD.FTZ in global memory, and FADD in shared memory."""
    memory = np.array([3, 0x80000003, 0, 0, 0, 0, 0, 0], np.uint32)
    out, memory = of_a_warp(
        ADDED.replace("st.shared", "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared"), memory
    )
    assert out[0] == 3
    assert memory[:2].tolist() == [0, 0x80000000]
