"""Wrong loops over K, wrong tiles and wrong scales of dot products have a name.

The kernels are written over the engine or in NumPy, from the mistakes alone.
"""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from structural_faults import Fault, evidence_of

from mor_ref import formats, golden
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.exact import dot
from mor_ref.exact.matmul import Block, entry
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.random_products import WIDEST
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.scoring import steps_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting.structure_text import structure_lines

NAN = np.uint32(0x7FFFFFFF)
SCALES = ("scale_a", "scale_b")


def bits(numbers):
    """Return binary32 bits with the NaN of the suites."""
    numbers = np.asarray(numbers, np.float32)
    return np.where(np.isnan(numbers), NAN, numbers.view(np.uint32))


def result(case, arrays, **parameters):
    """Return the results of the engine for other inputs; c if no element of K is left."""
    if not arrays["a"].shape[1]:
        return bits(arrays["c"].view(np.float32))
    asked = case.parameters | parameters
    operation = "dot" if "scale_a" not in arrays else "dot_scaled"
    return OPERATIONS[operation].engine(asked, arrays)["result"]


def columns(case, first, last, c):
    """Return inputs from one element of K to another; scales are those of their blocks."""
    found = {"a": case.arrays["a"][:, first:last], "b": case.arrays["b"][:, first:last], "c": c}
    block = case.parameters.get("scale_block", 1)
    for name in SCALES:
        if name in case.arrays:
            found[name] = case.arrays[name][:, first // block : -(-last // block)]
    return {name: np.ascontiguousarray(array) for name, array in found.items()}


def step_of(profile):
    """Return the products between two additions to c: of an instruction, or of a promotion."""
    return {"promoted": 128, "f32_fma": 1}.get(profile.family, profile.chunk)


def ends_before_the_last_step(case, profile):
    k, step = case.arrays["a"].shape[1], step_of(profile)
    whole = [start for start in range(0, k, step) if start + step < k] if step else [0]
    end = len(whole) * step if step else k
    return result(case, columns(case, 0, end, case.arrays["c"]))


def takes_whole_steps(case, profile):
    k, step = case.arrays["a"].shape[1], step_of(profile)
    return result(case, columns(case, 0, k - k % step if step else k, case.arrays["c"]))


def loses_a_promoted_tail(case, profile):
    k = case.arrays["a"].shape[1]
    if profile.family == "promoted":
        k -= k % 128
    return result(case, columns(case, 0, k, case.arrays["c"]))


def keeps_a_tail_in_the_tensor_core(case, profile):
    k, c = case.arrays["a"].shape[1], case.arrays["c"]
    whole = k - k % 128
    if profile.family != "promoted" or whole == k:
        return result(case, columns(case, 0, k, c))
    tail = columns(case, whole, k, result(case, columns(case, 0, whole, c)))
    tail = {name: array for name, array in tail.items() if name not in SCALES}
    return result(case, tail, dot_profile="hopper_fp8")


def adds_in_a_register(case, profile):
    """Give each instruction a c of 0, and add its result to a register."""
    if not profile.chunk:
        return case.arrays["result"]
    dtype = np.float16 if profile.result == "f16" else np.float32
    register = case.arrays["c"].view(np.float32).astype(dtype)
    zero = np.zeros_like(case.arrays["c"])
    for start in range(0, case.arrays["a"].shape[1], profile.chunk):
        found = result(case, columns(case, start, start + profile.chunk, zero))
        with np.errstate(all="ignore"):
            register = register + found.view(np.float32).astype(dtype)
    return bits(register)


KERNELS = {
    "dot_last_chunk_left_out": ends_before_the_last_step,
    "dot_tail_left_out": takes_whole_steps,
    "dot_promoted_tail_left_out": loses_a_promoted_tail,
    "dot_promoted_tail_added_by_instructions": keeps_a_tail_in_the_tensor_core,
    "dot_chunks_added_in_binary32": adds_in_a_register,
}
OF_EVERY_FAMILY = ("f32_fma", "f32_pairwise", "exact", "volta_fp16_from_f16", "hopper_fp8_f16",
                   "hopper_fp8_promoted", "cdna1_bf16", "cdna2_bf16_k4", "cdna3_fp16", "cdna3_fp8",
                   "blackwell_mxfp8", "blackwell_nvfp4")  # fmt: skip


def some_cases(suite):
    """Return the cases of some profiles, at most four of each."""
    for name in OF_EVERY_FAMILY:
        known = [case for case in golden.load(suite) if case.parameters["dot_profile"] == name]
        yield from ((case, DOT_PROFILES[name]) for case in known[:: -(-len(known) // 4) or 1])


def modelled(suite, case, name):
    with applied(DEVIATIONS[name]):
        return OPERATIONS[SUITES[suite].operation].exact(case.parameters, case.arrays)["result"]


@pytest.mark.tier(
    "full", but=["[dot-dot_tail_left_out]", "[dot_scaled-dot_chunks_added_in_binary32]"]
)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("suite", ["dot", "dot_scaled"])
def test_a_deviation_is_a_loop_over_instructions(name, suite):
    """DOT-003, DOT-011: entry for entry, and of each family that has instructions."""
    changed = set()
    for case, profile in some_cases(suite):
        found = KERNELS[name](case, profile)
        np.testing.assert_array_equal(modelled(suite, case, name), found, case.name)
        if (found != case.arrays["result"]).any():
            changed.add(profile.family)
    promoted = name.startswith("dot_promoted")
    scaled = {"promoted", "st_fdpa", "gst_fdpa"}
    plain = {"t_fdpa", "promoted", "e_fdpa", "ftz_mul_add", "tr_fdpa", "gtr_fdpa"}
    wanted = {"promoted"} if promoted else scaled if suite == "dot_scaled" else plain
    assert changed >= wanted
    assert not changed & {"exact", "f32_pairwise"}


def have_scales_together(case):
    """Return which entries have no block in bfloat16, without a scale, next to one with a scale."""
    if "choice_a" not in case.arrays:
        return np.ones(len(case.arrays["a"]), np.bool_)
    has = [case.arrays[f"choice_{name}"] != WIDEST for name in "ab"]
    return (has[0] == has[1]).all(axis=1)


@pytest.mark.tier("full", but=["[a-b-dot_scaled]", "[b-a-matmul]"])
@pytest.mark.parametrize("suite", ["dot_scaled", "matmul", "dot_integers"])
@pytest.mark.parametrize(("of", "to"), [("a", "b"), ("b", "a")])
def test_scales_of_one_operand_for_both_are_one_pointer_for_two(suite, of, to):
    """DOT-006, DOT-020, GEM-003: the engine with the same array twice."""
    operation, differing = OPERATIONS[SUITES[suite].operation], 0
    for case in golden.load(suite)[:: 1 if suite == "dot_integers" else 4]:
        arrays = case.arrays | {f"scale_{to}": case.arrays[f"scale_{of}"]}
        found = operation.engine(case.parameters, arrays)["result"]
        ours = modelled(suite, case, f"dot_scales_of_{of}_for_both")
        known = have_scales_together(case)
        np.testing.assert_array_equal(ours[known], found[known], case.name)
        differing += np.count_nonzero(found != case.arrays["result"])
    assert differing > 100


def test_a_block_without_a_scale_takes_none():
    """GEM-003: the numbers of bfloat16 are not multiplied by the scale of the other operand."""
    e4m3, bf16 = formats["e4m3"], formats["bf16"]
    scaled, wide = Block([0x38], e4m3, 0.5), Block([0x3F80], bf16)
    with applied(DEVIATIONS["dot_scales_of_a_for_both"]):
        assert entry([scaled], [wide], DOT_PROFILES["exact"]) == 0.5
        assert entry([scaled], [replace(scaled, scale=8.0)], DOT_PROFILES["exact"]) == 0.25


OF_ROWS = [one for one in DEVIATIONS.values() if dot.dot_chunks in steps_of(one)]


@pytest.mark.parametrize("suite", ["dot", "dot_scaled"])
def test_two_wrong_loops_together_are_computed(suite):
    """In both orders: the one replaces the step that the other one calls."""
    promoted = "hopper_fp8_promoted"
    known = [one for one in golden.load(suite) if one.parameters["dot_profile"] == promoted]
    case = max(known, key=lambda one: one.arrays["a"].shape[1])
    arrays = {name: array[:1] for name, array in case.arrays.items()}
    for pair in itertools.permutations(OF_ROWS, 2):
        with applied(*pair):
            found = OPERATIONS[SUITES[suite].operation].exact(case.parameters, arrays)
        assert len(found["result"]) == 1
    assert len(OF_ROWS) > 8


# ---------------------------------------------------------------- operands


def with_tiles(side, *, of_zeros):
    """Return a kernel that reads a tile of B with its rows and columns exchanged."""

    def kernel(case):
        b, k = case.arrays["b"], case.arrays["b"].shape[1]
        found = np.zeros_like(b) if of_zeros else b.copy()
        for row in range(0, len(b), side):
            for column in range(0, k, side):
                tile = b[row : row + side, column : column + side]
                if of_zeros:
                    shared = np.zeros((side, side), b.dtype)
                    shared[: tile.shape[0], : tile.shape[1]] = tile
                    tile = shared.T[: tile.shape[0], : tile.shape[1]]
                elif tile.shape == (side, side):
                    tile = tile.T
                found[row : row + side, column : column + side] = tile
        return {"b": found}

    return kernel


def entries_of_a_transposed_tile(case):
    b = case.arrays["b"].copy()
    for first in range(0, len(b) - 15, 16):
        for i in range(4):
            for j in range(4):
                b[first + 4 * i + j] = case.arrays["b"][first + 4 * j + i]
    return {"b": b}


def without(start, end):
    """Return a kernel that leaves out elements; both ends are functions of K."""

    def kernel(case):
        kept = slice(start(case.arrays["a"].shape[1]), end(case.arrays["a"].shape[1]))
        return {name: np.ascontiguousarray(case.arrays[name][:, kept]) for name in "ab"}

    return kernel


def scales_of_the_row_above(case):
    return {"scale_b": np.roll(case.arrays["scale_b"], 1, axis=0)}


def scales_of_a_twice(case):
    return {"scale_b": case.arrays["scale_a"]}


def nothing(_):
    return 0


FAULTS = {
    "tile": ("dot", with_tiles(8, of_zeros=False), "of b with its 8 x 8 tiles transposed,"),
    "tile of integers": (
        "dot_integers",
        with_tiles(4, of_zeros=True),
        "of b with its 4 x 4 tiles transposed, zeros beyond the last row and column,",
    ),
    "tile of scaled numbers": (
        "dot_scaled",
        with_tiles(16, of_zeros=False),
        "of b with its 16 x 16 tiles transposed,",
    ),
    "tile of entries": (
        "dot",
        entries_of_a_transposed_tile,
        "of b with the rows of 4 x 4 entries transposed,",
    ),
    "pointer": ("matmul", scales_of_a_twice, "with scale_a in place of scale_b,"),
    "scales": ("dot_scaled", scales_of_the_row_above, "of scale_b of the row before it,"),
    "tail": (
        "dot_integers",
        without(nothing, lambda k: k // 16 * 16),
        "without the elements of K past the last multiple of 16,",
    ),
    "last block": (
        "dot_integers",
        without(nothing, lambda k: (k - 1) // 4 * 4),
        "without the last block of K, of 4 elements or less,",
    ),
    "first block": (
        "dot_integers",
        without(lambda k: min(8, k), lambda k: k),
        "without the first 8 elements of K,",
    ),
}


@pytest.mark.tier("full", but=["[tail]", "[last block]"])
@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_operand_is_named(name):
    suite, kernel, words = FAULTS[name]
    operation = OPERATIONS[SUITES[suite].operation]

    def change(case, _):
        inputs = {name: case.arrays[name] for name in operation.inputs} | kernel(case)
        if inputs["a"].shape[1]:
            return operation.engine(case.parameters, inputs)
        fields = [field for field in operation.outputs if field in case.arrays]
        return {field: np.zeros_like(case.arrays[field]) for field in fields}

    found = structures_of(list(samples_of(evidence_of(Fault(suite, change, ())))))
    text = "\n".join(structure_lines(found))
    assert re.search(f": each entry is that {re.escape(words)} in all ", text), text
