"""The kernels as NVRTC compiles them, for all GPUs: nothing fused, flushed or approximate."""

import functools
import re
import zlib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from kernels import needed
from kernels.sources import exported

from mor_ref.cuda import nvrtc, ptx, source
from mor_ref.cuda.cache import cached_file
from mor_ref.cuda.nvrtc import ARITHMETIC, NvrtcError
from mor_ref.ptx import device

ARCHITECTURES = (75, 80, 89, 90, 100, 120)
DIVIDING = {
    "affine", "fp8lm", "fp8lm_state", "levels", "matmul", "mixed", "mx", "nvfp4", "policies",
    "quantization", "scales", "unit_sums",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _nvrtc():
    needed.library()


def ptx_of(program, architecture):
    """Return the PTX of a program; fail if NVRTC warns."""
    unwarned(source.flattened(program), architecture, program)
    return device.compiled(program, f"sm_{architecture}")


@functools.cache
def other_process():
    """Return a process to compile in: in its own, NVRTC optimizes less after `--Ofast-compile`."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def unwarned(text, architecture, name):
    """Return the PTX of a text without optimization, a tenth of the time; fail if NVRTC warns."""
    target = f"compute_{nvrtc.specific(architecture)}"
    options = (*ARITHMETIC, "--Ofast-compile=max")
    found = other_process().submit(nvrtc.compiled, text, target, name, options).result()
    assert "warning" not in found.log
    return found.ptx


def compiled(text, architecture, name, options=ARITHMETIC):
    """Return the PTX of a text; it is cached, because it takes seconds."""
    made_by = nvrtc.version(), Path(nvrtc.__file__).read_text()
    key = source.digest(text, architecture, options, made_by)

    def made():
        found = nvrtc.compiled(text, f"compute_{nvrtc.specific(architecture)}", name, options)
        return zlib.compress(found.ptx.encode())

    return zlib.decompress(cached_file(f"{name}-{key}.ptx.z", made).read_bytes()).decode()


def kernels_in(text):
    return re.findall(r"\.entry (\w+)\(", text)


def programs_by_architecture():
    """Yield each program on each: one of the usual tier, one of each other of the tier full."""
    for number, program in enumerate(source.program_names()):
        for k, architecture in enumerate(ARCHITECTURES):
            tier = "full" if number % len(ARCHITECTURES) == k else "exhaustive"
            marks = pytest.mark.tier(tier)
            if program == "policies":
                marks = () if architecture == 90 else pytest.mark.tier("exhaustive")
            yield pytest.param(program, architecture, marks=marks)


@pytest.mark.tier("full")
@pytest.mark.parametrize(("program", "architecture"), [*programs_by_architecture()])
def test_every_program_is_exact_on_every_gpu(program, architecture):
    """And divides as IEEE 754 has it."""
    if architecture not in nvrtc.architectures():
        pytest.skip(f"this NVRTC does not compile for sm_{architecture}")
    text = ptx_of(program, architecture)
    assert f".target sm_{architecture}" in text
    assert ptx.violations(text) == []
    there = ptx.instructions(text)
    assert ("div.rn.f32" in {one for all_of_it in there.values() for one in all_of_it}) == (
        program in DIVIDING
    )
    assert set(there) == set(kernels_in(text))


@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize("program", source.program_names())
def test_a_program_has_the_kernels_of_its_source(program):
    needed.compiler()
    text = unwarned(source.flattened(program), 90, program)
    assert set(kernels_in(text)) == exported(program)


def test_a_warning_of_nvrtc_fails():
    with pytest.raises(AssertionError, match="was declared but never referenced"):
        unwarned(SMALL.replace("{", "{ int unused;", 1), 90, "small")


# ---------------------------------------------------------------------- refusals

SMALL = """
extern "C" __global__ void kernel(float* a, float b) {
  a[0] = a[1] * b + a[2];
  a[3] = a[4] / b;
  a[5] = sqrtf(a[6]);
}
"""
WRONG_OPTIONS = {
    "fmad": {"fma.rn.f32"},
    "ftz": {"mul.rn.ftz.f32", "add.rn.ftz.f32", "div.rn.ftz.f32", "sqrt.rn.ftz.f32"},
    "prec-div": {"div.full.f32"},
    "prec-sqrt": {"sqrt.approx.f32"},
}


def found_in(text, options=ARITHMETIC, architecture=90):
    found = compiled(text, architecture, "small", options)
    return found, {violation.instruction for violation in ptx.violations(found)}


def test_the_right_options_pass():
    text, found = found_in(SMALL)
    assert found == set()
    ptx.check(text, "small")


def test_one_instruction_of_the_kernels_that_fuse_is_fused():
    """AFF-007: in kernels of that name, and nothing else of the kind."""
    for line in ("a[0] = fmaf(a[1], b, b)", "a[0] = __fmaf_rz(a[1], b, b)"):
        for name in ("affine_fused_f32", "affine_numbers_f32"):
            text = f'extern "C" __global__ void {name}(float* a, float b) {{ {line}; }}'
            _, found = found_in(text)
            is_wrong = "rz" in line or "fused" not in name
            assert len(found) == is_wrong, (line, name)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_wrong_options_are_caught(name, architecture):
    turned = {"true": "false", "false": "true"}
    options = tuple(
        f"--{name}={turned[value]}" if option == f"--{name}" else f"{option}={value}"
        for option, value in (one.split("=") for one in ARITHMETIC)
    )
    assert options != ARITHMETIC
    text, found = found_in(SMALL, options, architecture)
    assert found == WRONG_OPTIONS[name]
    with pytest.raises(ptx.PtxError, match=r"small: kernel kernel holds .*; nothing was loaded"):
        ptx.check(text, "small")


@pytest.mark.parametrize(
    ("statement", "instruction"),
    [
        ("a[0] = fmaf(a[1], b, a[2])", "fma.rn.f32"),
        ("a[0] = __fmaf_rz(a[1], b, a[2])", "fma.rz.f32"),
        ("a[0] = __fadd_rz(a[1], b)", "add.rz.f32"),
        ("a[0] = __fdividef(a[1], b)", "div.approx.f32"),
        ("a[0] = __expf(b)", "ex2.approx.f32"),
        ("a[0] = rsqrtf(b)", "rsqrt.approx.f32"),
        ("a[0] = float(fma(double(a[1]), double(b), 1.0))", "fma.rn.f64"),
        ("atomicAdd(a, b)", "atom.global.add.f32"),
        ("atomicAdd((double*)a, double(b))", "atom.global.add.f64"),
        (
            'asm("{ .reg .f32 t; mul.f32 t, %1, %1; mov.f32 %0, t; }" : "=f"(a[0]) : "f"(b))',
            "mul.f32",
        ),
        ("a[0] = called(a[1], b)", "fma.rn.f32"),
    ],
)
def test_instructions_that_are_caught(statement, instruction):
    """Also those of a function that is not a kernel."""
    text, found = found_in(
        "__device__ __noinline__ float called(float a, float b) { return fmaf(a, b, b); }\n"
        f'extern "C" __global__ void kernel(float* a, float b) {{ {statement}; }}\n'
    )
    assert instruction in found
    if "called" in statement:
        assert {violation.kernel for violation in ptx.violations(text)} != {"kernel"}


WRITTEN = """.version 9.0
.target sm_90
.visible .entry kernel(
  .param .u64 kernel_param_0 // fma.rn.f32
)
.maxntid 256
.pragma "fma.rn.f32";
{{
  .reg .f32 %f<4>;
  mov.u32 %r1, %tid.x;
  {}
  /* fma.rn.f32 */
  ret;
}}
"""
BEHIND = {
    "nothing": "fma.rn.f32 %f1, %f2, %f3, %f1;",
    "a label": "L1: fma.rn.f32 %f1, %f2, %f3, %f1;",
    "a predicate": "@!p fma.rn.f32 %f1, %f2, %f3, %f1;",
    "a brace": "{ .reg .pred p;\n}\nfma.rn.f32 %f1, %f2, %f3, %f1;",
    "a line of the source": ".loc 1 5 3\nfma.rn.f32 %f1, %f2, %f3, %f1;",
    "and with spaces": "fma .rn .f32 %f1, %f2, %f3, %f1;",
}


@pytest.mark.parametrize("place", BEHIND)
def test_an_instruction_is_caught_wherever_it_stands(place):
    text = WRITTEN.format(BEHIND[place])
    assert [found[:2] for found in ptx.violations(text)] == [("kernel", "fma.rn.f32")]


@pytest.mark.parametrize(
    "instruction",
    [
        *(f"cvt.{mode}.{kinds}" for mode in ("rz", "rm", "rp") for kinds in ("f32.f64", "f16.f32")),
        "cvt.rna.tf32.f32",
        "cvt.rn.ftz.f32.f64",
        "cvt.rs.satfinite.e2m1x4.f32",
        "add.f32",
        "add.rn.sat.f32",
        "add.rn.f32x2",
        "fma.rn.bf16x2",
        "min.ftz.f32",
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
        "tcgen05.mma.cta_group::1.kind::f16",
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale",
        "multimem.red.relaxed.sys.global.add.f32",
        "red.global.v2.f32.add",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
        "atom.global.add.noftz.f16x2",
        "tanh.approx.f16",
        "rcp.rz.f32",
    ],
)
def test_what_is_not_known_to_be_exact_is_caught(instruction):
    text = WRITTEN.format(f"{instruction} %f1, %f2, %f3;")
    assert [found.instruction for found in ptx.violations(text)] == [instruction]


@pytest.mark.parametrize(
    "instruction",
    ["add.rn.f32", "mul.rn.f64", "cvt.f64.f32", "cvt.rn.f32.f64", "ld.global.nc.v4.f32",
     "setp.leu.f32", "atom.global.add.u64", "mov.b32", "cvt.u32.u16",
     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64",
     "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"],
)  # fmt: skip
def test_what_is_exact_passes(instruction):
    assert ptx.violations(WRITTEN.format(f"{instruction} %f1, %f2, %f3;")) == []


def test_sums_of_a_type_that_is_not_named_are_refused():
    """It is in a tensor map, which is made as the program runs."""
    adding = "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group"
    with pytest.raises(ptx.PtxError, match="holds cp.reduce.*, and it does not name the type"):
        ptx.check(WRITTEN.format(f"{adding} [%rd1, {{%r1}}], [%r2];"), "small")


def test_what_cannot_be_checked_is_refused():
    ptx.check(WRITTEN.format(""), "small")
    for text in ("", ".version 9.0\n.target sm_90\n", "// .entry kernel()"):
        with pytest.raises(ptx.PtxError, match="small: its PTX has no kernel that could be check"):
            ptx.check(text, "small")
    called = ".extern .func (.param .b32 result) called\n(\n.param .b32 x\n);\n"
    with pytest.raises(ptx.PtxError, match="small: its PTX calls called, which may be another"):
        ptx.check(called + WRITTEN.format(""), "small")


def test_a_product_that_does_not_say_how_it_is_rounded_is_caught():
    """In a kernel of this package; as they are, not even a wrong option lets anything be fused."""
    fused = ("--fmad=true",)
    assert found_in(source.flattened("scales"), fused)[1] == set()
    text, exact = source.flattened("quantization"), "__fmul_rn(number(x[k]), scale)"
    assert text.count(exact) == 1
    plain = text.replace(exact, "number(x[k]) * scale")
    assert found_in(plain)[1] == set()
    assert found_in(plain, fused)[1] == {"mul.f32"}


# ---------------------------------------------------------------------- the compiler


def test_a_source_that_does_not_compile():
    with pytest.raises(
        NvrtcError, match=r"NVRTC cannot compile broken for sm_90 \(.*\): broken.cu"
    ):
        nvrtc.compiled("not CUDA", "sm_90", "broken")


def test_an_architecture_that_is_not_there():
    with pytest.raises(NvrtcError, match="NVRTC cannot compile small for sm_1"):
        nvrtc.compiled(SMALL, "sm_1", "small")


@pytest.mark.tier("full")
def test_a_program_for_one_gpu():
    found = nvrtc.compiled(source.flattened("scales"), "sm_90", "scales")
    assert found.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("scales.cu", "mantissas[group_of(cut, i)]", "mistaken[group_of(cut, i)]"),
        ("scales.cuh", "own.exponent > 127 ?", "own.mistaken > 127 ?"),
        ("prelude.cuh", "typedef long long i64;", "typedef mistaken i64;"),
    ],
)
def test_errors_are_at_the_lines_of_the_files(file, right, wrong):
    """NVRTC is given one text, of all of them."""
    lines = (source.KERNELS / file).read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if right in text)
    broken = source.flattened("scales").replace(right, wrong)
    with pytest.raises(NvrtcError, match=rf"\): {file}\({line}\): error: .*mistaken"):
        nvrtc.compiled(broken, "compute_90", "scales")
