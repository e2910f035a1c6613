"""Our kernels as NVRTC compiles them, and kernels with faults, run from their PTX on a CPU."""

import numpy as np
import pytest
from kernels import needed, suites
from ptx_programs import HEADER

from mor_ref.cuda import nvrtc
from mor_ref.cuda.unavailable import CudaError
from mor_ref.ptx import LaunchError, Module, PtxError
from mor_ref.ptx.device import compiled, device_for
from mor_ref.verify.candidates.by_name import candidate_named


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()
    try:
        nvrtc.library()
    except CudaError as error:
        pytest.skip(str(error))


@pytest.mark.tier("full", but=["[scale_steps-sm_90]", "[mx-sm_90]", "[decisions-sm_90]"])
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("suite", suites.manifest())
def test_suites(suite, architecture):
    """Every field that kernels give, from the instructions that a GPU gets."""
    found, compared = suites.wrong(device_for(architecture), suite, suites.copied)
    assert found == []
    assert compared >= len(suites.cases(suite))


def test_the_candidate_is_known_by_its_architecture():
    assert candidate_named("cuda-ptx").name == "cuda-ptx"
    with pytest.raises(PtxError, match="NVRTC does not compile for sm_1; it compiles for sm_"):
        compiled("scales", "sm_1")
    with pytest.raises(PtxError, match="architecture is 'gfx90a'; give sm_80"):
        device_for("gfx90a")


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
    "half of the threads end before": (
        wrong("bar.sync 0;", "setp.gt.u32 %p1, %r1, 31;\n  @%p1 ret;\n  bar.sync 0;"),
        "threads",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_reported_with_their_line(fault):
    text, words = FAULTS[fault]
    with pytest.raises(LaunchError, match=rf"kernel run: line \d+: .*{words}"):
        launch(text)


def test_memory_that_may_only_be_read():
    out = np.zeros(64, np.float32)
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="it writes to memory that may only be read"):
        launch(SUM, out=out)
    assert not out.any()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 %r1, %r2, %r3, %r4;", "not supported"),
        ("div.full.f32 %f1, %f2, %f3;", "PTX only bounds its error, .*; use div.rn"),
        ("ex2.approx.f32 %f1, %f2;", "PTX only bounds its error"),
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
        (lambda: module["run"][1, 0](x, x), "block is 0; give one to three numbers above 0"),
        (lambda: module["run"][1, 64](x, [1.0]), "out is a list; give a NumPy array"),
        (lambda: module["run"][1, 64](x, np.zeros((64, 2))[:, 0]), "is not in C order"),
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
