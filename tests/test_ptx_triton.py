"""Kernels as Triton compiles them, run from their PTX on a CPU."""

import importlib
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from extras import needs
from kernels import needed
from pages import blocks_of

import mor_ref
from mor_ref import golden
from mor_ref.ptx import LaunchError, Module

pytestmark = needs("triton", "torch")
PAGE = Path(__file__).parent.parent / "docs" / "guide" / "verify-triton.md"
OTHERS = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def total(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.sum(x, axis=0))


@triton.jit
def powers(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.exp2(tl.load(x_ptr + at)))


@triton.jit
def halves(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, tl.maximum(x * x - x, 0.0).to(tl.float8e5))


@triton.jit
def beyond(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at + 1))


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr
):
    m, n, c = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.zeros((M, N), tl.float32)
    for first in range(0, K, STEP):
        k = first + tl.arange(0, STEP)
        a = tl.load(a_ptr + m * K + k[None, :])
        b = tl.load(b_ptr + n * K + k[:, None])
        c = tl.dot(a, b, c)
    tl.store(c_ptr + m * N + n, c)


def compiled_product(kind, capability, warps):
    types = {f"{name}_ptr": f"*{kind}" for name in "ab"} | {"c_ptr": "*fp32"}
    sides = {"M": 64, "N": 32, "K": 256, "STEP": 64}
    source = ASTSource(product, types | dict.fromkeys(sides, "constexpr"), sides)
    options = {"num_warps": warps, "num_stages": 3, "enable_fp_fusion": False}
    found = triton.compile(source, GPUTarget("cuda", capability, 32), options)
    return found.asm["ptx"], found.metadata.shared


def compiled(name, x, out, size, capability, warps=4, **options):
    types = {"x_ptr": x, "out_ptr": out, "N": "constexpr"}
    source = ASTSource(globals()[name], types, {"N": size})
    options = {"num_warps": warps, "enable_fp_fusion": False, **options}
    found = triton.compile(source, GPUTarget("cuda", capability, 32), options)
    return found.asm["ptx"], found.metadata.shared
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """Return the modules of the guide, and others; Triton reads its kernels from files."""
    needed.compiler()
    where = tmp_path_factory.mktemp("triton")
    files = {block.file: block.text for block in blocks_of(PAGE) if block.file}
    files["others.py"] = OTHERS
    names = "|".join(name.removesuffix(".py") for name in files)
    for name, text in files.items():
        renamed = re.sub(rf"import ({names})\n", r"import of_the_guide_\1 as \1\n", text)
        renamed = re.sub(rf"from ({names}) import", r"from of_the_guide_\1 import", renamed)
        (where / f"of_the_guide_{name}").write_text(renamed)
    with pytest.MonkeyPatch.context() as patch:
        # PTX in the cache names the file that its kernel was first compiled from.
        patch.setenv("TRITON_CACHE_DIR", str(where / "cache"))
        patch.syspath_prepend(str(where))
        yield lambda name: importlib.import_module(f"of_the_guide_{name}")


def case_of(suite, name):
    return next(case for case in golden.load(suite) if case.name == name)


@pytest.mark.tier("full")
def test_the_quantizer_for_e4m3_of_the_guide(modules):
    """Its bits are open, and those of its fix are right."""
    case = case_of("quantize_blocks", "e4m3.fp32")
    inputs = {"x": case.arrays["x"]}
    candidate = modules("kernel").run
    candidate("quantize_block", case.parameters, inputs)
    lines, count = candidate.remarks()
    assert count > 0
    assert "(of_the_guide_kernel.py:19): div.full.f32: PTX bounds its error" in lines[0]
    right = modules("fixed").run
    found = right("quantize_block", case.parameters, inputs)
    assert right.remarks() == ([], 0)
    for field in ("scale", "code"):
        np.testing.assert_array_equal(found[field], case.arrays[field])


@pytest.mark.tier("full")
def test_the_quantizer_for_nvfp4_of_the_guide(modules):
    """It is the profile te_2_13; its fix is te."""
    case = case_of("nvfp4_blocks", "te")
    inputs = {name: case.arrays[name] for name in ("x", "amax")}
    wrong = modules("nvfp4").run("nvfp4_block", case.parameters, inputs)
    assert np.count_nonzero(wrong["code"] != case.arrays["code"]) > 100
    right = modules("nvfp4_fixed").run
    found = right("nvfp4_block", case.parameters, inputs)
    assert right.remarks() == ([], 0)
    for field in ("block_scale", "code"):
        np.testing.assert_array_equal(found[field], case.arrays[field])


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_a_sum_of_several_warps(modules, capability):
    """It has shuffles, shared memory and barriers."""
    text, shared = modules("others").compiled("total", "*i32", "*i32", 1024, capability)
    assert "bar.sync" in text
    x, out = np.arange(1024, dtype=np.int32), np.zeros(1, np.int32)
    Module(text)["total"][1, 128, shared](x, out, np.zeros(1), np.zeros(1))
    assert out == x.sum()


def test_an_exponential_is_named(modules):
    text, _ = modules("others").compiled("powers", "*fp32", "*fp32", 32, 90, warps=1)
    kernel = Module(text, undefined="nearest")["powers"]
    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    kernel[1, 32](x, out, np.zeros(1), np.zeros(1))
    np.testing.assert_array_equal(out, 2.0**x)
    assert "of_the_guide_others.py:" in kernel.undefined[0].source
    assert "ex2.approx" in str(kernel.undefined[0])


@pytest.mark.parametrize("is_fused", [True, False])
def test_arithmetic_in_half_precision(modules, is_fused):
    """Triton contracts a product with a sum, unless it is asked not to."""
    text, _ = modules("others").compiled(
        "halves", "*fp16", "*fp8e5", 128, 90, enable_fp_fusion=is_fused
    )
    x = np.random.default_rng(0).normal(size=128).astype(np.float16)
    out = np.zeros(128, np.uint8)
    Module(text)["halves"][1, 128](x, out, np.zeros(1), np.zeros(1))
    wide = x.astype(np.float64)
    difference = wide * wide - wide if is_fused else (x * x).astype(np.float64) - wide
    wanted = np.maximum(difference.astype(np.float16), 0).astype(ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(out, wanted.view(np.uint8))


PRODUCTS = [
    ("fp16", 80, 4, "ampere_fp16"),
    ("bf16", 80, 2, "ampere_bf16"),
    ("fp32", 80, 4, "ampere_tf32"),
    ("fp8e4nv", 89, 4, "ada_fp8"),
    ("fp8e5", 89, 1, "ada_fp8"),
    ("fp16", 90, 2, "hopper_fp16"),
    ("fp16", 90, 4, "hopper_fp16"),
    ("bf16", 90, 8, "hopper_bf16"),
    ("fp32", 90, 4, "hopper_tf32"),
    ("fp8e4nv", 90, 4, "hopper_fp8"),
    ("bf16", 120, 4, "rtx_blackwell_bf16"),
    ("fp8e4nv", 120, 4, "rtx_blackwell_fp8"),
]
DTYPES = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
    "fp8e5": ml_dtypes.float8_e5m2,
}


@pytest.mark.tier("full", but=["fp8e4nv-89-"])
@pytest.mark.parametrize(("kind", "capability", "warps", "profile"), PRODUCTS)
def test_products_of_matrices(modules, kind, capability, warps, profile):
    """GEM-002: tl.dot is the matmul of the profile of its GPU, bit for bit."""
    text, shared = modules("others").compiled_product(kind, capability, warps)
    assert ("wgmma" if capability == 90 and warps > 2 else "mma.sync") in text
    random = np.random.default_rng(capability)
    a, b = (
        (random.standard_normal(shape) * np.exp2(random.integers(-9, 6, shape))).astype(np.float32)
        for shape in ((64, 256), (32, 256))
    )
    a, b = a.astype(DTYPES[kind]), b.astype(DTYPES[kind])
    c = np.zeros((64, 32), np.float32)
    kernel = Module(text)["product"]
    kernel[1, 32 * warps, shared](a, b, c, np.zeros(1), np.zeros(1))
    found = mor_ref.matmul(a, b.T, profile=profile)
    np.testing.assert_array_equal(c.view(np.uint32), found.view(np.uint32))
    exact = mor_ref.matmul(a, b.T)
    assert np.count_nonzero(c != exact) > 100


def test_a_fault_is_reported_with_its_line_in_the_source(modules):
    text, _ = modules("others").compiled("beyond", "*i32", "*i32", 32, 90, warps=1)
    x, out = np.zeros(32, np.int32), np.zeros(32, np.int32)
    words = (
        r"kernel beyond: line \d+ \(of_the_guide_others.py:\d+\): .* it is outside of all arrays"
    )
    with pytest.raises(LaunchError, match=words):
        Module(text)["beyond"][1, 32](x, out, np.zeros(1), np.zeros(1))
