"""The programs of `make gpu-test` but the kernels, as far as a machine without a GPU shows."""

import functools
import re

import numpy as np
import pytest
from gpu import golden_sums, mma, programs
from gpu.tiles import bits_of_sums, in_pairs, inputs, scales_of, words_of_scales
from kernels import needed

import mor_ref
from mor_ref.cuda import ptx
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.ptx import Module

INSTRUCTIONS = {
    "bf16": "cvt.rn.bf16x2.f32",
    "e4m3": "cvt.rn.satfinite.e4m3x2.f32",
    "e5m2": "cvt.rn.satfinite.e5m2x2.f32",
    "e2m3": "cvt.rn.satfinite.e2m3x2.f32",
    "e3m2": "cvt.rn.satfinite.e3m2x2.f32",
    "e2m1": "cvt.rn.satfinite.e2m1x2.f32",
    "e8m0_rp": "cvt.rp.satfinite.ue8m0x2.f32",
    "e8m0_rz": "cvt.rz.satfinite.ue8m0x2.f32",
}
EIGHT_BITS = ["bf16", "e4m3", "e5m2"]
CONVERSIONS = {75: [], 80: ["bf16"], 89: EIGHT_BITS, 90: EIGHT_BITS, 100: [*INSTRUCTIONS]}
CONVERSIONS |= {103: [*INSTRUCTIONS], 120: [*INSTRUCTIONS]}


@pytest.fixture(scope="module", autouse=True)
def _nvrtc():
    needed.library()


@pytest.mark.tier("full", but=["[75]"])
@pytest.mark.parametrize("capability", CONVERSIONS)
def test_the_conversions_of_each_gpu(capability):
    """The instruction is in the kernel of its name; only that of bf16 is not one of our kernels."""
    made = programs.compiled_conversions(capability)
    there = ptx.instructions(made.ptx)
    assert set(there) == set(CONVERSIONS[capability]) == set(programs.conversions_of(capability))
    for name, instructions in there.items():
        converting = {one for one in instructions if re.match(r"cvt\.r[npz]\.", one)}
        assert converting == {INSTRUCTIONS[name]}
    found = {(violation.kernel, violation.instruction) for violation in ptx.violations(made.ptx)}
    assert found == {(name, INSTRUCTIONS[name]) for name in there if name == "bf16"}
    assert made.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("capability", [75, 90, 120])
def test_the_canary_is_sensitive_to_options(capability):
    right = programs.compiled_canary(capability)
    assert ptx.violations(right.ptx) == []
    for options in programs.WRONG_OPTIONS.values():
        assert ptx.violations(programs.compiled_canary(capability, options).ptx)


def test_the_canary_has_numbers_for_every_option():
    """The result of each option on a GPU would differ from the right one."""
    x, y, right = programs.canary_numbers()
    wide = x.astype(np.float64) * y
    fused = (wide - x).astype(np.float32)
    assert np.count_nonzero(fused != right[:, 1]) > 1000
    smallest = np.finfo(np.float32).smallest_normal
    for column in right.T:
        assert np.count_nonzero((column != 0) & (np.abs(column) < smallest)) > 100
    reciprocal = np.float32(1) / y
    assert np.count_nonzero(x * reciprocal != right[:, 2]) > 1000


INSTRUCTIONS_OF = {75: 2, 80: 8, 89: 24, 90: 20, 100: 8, 120: 59}


@pytest.mark.tier("full")
@pytest.mark.parametrize("capability", INSTRUCTIONS_OF)
def test_the_matrix_instructions_of_each_gpu(capability):
    """DOT-002: the kernel of a profile has its instruction once, and no other one."""
    there = mma.instructions_of(capability)
    assert len({one.name for one in there}) == len(there) == INSTRUCTIONS_OF[capability]
    for one in there:
        profile = DOT_PROFILES[one.profile]
        assert set(one.formats) <= set(profile.formats)
        assert (profile.result == "f16") == one.has_f16_sums
        assert one.scales in ((None, *profile.scales) if profile.scales else (None,))
        assert bool(one.scales) == profile.needs_scales
        made = mma.compiled(one, capability)
        (kernel,) = ptx.instructions(made.ptx).values()
        assert [x for x in kernel if re.match(r"w?g?mma\.(sync|mma_async)", x)] == [one.text]
        assert made.cubin[:4] == b"\x7fELF"


def runs_on_a_cpu(one):
    """Return whether `mor_ref.ptx` has an instruction: no `wgmma`, FP6, FP4 and scales."""
    return not (one.is_of_four_warps or one.scales or {"e2m3", "e3m2", "e2m1"} & {*one.formats})


def words_on_a_cpu(run, *tiles):
    """Return words of the sums of tiles: a, b and c."""
    words = [np.ascontiguousarray(x).view(np.uint32).ravel().copy() for x in tiles]
    found = np.zeros_like(words[2])
    run[2, 32](*words, found, np.uint32(len(tiles[0])))
    return found


@pytest.mark.tier("full")
@pytest.mark.parametrize("capability", INSTRUCTIONS_OF)
def test_the_kernels_of_matrix_instructions_have_each_number_in_its_place(capability):
    """DOT-007: as `mor_ref.ptx` runs them."""
    needed.compiler()
    random = np.random.default_rng(5)
    there = [one for one in mma.instructions_of(capability) if runs_on_a_cpu(one)]
    for one in there:
        a, b, c = inputs(one, random, 3)
        found = words_on_a_cpu(Module(mma.compiled(one, capability).ptx)["run"], a, b, c)
        rows, columns, start = in_pairs(a, b, c)
        expected = mor_ref.dot(rows, columns, start, formats=one.formats, profile=one.profile)
        np.testing.assert_array_equal(bits_of_sums(found, one), expected.view(np.uint32))
    assert there


@pytest.mark.tier("full")
@pytest.mark.parametrize("capability", INSTRUCTIONS_OF)
def test_golden_rows_lie_in_their_places(capability):
    """DOT-007 and DOT-019: the kernels of matrix instructions on a CPU, and every row of them."""
    needed.compiler()
    there = [one for one in mma.all_instructions_of(capability) if runs_on_a_cpu(one)]
    compared = 0
    for one in there:
        run = Module(mma.compiled(one, capability).ptx)["run"]
        multiply = functools.partial(words_on_a_cpu, run)
        for case in golden_sums.cases_of(one):
            found, right = golden_sums.sums_and_right(multiply, one, case)
            np.testing.assert_array_equal(found, right, f"{one.name}: {case.name}")
            compared += len(right)
    assert compared > 500


def test_every_profile_of_a_present_instruction_is_compared():
    """But for those of Volta and Turing's like it, of `tcgen05`, and of Hopper's promoted sums."""
    compared = {one.profile for known in mma.ARCHITECTURES.values()
                for one in mma.instructions_of(known[0])}  # fmt: skip
    families = ("t_fdpa", "st_fdpa", "gst_fdpa", "promoted")
    nvidia = {name for name, row in DOT_PROFILES.items() if row.family in families}
    assert nvidia - compared == {
        "volta_fp16", "volta_fp16_f16", "volta_fp16_from_f16", "turing_fp16_k4",
        "turing_fp16_f16_k4", "turing_fp16_from_f16_k4", "hopper_fp8_promoted",
        "blackwell_fp8", "blackwell_fp8_f16", "blackwell_mxfp8", "blackwell_mxfp4",
        "blackwell_nvfp4",
    }  # fmt: skip


def test_codes_and_scales_lie_as_registers_hold_them():
    """FP4 in bits 2 to 5 of a byte or two in a byte; the scales of blocks from the lowest byte."""
    there = {one.name: one for one in mma.instructions_of(120)}
    codes = np.array([[1, 7, 15, 8]], np.uint8)
    middle = there["rtx_blackwell_fp8-m16n8k32-e2m1-e5m2"]
    assert middle.stored(codes, "e2m1").tolist() == [[4, 28, 60, 32]]
    assert middle.stored(codes, "e5m2").tolist() == codes.tolist()
    packed = there["rtx_blackwell_nvfp4-m16n8k64-e2m1-e2m1-mxf4nvf4-e4m3-16"]
    assert packed.stored(codes, "e2m1").tolist() == [[0x71, 0x8F]]
    a, b, _ = inputs(packed, np.random.default_rng(1), 2)
    one, other = scales_of(packed, np.random.default_rng(1), 2)
    assert (a.shape, b.shape, one.shape, other.shape) == (
        (2, 16, 64),
        (2, 8, 64),
        (2, 16, 4),
        (2, 8, 4),
    )
    assert words_of_scales(one)[1, 3] == int.from_bytes(one[1, 3].tobytes(), "little")
