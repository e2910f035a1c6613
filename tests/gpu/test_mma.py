"""The profile of a GPU and its matrix instructions: golden rows, and ten million dot products."""

import numpy as np
import pytest
from gpu import golden_sums, mma
from gpu.test_gpu import loaded
from gpu.tiles import bits_of_sums, in_pairs, inputs, scales_of, words_of_scales

import mor_ref
from mor_ref.cuda.device import cupy
from mor_ref.definitions.dot import DOT_PROFILES

pytestmark = pytest.mark.tier("gpu")
COUNT, TILES = 10_000_000, 2048
ONE = {"e8m0": 127, "e4m3": 0x38}
GPUS = [known[0] for known in mma.ARCHITECTURES.values()]
INTEGERS = list(dict.fromkeys(one.name for gpu in GPUS for one in mma.integer_instructions_of(gpu)))
NAMES = [one.name for gpu in GPUS for one in mma.instructions_of(gpu)]
WITH_ROWS = [one.name for gpu in GPUS for one in mma.instructions_of(gpu)
             if not one.scales and golden_sums.cases_of(one)]  # fmt: skip


@pytest.fixture
def instruction(gpu, request):
    """Return the instruction of this name, if the GPU has it."""
    there = {one.name: one for one in mma.all_instructions_of(gpu.capability)}
    if request.param not in there:
        pytest.skip(f"compute capability {gpu.capability / 10} has other instructions")
    return there[request.param]


def words_on_hardware(run, one, a, b, c, scales=()):
    """Return words of the sums of tiles: rows of a times rows of b, (tiles, rows, 8), plus c."""
    codes = (one.stored(x, fmt) for x, fmt in zip((a, b), one.formats, strict=True))
    words = [cupy().asarray(np.ascontiguousarray(x).view(np.uint32).ravel()) for x in (*codes, c)]
    more = [cupy().asarray(words_of_scales(x).ravel()) for x in scales]
    found = cupy().empty_like(words[2])
    threads = 128 if one.is_of_four_warps else 32
    run((1024,), (threads,), (*words, found, np.uint32(len(a)), *more))
    return found.get()


def on_hardware(run, one, a, b, c, scales):
    """Return the bits of the sums of tiles."""
    return bits_of_sums(words_on_hardware(run, one, a, b, c, scales), one).reshape(c.shape)


def scales_for(one, random=None):
    """Return random scales of both operands; none if the instruction has none."""
    random = random or np.random.default_rng(4)
    return scales_of(one, random, TILES) if one.scales else []


@pytest.mark.parametrize("instruction", NAMES, indirect=True)
def test_small_integers_are_multiplied_exactly(gpu, instruction, tmp_path):
    """Whatever the cut: so each code lies where the instruction takes it."""
    run = loaded(mma.compiled(instruction, gpu.capability), tmp_path, "run")
    a, b, c = inputs(instruction, np.random.default_rng(1), TILES)
    numbers = [np.random.default_rng(2).integers(-2, 3, x.shape).astype(np.float32) for x in (a, b)]
    codes = [mor_ref.encode(x, fmt) for x, fmt in zip(numbers, instruction.formats, strict=True)]
    ones = [np.full_like(x, ONE[instruction.scales[0]]) for x in scales_for(instruction)]
    found = on_hardware(run, instruction, *codes, np.zeros_like(c), ones)
    exact = np.einsum("tik,tjk->tij", *numbers).astype(np.float32) + np.float32(0)
    np.testing.assert_array_equal(found, exact.view(np.uint32))


@pytest.mark.parametrize("instruction", NAMES, indirect=True)
def test_the_profile_is_the_instruction(gpu, instruction, tmp_path):
    """DOT-002, DOT-004, DOT-005, DOT-007, DOT-008 and DOT-010."""
    run = loaded(mma.compiled(instruction, gpu.capability), tmp_path, "run")
    random, compared, profile = np.random.default_rng(3), 0, DOT_PROFILES[instruction.profile]
    while compared < COUNT:
        a, b, c = inputs(instruction, random, TILES)
        scales = scales_for(instruction, random)
        found = on_hardware(run, instruction, a, b, c, scales).ravel()
        one, other, start = in_pairs(a, b, c)
        given = {"formats": instruction.formats, "profile": profile}
        if scales:
            name, block = instruction.scales
            given |= {"scales": in_pairs(*scales, c)[:2], "scale_format": name, "block": block}
        expected = mor_ref.dot(one, other, start, **given)
        expected = expected.view(np.uint32)
        wrong = np.flatnonzero(found != expected)
        assert wrong.size == 0, (
            f"{wrong.size} of {found.size}; the first: a = {one[wrong[0]]}, b = {other[wrong[0]]}, "
            f"c = {start[wrong[0]]!r}, 0x{found[wrong[0]]:08X} instead of "
            f"0x{expected[wrong[0]]:08X}"
        )
        compared += found.size


@pytest.mark.parametrize("instruction", [*WITH_ROWS, *INTEGERS], indirect=True)
def test_golden_rows_are_those_of_the_instruction(gpu, instruction, tmp_path):
    """DOT-004 to DOT-010 and DOT-019: sums that random numbers do not reach."""
    run = loaded(mma.compiled(instruction, gpu.capability), tmp_path, "run")

    def multiply(*tiles):
        return words_on_hardware(run, instruction, *tiles)

    for case in golden_sums.cases_of(instruction):
        found, right = golden_sums.sums_and_right(multiply, instruction, case)
        np.testing.assert_array_equal(found, right, case.name)


@pytest.mark.parametrize("instruction", INTEGERS, indirect=True)
def test_sums_of_integers_wrap(gpu, instruction, tmp_path):
    """DOT-019: modulo 2^32, for ten million dot products and starts near both ends."""
    run = loaded(mma.compiled(instruction, gpu.capability), tmp_path, "run")
    random, compared = np.random.default_rng(6), 0
    while compared < COUNT:
        a = random.integers(-128, 128, (TILES, 16, instruction.row_bytes), np.int8)
        b = random.integers(-128, 128, (TILES, 8, instruction.row_bytes), np.int8)
        c = random.integers(-(1 << 17), 1 << 17, (TILES, 16, 8)) + random.choice([0, (1 << 31) - 1])
        found = words_on_hardware(run, instruction, a, b, c.astype(np.uint32))
        exact = np.einsum("tik,tjk->tij", a.astype(np.float64), b).astype(np.int64) + c
        np.testing.assert_array_equal(found, exact.astype(np.uint32).ravel())
        compared += found.size
