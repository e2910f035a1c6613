"""Whole wrong programs of dot products: each suite shows the mistake, and the diagnosis names it.

The programs are those of `dots_by_text`, which was written from the text alone, with one mistake.
"""

import pytest
from structural_faults import MANIFEST
from tired_dots import (
    LONG,
    PROGRAMS,
    SPECIAL,
    SUITES,
    Program,
    flushing,
    flushing_operations,
    taking_fp4_as_fp8,
    to_zero,
)
from tired_sums import SUMS

from mor_ref import formats, golden
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.deviations import DEVIATIONS
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.diagnosing.diagnosis import diagnose

PROFILES = ("exact", "f32_fma", "f32_pairwise", "volta_fp16_from_f16", "hopper_fp16_f16_k8",
            "hopper_fp8_f16", "hopper_bf16", "hopper_fp8_promoted", "cdna1_bf16", "cdna2_bf16_k4",
            "cdna3_fp16", "cdna3_fp8", "blackwell_mxfp8", "blackwell_nvfp4",
            "blackwell_mxfp4")  # fmt: skip
# Of a row of one chunk, the given c is the only one, and the sum is the result.
ALIKE = {
    "dot_chunks": (
        {"dot_subnormal_c_flushed", "dot_subnormal_given_c_flushed"},
        {"dot_subnormal_sums_flushed_with_sign", "dot_subnormal_results_flushed_with_sign"},
    )
}


def evidence_of(program, suite):
    """Return the answers of a program to the cases of some profiles."""
    cases = [c for c in golden.load(suite) if c.parameters["dot_profile"] in PROFILES]
    fields = fields_of(MANIFEST[suite])
    wanted = [field.name for field in fields if field.role == "expected"]
    answers = {}
    for case in cases:
        found = program.answer(suite, case)
        answers[case.name] = {n: found[n] for n in wanted if n in case.arrays}
    return Evidence(suite, MANIFEST[suite]["operation"], fields, cases, answers)


def names_of(evidence):
    """Return the deviations that explain all mismatches; there is at least one mismatch."""
    (found,) = diagnose([evidence]).suites
    assert all(one.is_whole and not one.spared for one in found.explanations)
    return {name for one in found.explanations for name in one.deviations}


QUICK = "dot_subnormal_sums_flushed_with_sign-dot_chunks"
NAMED = {**PROGRAMS, **SUMS}
PAIRS = [(name, suite) for name in NAMED for suite in NAMED[name].suites]


@pytest.mark.tier("full", but=[f"[{QUICK}]"])
@pytest.mark.parametrize(("name", "suite"), PAIRS, ids=map("-".join, PAIRS))
def test_the_diagnosis_names_it(name, suite):
    """DOT-003, DOT-007, DOT-010, DOT-011."""
    wanted = next((names for names in ALIKE.get(suite, ()) if name in names), {name})
    assert names_of(evidence_of(NAMED[name], suite)) == wanted


@pytest.mark.tier("full")
def test_a_flush_in_both_formats_is_one_of_results():
    """DOT-010: if a row is a single chunk."""
    both = Program(SUITES, flushing(to_zero), fallback=flushing_operations(to_zero))
    assert names_of(evidence_of(both, "dot_chunks")) == {"dot_subnormal_results_flushed"}


@pytest.mark.parametrize("name", NAMED)
def test_the_suites_of_a_program_are_those_of_its_deviation(name):
    assert NAMED[name].suites == DEVIATIONS[name].suites


@pytest.mark.tier("full", but=["[dot_chunks]"])
@pytest.mark.parametrize("suite", SUITES)
def test_without_a_mistake_they_match(suite):
    evidence = evidence_of(Program(SUITES), suite)
    assert diagnose([evidence]).suites == ()


OF_LONG = [(name, suite) for name, (_, program) in LONG.items() for suite in program.suites]


def differing(program, suite, cases):
    """Return the names of cases to which a program has another result."""
    wanted = {case.name: case.arrays["result"] for case in cases}
    found = {case.name: program.answer(suite, case)["result"] for case in cases}
    return {name for name in wanted if (found[name] != wanted[name]).any()}


@pytest.mark.parametrize(("name", "suite"), OF_LONG, ids=map("-".join, OF_LONG))
def test_a_loop_that_is_right_for_a_few_chunks_shows(name, suite):
    """DOT-003, DOT-011, DOT-012, DOT-013, DOT-014: in each profile that has a long row.

    A product of matrices has pieces of one chunk, too, in which loops are right.
    """
    families, program = LONG[name]
    cases = [case for case in golden.load(suite) if case.name.endswith(".long")]
    cases = [case for case in cases if family_of(case) in families and not has_short_pieces(case)]
    assert cases
    assert differing(program, suite, cases) == {case.name for case in cases}


def family_of(case):
    """Return the family of the profile of a case."""
    return DOT_PROFILES[case.parameters["dot_profile"]].family


def has_short_pieces(case):
    """Return whether the pieces of a case have at most one chunk each."""
    profile = DOT_PROFILES[case.parameters["dot_profile"]]
    is_in_pieces = "record" in case.parameters and not profile.needs_scales
    return is_in_pieces and case.parameters["scale_block"] <= profile.chunk


def test_programs_without_a_mistake_match_long_rows():
    for suite in ("dot", "dot_scaled", "matmul"):
        cases = [case for case in golden.load(suite) if case.name.endswith(".long")]
        assert differing(Program((suite,)), suite, cases) == set()


def specials_of(suite, name):
    """Return the cases of a suite that have infinities for a program, of some profiles."""
    ending = (
        ".specials" if suite != "matmul" else ".chunks" if name == "an infinite c" else ".elements"
    )
    cases = [case for case in golden.load(suite) if case.name.endswith(ending)]
    named = [case for case in cases if case.parameters["dot_profile"] in PROFILES]
    found = [case for case in named if suite != "matmul" or family_of(case) != "exact"]
    return [case for case in found if "infinite c" not in name or can_keep(case)]


def can_keep(case):
    """Return whether a case has chunks of NVIDIA that take its c."""
    return family_of(case) in ("t_fdpa", "st_fdpa")


def has_infinities(case):
    """Return whether an operand of a case has an infinite number."""
    if "record" in case.parameters:
        return True
    of = [formats[case.parameters[f"format_{name}"]] for name in "ab"]
    return any(fmt.infinity_code is not None for fmt in of)


def flushes(case, name):
    """Return whether a profile flushes the subnormal numbers that a program flushes."""
    return "subnormal" in name and family_of(case) == "ftz_mul_add"


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("name", SPECIAL)
def test_every_suite_shows_wrong_infinities(name, suite):
    """DOT-008, GEM-003: in each pair of formats with infinities, of some profiles."""
    cases = [case for case in specials_of(suite, name) if has_infinities(case)]
    cases = [case for case in cases if not flushes(case, name)]
    assert cases
    assert differing(SPECIAL[name], suite, cases) == {case.name for case in cases}


def test_blocks_of_fp4_among_fp8_show_a_wrong_upcast():
    """GEM-004: in each profile that multiplies e4m3."""
    cases = [case for case in golden.load("matmul") if case.name.endswith(".units")]
    shown = {case.name for case in cases if "e4m3" in DOT_PROFILES[profile_of(case)].formats}
    assert len(shown) == 4
    program = Program(("matmul",), pieces=taking_fp4_as_fp8)
    assert differing(program, "matmul", cases) == shown


def profile_of(case):
    """Return the name of the profile of a case."""
    return case.parameters["dot_profile"]
