"""Wrong programs of dot products, each with one natural mistake, have a name.

A program is written in NumPy, over the engine, or from the fields of the suite. The exact model
with a deviation has the fields of the program, or a structure says what the program computes.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from structural_faults import MANIFEST

from mor_ref import decode, golden
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.formats import formats
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.exact import dot
from mor_ref.exact.dot import Scales
from mor_ref.exact.dot_binary32 import fused
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of as fields_of_suite
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting.structure_text import structure_lines

NAN = np.uint32(0x7FFFFFFF)
ROWS = {"dot_integers": 6}  # of a case; of other suites 40


def bits(numbers):
    """Return binary32 bits with the NaN of the suites."""
    numbers = np.asarray(numbers, np.float32)
    return np.where(np.isnan(numbers), NAN, numbers.view(np.uint32))


def fields_of(case, **inputs):
    """Return the fields of the engine for other inputs."""
    operation = OPERATIONS["dot_scaled" if "scale_a" in case.arrays else "dot"]
    taken = {name: case.arrays[name] for name in operation.inputs} | inputs
    return operation.engine(case.parameters, taken)


def products(case):
    """Return rounded products, a row each."""
    a, b = (decode(case.arrays[name], case.parameters[f"format_{name}"]) for name in "ab")
    return a.astype(np.float32) * b.astype(np.float32)


def c_of(case):
    return case.arrays["c"].view(np.float32)


def tree(numbers):
    """Return the sums of rows as trees of neighbours."""
    while numbers.shape[1] > 1:
        odd = numbers[:, -1:] if numbers.shape[1] % 2 else numbers[:, :0]
        numbers = np.hstack([numbers[:, :-1:2] + numbers[:, 1::2], odd])
    return numbers[:, 0]


def filled(numbers):
    wanted = 1
    while wanted < numbers.shape[1]:
        wanted *= 2
    return np.pad(numbers, [(0, 0), (0, wanted - numbers.shape[1])])


def from_zero_on(case):
    """Start from s = 0, and return s + c."""
    found = fields_of(case, c=np.zeros_like(case.arrays["c"]))
    return {"result": bits(found["result"].view(np.float32) + c_of(case))}


def with_c_in_front(case):
    return {"result": bits(tree(np.hstack([c_of(case)[:, None], products(case)])))}


def by_halves(case):
    def total(row):
        half = (row.shape[1] + 1) // 2
        return row[:, 0] if row.shape[1] == 1 else total(row[:, :half]) + total(row[:, half:])

    return {"result": bits(total(products(case)) + c_of(case))}


def in_a_warp(case):
    row = filled(products(case))
    while row.shape[1] > 1:
        half = row.shape[1] // 2
        row = row[:, :half] + row[:, half:]
    return {"result": bits(row[:, 0] + c_of(case))}


def with_zeros_at_the_end(case):
    return {"result": bits(tree(filled(products(case))) + c_of(case))}


def without_c(case, add):
    """Add up products alone, and then add c; an infinite or NaN c is special, as in DOT-003."""
    found = fields_of(case, c=np.zeros_like(case.arrays["c"]))
    is_number = np.isfinite(c_of(case))
    fields = {name: np.where(is_number, found[name], 0) for name in ("exponent", "cut_sum")}
    return fields | {"result": bits(add(found["result"].view(np.float32), c_of(case)))}


def cut_sum(x, y):
    """Return the sum of two numbers in binary32, rounded toward zero; 2^128 is infinite."""
    near, exact = np.float32(x) + np.float32(y), Fraction(float(x)) + Fraction(float(y))
    if abs(exact) >= 2**128:
        return near
    if np.isinf(near):
        return np.copysign(np.finfo(np.float32).max, near)
    is_above = abs(Fraction(float(near))) > abs(exact)
    return (np.nextafter(near, np.float32(0)) if is_above else near) + np.float32(0)


def toward_zero(x, y):
    found = x + y
    for n in np.flatnonzero(np.isfinite(x) & np.isfinite(y)):
        found[n] = cut_sum(x[n], y[n])
    return found


def c_last_in_binary32(case):
    return without_c(case, np.add)


def c_last_and_cut(case):
    return without_c(case, toward_zero)


def in_halves(case):
    chunk, k = DOT_PROFILES[case.parameters["dot_profile"]].chunk, case.arrays["a"].shape[1]
    half = (-(-k // chunk) + 1) // 2 * chunk
    first = {name: np.ascontiguousarray(case.arrays[name][:, :half]) for name in "ab"}
    found = fields_of(case, **first)["result"].view(np.float32)
    if half < k:
        rest = {name: np.ascontiguousarray(case.arrays[name][:, half:]) for name in "ab"}
        zero = np.zeros_like(case.arrays["c"])
        found = found + fields_of(case, c=zero, **rest)["result"].view(np.float32)
    return {"result": bits(found)}


def with_flushed_scales(case):
    if case.parameters["scale_format"] != "e4m3":
        return case.arrays
    codes = {name: case.arrays[name] for name in ("scale_a", "scale_b")}
    return fields_of(
        case, **{n: np.where(x & 0x78, x, 0).astype(x.dtype) for n, x in codes.items()}
    )


def sums_of_f16(case, rounded):
    """Return results from the cut sums of the suite."""
    unit = case.arrays["exponent"].view(np.int32) - DOT_PROFILES["hopper_fp8_f16"].fraction_bits
    wide = np.ldexp(case.arrays["cut_sum"].view(np.int64).astype(np.float64), unit)
    is_special = ~np.isfinite(case.arrays["result"].view(np.float32)) & (wide == 0)
    found = bits(rounded(wide) + np.float32(0))
    return {"result": np.where(is_special, case.arrays["result"], found)}


def saturated(case):
    return sums_of_f16(case, lambda x: np.clip(x, -65504, 65504).astype(np.float16))


def truncated(case):
    def rounded(x):
        near = x.astype(np.float16)
        back = np.nextafter(near, np.float16(0))
        is_beyond = np.abs(x) >= 65536
        return np.where((np.abs(near.astype(np.float64)) > np.abs(x)) & ~is_beyond, back, near)

    return sums_of_f16(case, rounded)


def dequantized(case, epilogue):
    n, x, w = (case.arrays[name].view(np.float32) for name in ("number", "scale_a", "scale_b"))
    return {"result": bits(epilogue(n, x, w))}


def as_in_bitsandbytes(case):
    return dequantized(case, lambda n, x, w: w * (x * (n * np.float32(6.200124e-05))))


def from_the_left(case):
    return dequantized(case, lambda n, x, w: n * x * w * (np.float32(1) / np.float32(127 * 127)))


PROGRAMS = {
    "dot_c_added_to_the_row": ("dot", "f32_fma", from_zero_on),
    "dot_pairs_with_c_first": ("dot", "f32_pairwise", with_c_in_front),
    "dot_pairs_of_halves": ("dot", "f32_pairwise", by_halves),
    "dot_pairs_of_a_warp": ("dot", "f32_pairwise", in_a_warp),
    "dot_pairs_with_zeros": ("dot", "f32_pairwise", with_zeros_at_the_end),
    "dot_chunks_added_in_binary32": ("dot_chunks", "hopper_fp8", c_last_in_binary32),
    "dot_c_added_last": ("dot_chunks", "blackwell_fp8", c_last_and_cut),
    "dot_k_in_halves": ("dot", "hopper_fp8", in_halves),
    "dot_subnormal_scales_flushed": ("dot_scaled", "blackwell_nvfp4", with_flushed_scales),
    "dot_f16_saturates": ("dot_chunks", "hopper_fp8_f16", saturated),
    "dot_f16_results_cut": ("dot_chunks", "hopper_fp8_f16", truncated),
    "dot_switchback_of_bitsandbytes": ("dot_integers", None, as_in_bitsandbytes),
    "dot_switchback_factor_last": ("dot_integers", None, from_the_left),
}


USUAL = ("dot_c_added_to_the_row", "dot_c_added_last", "dot_pairs_with_c_first", "dot_k_in_halves",
         "dot_f16_results_cut", "dot_subnormal_scales_flushed")  # fmt: skip


@pytest.mark.tier("full", but=[f"[{name}]" for name in USUAL])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_wrong_program_has_the_fields_of_a_deviation(name):
    """DOT-003, DOT-006, DOT-007, DOT-010, DOT-013, DOT-014, DOT-020: in every case."""
    suite, profile, program = PROGRAMS[name]
    operation, differing = OPERATIONS[SUITES[suite].operation], 0
    for whole in golden.load(suite):
        if whole.parameters.get("dot_profile") != profile:
            continue
        case = replace(
            whole, arrays={key: array[: ROWS.get(suite, 40)] for key, array in whole.arrays.items()}
        )
        with np.errstate(all="ignore"):
            found = program(case)
        with applied(DEVIATIONS[name]):
            ours = operation.exact(case.parameters, case.arrays)
        for field in operation.outputs.keys() & found.keys():
            np.testing.assert_array_equal(found[field], ours[field], f"{case.name} {field}")
            differing += np.count_nonzero(found[field] != case.arrays.get(field, found[field]))
    assert differing > 1


def test_a_tree_that_ends_with_c_keeps_its_name():
    """DOT-014: c is the last summand already, so a tree has no c to add to the row."""
    case = next(c for c in golden.load("dot") if c.parameters["dot_profile"] == "f32_pairwise")
    with applied(DEVIATIONS["dot_c_added_to_the_row"]):
        found = OPERATIONS["dot"].exact(case.parameters, case.arrays)["result"]
    np.testing.assert_array_equal(found, case.arrays["result"])


def chunk_of(name, *arguments):
    """Return the last chunk of a row, with a deviation and without it."""
    (right,) = dot.dot_chunks(*arguments)
    with applied(DEVIATIONS[name]):
        (wrong,) = dot.dot_chunks(*arguments)
    return right, wrong


def test_a_zero_keeps_the_exponent_of_its_factors():
    """DOT-007: 0 * 448 has the exponent -6 + 8, above the one of 2^-6 * 2^-6."""
    e4m3 = formats["e4m3"]
    row = [0x7E, *[0x08] * 31], [0x00, *[0x08] * 31]
    arguments = *row, 0.0, DOT_PROFILES["hopper_fp8"], (e4m3, e4m3)
    right, wrong = chunk_of("dot_zeros_keep_exponents", *arguments)
    assert (right.exponent, wrong.exponent) == (-12, 2)


def test_a_group_that_cancels_has_e0():
    """DOT-009: 1 - 1 times 2^8 has the exponent 8; c is far below it."""
    e2m1, e4m3 = formats["e2m1"], formats["e4m3"]
    scales = Scales([0x78], [0x38], e4m3, 16)
    row = [2, 10, *[0] * 14], [2] * 16
    arguments = *row, 2.0**-20, DOT_PROFILES["blackwell_nvfp4"], (e2m1, e2m1), scales
    right, wrong = chunk_of("dot_cancelled_groups_have_e0", *arguments)
    assert (right.exponent, wrong.exponent) == (8, -20)


def by_pieces(case, n):
    """Return an entry whose partial sums are multiplied by the scales of the records."""
    block, c = case.parameters["scale_block"], 0.0
    scales = [case.arrays[f"scale_{name}"][n].view(np.float32) for name in "ab"]
    for k, (x, w) in enumerate(zip(*scales, strict=True)):
        part = slice(k * block, (k + 1) * block)
        codes = {name: case.arrays[name][n : n + 1, part].astype(np.uint8) for name in "ab"}
        asked = {"dot_profile": "hopper_fp8", "format_a": "e4m3", "format_b": "e4m3"}
        inputs = codes | {"c": np.zeros(1, np.uint32)}
        (partial,) = OPERATIONS["dot"].engine(asked, inputs)["result"].view(np.float32)
        c = fused(float(x * w), float(partial), c)
    return bits(c)


def test_scales_of_records_are_not_inverted():
    """GEM-003: the program multiplies sums by x * w."""
    compared = differing = 0
    for case in golden.load("matmul"):
        asked = case.parameters
        if (asked["dot_profile"], asked["record"]) != ("hopper_fp8", "scaled"):
            continue
        with applied(DEVIATIONS["matmul_scales_not_inverted"]):
            ours = OPERATIONS["matmul"].exact(asked, case.arrays)["result"]
        choices = np.hstack([case.arrays["choice_a"], case.arrays["choice_b"]])
        for n in np.flatnonzero((choices == 0).all(axis=1))[:4]:
            with np.errstate(all="ignore"):
                assert ours[n] == by_pieces(case, n), (case.name, n)
            compared += 1
            differing += ours[n] != case.arrays["result"][n]
    assert differing > compared / 4 > 1


# ---------------------------------------------------------------- structures


def of_chunks_of_4(case, operation):
    row = DOT_PROFILES[case.parameters["dot_profile"]]
    asked = case.parameters | {"dot_profile": replace(row, chunk=4)}
    return operation.engine(asked, case.arrays)


def with_two_more_bits(case, operation):
    row = DOT_PROFILES[case.parameters["dot_profile"]]
    asked = case.parameters | {"dot_profile": replace(row, fraction_bits=row.fraction_bits + 2)}
    return operation.engine(asked, case.arrays)


def over(**changes):
    """Return a program over the engine with functions of other inputs."""

    def program(case, operation):
        changed = {name: change(case.arrays) for name, change in changes.items()}
        return operation.engine(case.parameters, case.arrays | changed)

    return program


def from_zero_in_each_chunk(case, operation):
    """Give scale-d = 0 to each instruction."""
    chunk, k = DOT_PROFILES[case.parameters["dot_profile"]].chunk, case.arrays["a"].shape[1]
    start = (k - 1) // chunk * chunk
    rest = {name: np.ascontiguousarray(case.arrays[name][:, start:]) for name in "ab"}
    zero = {"c": np.zeros_like(case.arrays["c"])}
    return operation.engine(case.parameters, case.arrays | rest | zero)


def even_elements_first(name):
    return lambda arrays: np.hstack([arrays[name][:, ::2], arrays[name][:, 1::2]])


def the_next(name):
    """Return a function that moves scales by a block; the last one stays."""
    return lambda arrays: np.hstack([arrays[name][:, 1:], arrays[name][:, -1:]])


def in_format_a(case, operation):
    asked = case.parameters | {"format_b": case.parameters["format_a"]}
    return operation.engine(asked, case.arrays)


def ones(code):
    return lambda arrays: np.full_like(arrays["scale_b"], code)


def zeros(name):
    return lambda arrays: np.zeros_like(arrays[name])


E4M3 = {
    "choice_a": zeros("choice_a"),
    "choice_b": zeros("choice_b"),
    "a": lambda arrays: arrays["a"] & np.uint32(0xFF),
    "b": lambda arrays: arrays["b"] & np.uint32(0xFF),
}
NEXT = {name: the_next(name) for name in ("scale_a", "scale_b")}
STRUCTURES = {
    "chunks of 4": ("dot", "hopper_fp8", of_chunks_of_4, "with a chunk length of 4"),
    "two bits": ("dot_chunks", "hopper_fp8", with_two_more_bits, "with F = 15"),
    "no c": ("dot_chunks", "hopper_fp8", over(c=zeros("c")), "with a c of +0"),
    "scale-d": (
        "dot",
        "hopper_fp8",
        from_zero_in_each_chunk,
        "of the last chunk alone, with a c of +0",
    ),
    "order": (
        "dot",
        "hopper_fp8",
        over(a=even_elements_first("a"), b=even_elements_first("b")),
        "with the even elements of K before the odd ones",
    ),
    "one format": ("dot", "hopper_fp8", in_format_a, "with format_a for both operands"),
    "scales of a": ("dot_scaled", "blackwell_mxfp8", over(scale_b=ones(127)), "with scale_a alone"),
    "next scales": (
        "dot_scaled",
        "blackwell_nvfp4",
        over(**NEXT),
        "with each scale that of the next block",
    ),
    "one scale": ("matmul", "hopper_fp8", over(scale_b=ones(0x3F800000)), "with scale_a alone"),
    "choices": ("matmul", "hopper_fp8", over(**E4M3), "with each block in e4m3"),
    "pieces": (
        "matmul",
        "hopper_fp8",
        over(y_a=zeros("y_a"), y_b=zeros("y_b")),
        "without the pieces that are upcast",
    ),
}


@pytest.mark.tier("full", but=["[no c]", "[chunks of 4]"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_a_wrong_program_has_a_structure(name):
    """DOT-002, DOT-003, DOT-006, GEM-003, GEM-004: in words, and of all entries that differ."""
    suite, profile, program, words = STRUCTURES[name]
    cases = [c for c in golden.load(suite) if c.parameters["dot_profile"] == profile]
    fields = fields_of_suite(MANIFEST[suite])
    operation = OPERATIONS[SUITES[suite].operation]
    expected = [field.name for field in fields if field.role == "expected"]
    answers = {}
    for case in cases:
        found = program(case, operation)
        answers[case.name] = {field: found[field] for field in expected}
    evidence = Evidence(suite, MANIFEST[suite]["operation"], fields, cases, answers)
    text = "\n".join(structure_lines(structures_of(list(samples_of(evidence)))))
    assert f": each entry is that {words}, in all " in text, text
    assert "match" not in text
