"""Our kernels as NVRTC compiles them, and kernels with faults, run from their PTX on a CPU."""

import numpy as np
import pytest
from extras import imported, needs
from kernels import needed, suites
from ptx_programs import HEADER

from mor_ref.cuda import nvrtc
from mor_ref.ptx import LaunchError, Module, PtxError
from mor_ref.ptx.device import compiled, device_for
from mor_ref.verify.candidates.by_name import candidate_named
from mor_ref.verify.candidates.candidate import CandidateError


@pytest.fixture(scope="module", autouse=True)
def _compilers():
    needed.compiler()
    needed.library()


USUAL = {("scale_steps", "sm_90"), ("mx", "sm_90"), ("decisions", "sm_90")}
# The architecture of the tier full for the suites of an operation: those of one program share it,
# also with test_kernel_work.py, because to compile takes longer than to run.
OPERATIONS = {
    "sm_80": ("dot", "levels", "matmul"),
    "sm_90": ("affine", "decisions", "error", "policies", "quantize", "scale"),
    "sm_100": ("decode", "encode", "mx", "nvfp4", "shared"),
    "sm_120": ("acceptance", "fp8lm", "mixed", "selections", "unit"),
}
MANY = 350  # cases; of a suite with more, the tier full has a sample


def suites_by_architecture():
    """Yield each suite on each: one is of the tier full, and all are of the tier exhaustive.

    Suites of large tensors are of the tier exhaustive: others have all that their kernels do.
    """
    for suite, entry in suites.manifest().items():
        for architecture, operations in OPERATIONS.items():
            name = f"{suite}-{architecture}"
            is_full = suite.split("_")[0] in operations and not suite.endswith("_large")
            is_sampled = is_full and len(entry["cases"]) > MANY
            if is_sampled:
                full = pytest.mark.tier("full")
                yield pytest.param(suite, architecture, 3, marks=full, id=f"{name}-sample")
            tier = pytest.mark.tier("full" if is_full and not is_sampled else "exhaustive")
            marks = () if (suite, architecture) in USUAL else tier
            yield pytest.param(suite, architecture, 1, marks=marks, id=name)


@pytest.mark.tier("full", but=["[scale_steps-sm_90]"])
@pytest.mark.parametrize(("suite", "architecture", "every"), [*suites_by_architecture()])
def test_suites(suite, architecture, every):
    """Every field that kernels give, from the instructions that a GPU gets."""
    chosen = suites.sample(suite, every)
    found, compared = suites.wrong(device_for(architecture), suite, only=chosen)
    assert found == []
    assert compared >= len(chosen)


def test_every_operation_has_one_architecture():
    chosen = [operation for operations in OPERATIONS.values() for operation in operations]
    assert sorted(chosen) == sorted({suite.split("_")[0] for suite in suites.manifest()})


def test_the_candidate_is_known_by_its_architecture():
    assert candidate_named("cuda-ptx").name == "cuda-ptx"
    with pytest.raises(PtxError, match="architecture is 'sm_1'; NVRTC compiles for sm_"):
        compiled("scales", "sm_1")
    with pytest.raises(PtxError, match="architecture is 'gfx90a'; NVRTC compiles for sm_"):
        device_for("gfx90a")
    for name, words in (
        ("cuda-ptx:", "candidate is 'cuda-ptx:'; name an architecture, such as cuda-ptx:sm_90"),
        ("cuda-ptx:sm_12", "architecture is 'sm_12'; NVRTC compiles for sm_"),
        ("cuda-ptx:sm_90a", "architecture is 'sm_90a'; NVRTC compiles for .*sm_80.*sm_90, "),
    ):
        with pytest.raises((CandidateError, ValueError), match=words):
            candidate_named(name)


# ---------------------------------------------------------------------- faults

SUM = """
.visible .entry run(.param .u64 x, .param .u64 out) {
  .reg .pred %p<3>; .reg .f32 %f<4>; .reg .b32 %r<8>; .reg .b64 %d<8>;
  .shared .align 4 .b8 all[256];
  ld.param.u64 %d1, [x];
  ld.param.u64 %d2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %d3, %r1, 4;
  add.s64 %d4, %d1, %d3;
  ld.global.f32 %f1, [%d4];
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, all;
  add.s32 %r4, %r3, %r2;
  st.shared.f32 [%r4], %f1;
  bar.sync 0;
  xor.b32 %r5, %r2, 128;
  add.s32 %r6, %r3, %r5;
  ld.shared.f32 %f2, [%r6];
  add.rn.f32 %f3, %f1, %f2;
  add.s64 %d5, %d2, %d3;
  st.global.f32 [%d5], %f3;
  ret;
}
"""


def launch(text, x=None, out=None, block=64):
    x = np.arange(64, dtype=np.float32) if x is None else x
    out = np.zeros(64, np.float32) if out is None else out
    Module(HEADER + text)["run"][1, block](x, out)
    return out


def test_a_block_with_a_barrier():
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(launch(SUM), x + np.roll(x, 32))


def wrong(old, new):
    assert SUM.count(old) == 1
    return SUM.replace(old, new)


FAULTS = {
    "a barrier is removed": (
        wrong("bar.sync 0;", ""),
        r"shared\.f32 .* a race: (thread|warp) \d+ .* in line \d+, and no barrier lies between",
    ),
    "an index is off by one": (wrong("[%d4]", "[%d4+4]"), "it is outside of all arrays"),
    "a store is off by one": (wrong("st.global.f32 [%d5]", "st.global.f32 [%d5+4]"), "outside of"),
    "shared memory ends": (wrong("all[256]", "all[192]"), "outside of"),
    "an address is odd": (wrong("[%d4]", "[%d4+2]"), "its address is misaligned"),
    "half of the threads that are counted end before": (
        wrong("bar.sync 0;", "setp.gt.u32 %p1, %r1, 31;\n  @%p1 ret;\n  bar.sync 0, 64;"),
        "threads",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_reported_with_their_line(fault):
    text, words = FAULTS[fault]
    with pytest.raises(LaunchError, match=rf"kernel run: line \d+: .*{words}"):
        launch(text)


def test_threads_of_a_warp_that_write_the_same():
    """One of them writes, so their value has to be the same; so has that of another warp."""
    text = wrong("add.s32 %r4, %r3, %r2;", "shr.u32 %r7, %r1, 5; mad.lo.s32 %r4, %r7, 4, %r3;")
    text = text.replace("xor.b32 %r5, %r2, 128;", "mov.u32 %r5, 4;")
    same = text.replace("st.shared.f32 [%r4], %f1;", "st.shared.u32 [%r4], %r7;")
    np.testing.assert_array_equal(launch(same).view(np.uint32)[:2], [1, 0x3F800000])
    with pytest.raises(LaunchError, match="a race: thread"):
        launch(text)
    with pytest.raises(LaunchError, match="a race: warp"):
        launch(same.replace("mad.lo.s32 %r4, %r7, 4, %r3;", "mov.u32 %r4, %r3;"))


def test_memory_that_may_only_be_read():
    out = np.zeros(64, np.float32)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="it writes to memory that may only be read"):
        launch(SUM, out=out)
    assert not out.any()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;", "not supported"),
        ("div.full.f32 %f1, %f2, %f3;", "leaves its bits open; use div.rn .*; to run it, give"),
        ("ex2.approx.f32 %f1, %f2;", "PTX bounds its error by 2 ulp"),
        ("ex2.approx.ftz.bf16 %f1, %f2;", "PTX only bounds its error, .*no model of it runs here"),
        ("add.s32 %r1, %r2;", "it has 2 operands"),
    ],
)
def test_other_instructions_are_refused_with_their_line(text, words):
    with pytest.raises(PtxError, match=rf"line 14: {text.split()[0]} .*{words}"):
        launch(wrong("shl.b32 %r2, %r1, 2;", text))


def test_wrong_launches():
    module = Module(HEADER + SUM)
    x = np.zeros(64, np.float32)
    for call, words in (
        (lambda: module["walk"], "the module has no kernel 'walk'; it has run"),
        (lambda: module["run"][1], r"a launch is kernel\[grid, block\]"),
        (lambda: module["run"][1, 64](x), "kernel run takes 2 arguments: got 1"),
        (lambda: module["run"][1, 0](x, x), "block is 0; give one to three whole numbers above 0"),
        (lambda: module["run"][1, 64](x, [1.0]), "out is a list; give a NumPy array"),
        (lambda: module["run"][1, 64](x, np.zeros((64, 2))[:, 0]), "is not in C order"),
        (lambda: module["run"][1, 64](x, np.zeros(64, object)), "out has Python objects"),
        (lambda: module["run"][1, 64](x, np.zeros(1, "O,i8")[0]), "out has Python objects"),
        (
            lambda: module["run"][1, 64](x, x, memory=5),
            "memory is a int; give a sequence of arrays",
        ),
        (lambda: module["run"][1, (1, 1, 65)](x, x), r"block is \(1, 1, 65\); a GPU takes at most"),
        (lambda: module["run"][(1, 1 << 16), 64](x, x), "grid is .*; a GPU takes at most .* 65535"),
        (lambda: Module(HEADER + SUM, seed="x"), "seed is 'x'; give a whole number"),
        (lambda: Module(HEADER + SUM, schedule=5), "schedule is 5; give a mor_ref.ptx.Schedule"),
        (lambda: Module(HEADER + ".entry f(.param .f32 x) { ret; }")["f"][1, 1](1e300), "not fit"),
    ):
        with pytest.raises((PtxError, LaunchError), match=words):
            call()


OPTIONS = {"fused": "--fmad=true", "flushed": "--ftz=true"}


@pytest.mark.parametrize("option", OPTIONS)
def test_options_that_change_bits_are_found(option):
    """A fused multiply-add and flushed subnormals show in the result, as on a GPU."""
    source = (
        'extern "C" __global__ void run(const float* x, float* out) {'
        " int i = threadIdx.x; out[i] = x[i] * x[i] + x[63 - i]; }"
    )
    x = np.linspace(1, 2, 64).astype(np.float32)
    x[:4] *= np.float32(2.0**-125)
    x[60:] *= np.float32(2.0**-127)
    options = [each for each in nvrtc.ARITHMETIC if each.split("=")[0] not in OPTIONS[option]]
    wanted = x * x + x[::-1]
    for given, is_equal in ((nvrtc.ARITHMETIC, True), ((*options, OPTIONS[option]), False)):
        text = nvrtc.compiled(source, "compute_90", "run", given).ptx
        out = np.zeros(64, np.float32)
        Module(text)["run"][1, 64](x, out)
        assert np.array_equal(out, wanted) == is_equal


# ---------------------------------------------------------------------- warps and atomics

LANES = np.arange(32)
OTHERS = {
    "shfl.sync.up.b32 %r2, %r1, 3, 0, 0xffffffff": np.where(LANES < 3, LANES, LANES - 3),
    "shfl.sync.down.b32 %r2, %r1, 3, 31, 0xffffffff": np.where(LANES > 28, LANES, LANES + 3),
    "shfl.sync.bfly.b32 %r2, %r1, 5, 31, 0xffffffff": LANES ^ 5,
    "shfl.sync.idx.b32 %r2, %r1, 9, 31, 0xffffffff": np.full(32, 9),
    "shfl.sync.idx.b32 %r2, %r1, 1, 0x1807, 0xffffffff": LANES & 24 | 1,
}
WARPS = {
    "vote.sync.ballot.b32 %r2, %p1, 0xffffffff": 0xAAAAAAAA,
    "redux.sync.add.s32 %r2, %r1, 0xffffffff": 31 * 16,
    "redux.sync.max.u32 %r2, %r1, 0xffffffff": 31,
    "redux.sync.xor.b32 %r2, %r1, 0xffffffff": 0,
    "match.any.sync.b32 %r2, %r3, 0xffffffff": np.where(LANES & 1, 0xAAAAAAAA, 0x55555555),
    "set.lt.u32.u32 %r2, %r1, 7": np.where(LANES < 7, 0xFFFFFFFF, 0),
    "mov.b32 %r2, %lanemask_lt": (1 << LANES) - 1,
}
OF_PREDICATES = {
    "vote.sync.all.pred %p2, %p1, 0xffffffff": 0,
    "vote.sync.any.pred %p2, %p1, 0xffffffff": 1,
    "vote.sync.uni.pred %p2, %p1, 0xffffffff": 0,
    "bar.red.or.pred %p2, 0, %p1": 1,
    "bar.red.and.pred %p2, 0, %p1": 0,
    "match.all.sync.b32 %r4|%p2, %r3, 0xffffffff": 0,
}
ATOMICS = {
    "add.u32": sum(range(32)),
    "max.u32": 31,
    "min.u32": 0,
    "or.b32": 31,
    "exch.b32": 31,
    "inc.u32": 31,
    "add.f32": sum(range(32)),
    "add.f64": sum(range(32)),
}


def of_a_warp(text, functions=""):
    """Run lines on 32 threads: %r1 is the lane, %p1 whether it is odd, and %r2 goes out."""
    body = f"""
.visible .entry run(.param .u64 out, .param .u64 memory) {{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .f32 %f<3>; .reg .f64 %e<3>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [out];
  ld.param.u64 %d4, [memory];
  mov.u32 %r1, %laneid;
  and.b32 %r3, %r1, 1;
  setp.eq.u32 %p1, %r3, 1;
  mov.u32 %r2, 0;
  {text}
  mul.wide.u32 %d2, %r1, 4;
  add.s64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r2;
  ret;
}}
"""
    out, memory = np.zeros(32, np.uint32), np.zeros(1, np.uint64)
    Module(HEADER + functions + body)["run"][1, 32](out, memory)
    return out, memory


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize("line", OTHERS | WARPS)
def test_functions_of_warps(line):
    np.testing.assert_array_equal(of_a_warp(f"{line};")[0], (OTHERS | WARPS)[line])


@pytest.mark.parametrize("line", OF_PREDICATES)
def test_questions_to_all_threads(line):
    found, _ = of_a_warp(f"{line};\n  selp.u32 %r2, 1, 0, %p2;")
    assert set(found.tolist()) == {OF_PREDICATES[line]}


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize("operation", ATOMICS)
def test_atomics(operation):
    """Of the lanes in ascending order; each finds one less than its number for inc."""
    letter, width = operation[-3], operation[-2:]
    values = {"f32": "cvt.rn.f32.u32 %f1, %r1; ", "f64": "cvt.rn.f64.u32 %e1, %r1; "}
    register = {"f32": "%f1", "f64": "%e1"}.get(letter + width, "%r1")
    made = values.get(letter + width, "")
    _, memory = of_a_warp(f"{made}red.global.{operation} [%d4], {register};")
    dtype = {"f32": np.float32, "f64": np.float64}.get(letter + width, np.uint32)
    assert memory.view(dtype)[0] == ATOMICS[operation]


def test_branches_by_a_table_and_calls():
    """A lane's branch is that of its number modulo 4; a function doubles it."""
    function = """
.func (.param .b32 twice) double_it(.param .b32 x) {
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  shl.b32 %r2, %r1, 1;
  st.param.b32 [twice], %r2;
  ret;
}
"""
    text = """
  and.b32 %r4, %r1, 3;
  ways: .branchtargets A, B, C, C;
  brx.idx %r4, ways;
  A: mov.u32 %r2, 7; bra DONE;
  B: mov.u32 %r2, 9; bra DONE;
  C: mov.u32 %r2, 11;
  DONE:
  { .param .b32 given; .param .b32 taken;
    st.param.b32 [given], %r2;
    call.uni (taken), double_it, (given);
    ld.param.b32 %r2, [taken]; }
"""
    found, _ = of_a_warp(text, function)
    assert found.tolist() == [[14, 18, 22, 22][lane & 3] for lane in range(32)]


def test_calls_without_an_end():
    text = f"{HEADER}.func f() {{\n.local .b8 own[9000];\ncall f;\nret; }}\n"
    with pytest.raises(LaunchError, match=r"line 6: call f; its calls need more memory than a"):
        Module(f"{text}.visible .entry run() {{\ncall f;\nret; }}")["run"][1, 1]()


def test_a_text_is_a_str():
    with pytest.raises(PtxError, match="text is a bytes; give the text of a module as str"):
        Module(HEADER.encode())


@needs("torch")
def test_tensors_whose_dtype_numpy_lacks():
    torch = imported("torch")
    text = f"""{HEADER}.visible .entry run(.param .u64 x) {{
      .reg .b16 %h<3>; .reg .b64 %d<2>; ld.param.u64 %d1, [x]; ld.global.b16 %h1, [%d1];
      add.rn.bf16 %h2, %h1, %h1; st.global.b16 [%d1], %h2; ret; }}"""
    x = torch.tensor([1.5, 3], dtype=torch.bfloat16, requires_grad=True)
    Module(text)["run"][1, 1](x)
    assert x.tolist() == [3, 3]
