"""Dot products in the kernels, on a CPU: all profiles, the public functions, and planted faults."""

import re
from functools import partial

import numpy as np
import pytest
from kernels import needed, suites
from kernels.sources import changed
from kernels.stand_in import Array, in_place_of_cupy
from records import bits32
from test_dot_engine import case, exact_rows

import mor_ref
import mor_ref.cuda
from mor_ref.cuda import dot_products as kernels
from mor_ref.cuda.host import Host
from mor_ref.definitions.dot import DOT_PROFILES, DotProfile, operand_format
from mor_ref.golden.inputs.products import Kind, products
from mor_ref.golden.model.suite import Size
from mor_ref.operations import OPERATIONS

SUITES = ("dot_chunks", "dot", "dot_scaled", "dot_integers", "matmul")


@pytest.fixture(scope="module", autouse=True)
def _compiler():
    needed.compiler()


@pytest.fixture
def cupy(monkeypatch):
    """Yield the stand-in for CuPy."""
    with in_place_of_cupy(monkeypatch) as found:
        yield found


def through_kernels(a, b, given):
    """Return the fields of every chunk as the kernels have them."""
    c = np.zeros(len(a), np.uint32) if given["c"] is None else given["c"].view(np.uint32)
    own = None
    if given.get("scales"):
        own = kernels.Scales(
            *given["scales"], operand_format(given["scale_format"]), given["block"]
        )
    pair = np.ascontiguousarray(a), np.ascontiguousarray(b)
    return kernels.dot(Host(), *pair, c, given["profile"], given["formats"], own, keeps=True)


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize("profile", DOT_PROFILES)
def test_the_kernels_are_the_exact_model(profile):
    """DOT-001 to DOT-020: zeros, subnormal numbers, infinities, NaN and sums that cancel."""
    for seed in range(8):
        a, b, given = case(DOT_PROFILES[profile], seed + 100)
        expected = exact_rows(a, b, **given)
        found = through_kernels(a, b, given)
        c = np.zeros(len(a)) if given["c"] is None else given["c"]
        last = [bits32(row[-1].c if row else float(s)) for row, s in zip(expected, c, strict=True)]
        assert found.result.tolist() == last
        assert found.c.tolist() == [[bits32(one.c) for one in row] for row in expected]
        exponent, cut_sum = found.exponent.view(np.int32), found.cut_sum.view(np.int64)
        assert exponent.tolist() == [[one.exponent or 0 for one in row] for row in expected]
        assert cut_sum.tolist() == [[one.cut_sum or 0 for one in row] for row in expected]


def test_numbers_at_the_edges_of_a_fused_operation():
    """DOT-013: far and near addends, ties, sums that cancel, and results below normal numbers."""
    random = np.random.default_rng(2)
    a, b, c = random.integers(0, 1 << 32, (3, 3000), np.uint32)
    near = np.clip(
        (a >> 23 & 255).astype(int) + (b >> 23 & 255) - 127 + random.integers(-50, 51, 3000), 0, 254
    )
    c = np.where(random.random(3000) < 0.8, c & 0x807FFFFF | near.astype(np.uint32) << 23, c)
    with np.errstate(all="ignore"):
        exact = a.view(np.float32).astype(np.float64) * b.view(np.float32).astype(np.float64)
        opposite = (-exact).astype(np.float32).view(np.uint32)
    c = np.where(random.random(3000) < 0.3, opposite, c).astype(np.uint32)
    pair, of = (a[:, None].copy(), b[:, None].copy()), (operand_format("f32"),) * 2
    profile = DOT_PROFILES["f32_fma"]
    given = {"c": c.view(np.float32), "formats": of, "profile": profile}
    found = through_kernels(*pair, given).result
    assert found.tolist() == [bits32(row[-1].c) for row in exact_rows(*pair, **given)]


@pytest.mark.parametrize(
    "profile", ["hopper_bf16", "cdna1_bf16", "cdna2_bf16_1k", "cdna3_bf16", "cdna3_fp8"]
)
def test_products_of_bfloat16_blocks(profile):
    """GEM-003 and GEM-004: in families that the suite has not; cdna3_fp8 upcasts the blocks."""
    parameters = {"dot_profile": profile, "record": "scaled", "scale_block": 24}
    kind = Kind(parameters, ("bf16", "bf16"), ("e4m3",) if profile == "cdna3_fp8" else (), 88)
    arrays = products(kind, Size(seed=5), 0)
    expected, found = (
        run(arrays)["result"].tolist()
        for run in (
            partial(OPERATIONS["matmul"].exact, parameters),
            partial(OPERATIONS["matmul"].cuda, Host(), parameters),
        )
    )
    assert found == expected


# ---------------------------------------------------------------------- the public functions


def on_device(given):
    """Return arguments as arrays on a GPU."""
    found = {**given, "c": None}
    if given["c"] is not None:
        of = np.float16 if given["profile"].start == "f16" else np.float32
        found["c"] = Array(given["c"].astype(of))
    if given.get("scales"):
        found["scales"] = tuple(Array(np.ascontiguousarray(x)) for x in given["scales"])
    return found


@pytest.mark.parametrize(
    "profile",
    ["exact", "hopper_fp8", "hopper_fp8_f16", "blackwell_nvfp4", "switchback", "cdna3_fp8"],
)
def test_the_public_functions_give_what_the_host_gives(cupy, profile):
    """DOT-001 and DOT-003."""
    for seed in range(6):
        a, b, given = case(DOT_PROFILES[profile], seed)
        ours = mor_ref.cuda.dot(Array(a), Array(b), **on_device(given))
        assert ours.get().tobytes() == mor_ref.dot(a, b, **given).tobytes()
        chunks, wanted = (
            mor_ref.cuda.dot_chunks(Array(a), Array(b), **on_device(given)),
            mor_ref.dot_chunks(a, b, **given),
        )
        for name in ("exponent", "cut_sum", "c"):
            one, other = getattr(chunks, name), getattr(wanted, name)
            assert (one is None) == (other is None)
            if other is not None:
                assert (one.shape, one.dtype) == (other.shape, other.dtype)
                assert one.get().tobytes() == other.tobytes()
    assert cupy.launches


@pytest.mark.usefixtures("cupy")
def test_axes_in_front_of_rows():
    """DOT-001."""
    codes = np.random.default_rng(1).integers(0, 120, (2, 3, 40), np.uint8)
    for x in (codes, codes[0, 0], codes[:, :0]):
        ours = mor_ref.cuda.dot(Array(x), Array(x), profile="ada_fp8")
        wanted = mor_ref.dot(x, x, profile="ada_fp8")
        assert (ours.shape, ours.get().tobytes()) == (wanted.shape, wanted.tobytes())


ROWS = Array(np.ones((2, 64), np.uint8))
C = Array(np.ones(2, np.float32))
SCALES = Array(np.ones((2, 2), np.uint8))
REFUSED = [
    (lambda dot: dot(ROWS, np.ones((2, 64), np.uint8)), "b is a ndarray, which lies on the host"),
    (lambda dot: dot(ROWS, C), "b has the shape (2,); give the shape of a, (2, 64)"),
    (lambda dot: dot(ROWS, Array(np.ones((2, 64), np.uint16))), "b has dtype uint16; give uint8"),
    (lambda dot: dot(ROWS, ROWS, formats=("bf16", "e4m3")), "a has dtype uint8; give uint16"),
    (lambda dot: dot(ROWS, ROWS, C, profile="hopper_fp8_f16"), "c has dtype float32; give float16"),
    (lambda dot: dot(ROWS, ROWS, Array(np.ones(3, np.float32))), "c has the shape (3,); give (2,)"),
    (
        lambda dot: dot(ROWS, ROWS, C, formats=("int8", "int8"), profile="int32"),
        "int32 does not add to a given c; leave c out",
    ),
    (lambda dot: dot(ROWS, ROWS, profile="blackwell_mxfp8"), "blackwell_mxfp8 needs scales; give"),
    (
        lambda dot: dot(ROWS, ROWS, scales=(SCALES, C), scale_format="e8m0"),
        "scales[1] has dtype float32; give uint8",
    ),
    (
        lambda dot: dot(ROWS, ROWS, scales=(SCALES, SCALES), scale_format="e8m0", block=16),
        "scales have 2 blocks for 64 products; give scales of blocks of 16",
    ),
    (lambda dot: dot(ROWS, ROWS, profile="hopper"), "profile is 'hopper', which is not known"),
    (lambda dot: dot(ROWS, ROWS, Array(np.ones(2, np.float32), device=1)), "c lies on GPU 1, but"),
]


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused(call, message):
    """DOT-001 and DOT-002."""
    for function in (mor_ref.cuda.dot, mor_ref.cuda.dot_chunks):
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            call(function)


@pytest.mark.usefixtures("cupy")
def test_a_profile_whose_terms_are_too_long_is_refused():
    """DOT-007 and DOT-009."""
    mine = DotProfile("mine", "st_fdpa", ("e4m3",), 8, 13, -133, scales=(("f32", 32),))
    codes, scales = np.ones((2, 64), np.uint8), np.ones((2, 2), np.uint32)
    message = "profile 'mine' is not computed: terms of e4m3 and e4m3 and f32 have 56 bits"
    with pytest.raises(ValueError, match=message):
        mor_ref.dot(codes, codes, scales=(scales, scales), profile=mine)
    with pytest.raises(ValueError, match=message):
        mor_ref.cuda.dot(ROWS, ROWS, scales=(Array(scales), Array(scales)), profile=mine)


# ---------------------------------------------------------------------- planted faults


FAULTS = {
    "terms are shifted down": (
        "dot_terms.cuh", "return whole < 0 ? -size : size;\n}\n\n// DOT-017",
        "return whole < 0 ? -size - 1 : size;\n}\n\n// DOT-017",
    ),
    "a zero has no exponent": (
        "dot_nvidia.cuh", ": rule.zero_exponent;\n  if (!is_finite(c))",
        ": -9999;\n  if (!is_finite(c))",
    ),
    "sums are not cut": (
        "dot_terms.cuh", "to.is_nearest && (rest", "(rest",
    ),
    "ties go up": ("dot_terms.cuh", "(rest == half && (below & 1))", "rest == half"),
    "a small negative sum is -0": (
        "dot_nvidia.cuh", "magnitude_of(found) ? found : 0}", "found}",
    ),
    "zeros of a group count": (
        "dot_nvidia.cuh", "if (is_zero || scales.whole == 0)", "if (scales.whole == 0)",
    ),
    "promoted starts from c": (
        "dot_nvidia.cuh", "u32 partial = 0;\n  for", "u32 partial = c;\n  c = 0;\n  for",
    ),
    "a fused operation loses bits": ("dot_terms.cuh", "found |= 1;", ";"),
    "a pair is added one by one": (
        "dot_amd.cuh", "sum = flushed(__fadd_rn(sum, flushed_pair(of, row, start + 2)));",
        (
            "sum = flushed(__fadd_rn(flushed(__fadd_rn(sum, flushed_product(of, row, start + 2))),"
            " flushed_product(of, row, start + 3)));"
        ),
    ),
    "subnormal operands stay": ("dot_amd.cuh", "< smallest ? 0 : bits", "< -9999 ? 0 : bits"),
    "c is cut toward zero": (
        "dot_amd.cuh", "whole += floored(floored(found.whole, found.unit - largest + bits),",
        "whole += floored(cut(found.whole, found.unit, largest - bits),",
    ),
    "a far c of FP8 counts": ("dot_amd.cuh", "!is_grouped || of_c", "true || of_c"),
    "products do not overflow": ("dot_amd.cuh", "unit_of(one.b) <= 127", "unit_of(one.b) <= 999"),
    "the exact sum loses a carry": ("dot_binary32.cuh", "carry = total >> 32;", "carry = 0;"),
    "the exact sum has no sticky bit": (
        "dot_binary32.cuh", "(is_above || (significand & 1))", "(significand & 1)",
    ),
    "the tree is a chain": (
        "dot_binary32.cuh", "k >> level & 1; level++", "level == 0 && k; level++",
    ),
    "a scale multiplies codes": ("matmul.cu", "__fdiv_rn(1.0f, scale)", "scale"),
    "upcast blocks are scaled": ("matmul.cu", "if (!is_upcast)  ", "if (true)        "),
    "one FP8 block is enough": (
        "matmul.cu", "(both & ~rule.taken) != 0;", "(both & rule.taken) == 0;",
    ),
    "pieces start from c": ("matmul.cu", "u32 part = 0;  ", "u32 part = c;  "),
    "NVFP4 has no scale of a row": (
        "matmul.cu", "bits_of(__fmul_rn(number(c), overall))", "bits_of(number(c))",
    ),
    "a scale has a sign": (
        "dot_terms.cuh", "decoded(code & of.mask, of.from)",
        "decoded(of.mask == 0x7F ? code : code & of.mask, of.from)",
    ),
}  # fmt: skip


@pytest.mark.tier("full", one_in=3, but=["[terms are shifted down]"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_kernel_is_found(fault, tmp_path):
    """DOT-007 to DOT-018: by the suites."""
    device = Host(directory=changed(tmp_path / "kernels", *FAULTS[fault]))
    assert any(suites.wrong(device, suite)[0] for suite in SUITES)
