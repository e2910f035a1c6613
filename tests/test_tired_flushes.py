"""Wrong programs of one profile have the names of their mistakes, from results alone as well."""

import pytest
from structural_faults import MANIFEST
from tired_flushes import FLUSHES

from mor_ref import golden
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.diagnosing.diagnosis import diagnose

RESULT = ("result",)
P = "dot_subnormal_"
# The program, its profile and suite, and the deviations; without a second program, all fields.
NAMED = [
    ("results and +0", "cdna3_fp8", "dot_chunks", {P + "sums_flushed"}),
    ("results", "cdna3_fp8", "dot_chunks", {P + "sums_flushed_with_sign"}),
    ("c", "cdna3_fp8", "dot_chunks", {P + "c_flushed"}),
    ("elements", "cdna3_fp8", "dot_chunks", {P + "operands_flushed"}),
    ("all", "cdna3_fp8", "dot_chunks", {"dot_subnormals_flushed"}),
    ("results and +0", "cdna1_fp16", "dot", {P + "sums_flushed"}),
    ("results", "cdna1_bf16", "dot", {P + "sums_flushed_with_sign"}),
    ("last result", "cdna1_bf16", "dot", {P + "results_flushed_with_sign"}),
    ("c", "cdna1_bf16", "dot", {P + "c_flushed"}),
    ("elements", "cdna1_bf16", "dot", {P + "operands_flushed"}),
    ("all", "cdna1_bf16", "dot", {"dot_subnormals_flushed"}),
    ("all and +0", "cdna1_bf16", "dot", {"dot_subnormals_become_plus_zero"}),
    ("results", "f32_fma", "dot", {P + "sums_flushed_with_sign"}),
    ("results and +0", "f32_fma", "dot", {P + "sums_flushed"}),
    ("last result", "f32_fma", "dot", {P + "results_flushed_with_sign"}),
    ("c and +0", "f32_fma", "dot", {P + "c_becomes_plus_zero"}),
    ("c", "f32_fma", "dot", {P + "c_flushed"}),
    ("elements", "f32_fma", "dot", {P + "operands_flushed_with_sign"}),
    ("elements and +0", "f32_fma", "dot", {P + "operands_flushed"}),
    ("all", "f32_fma", "dot", {"dot_subnormals_flushed"}),
    ("ftz", "f32_fma", "dot", {"dot_flushed_in_binary32"}),
    ("last result", "f32_pairwise", "dot", {P + "results_flushed_with_sign"}),
    ("last result and +0", "f32_pairwise", "dot", {P + "results_flushed"}),
    ("c and +0", "f32_pairwise", "dot", {P + "c_becomes_plus_zero"}),
    ("elements", "f32_pairwise", "dot", {P + "operands_flushed_with_sign"}),
    ("both ends", "f32_pairwise", "dot", {"dot_subnormals_flushed_at_both_ends"}),
    ("both ends and +0", "f32_pairwise", "dot", {"dot_subnormals_become_plus_zero_at_both_ends"}),
    ("ftz", "f32_pairwise", "dot", {"dot_flushed_in_binary32"}),
    ("results", "exact", "dot", {P + "sums_flushed_with_sign"}),
    ("elements and results", "exact", "dot",
     {P + "operands_flushed", P + "sums_flushed_with_sign"}),
    ("all", "hopper_bf16", "dot", {"dot_subnormals_flushed"}),
    ("results", "hopper_fp8_promoted", "dot_scaled", {P + "sums_flushed_with_sign"}),
    ("elements and scales", "blackwell_nvfp4", "dot_scaled",
     {P + "operands_flushed", P + "scales_flushed"}),
    ("c last", "cdna3_fp8", "dot_chunks", {"dot_cdna3_c_added_last"}),
    ("c last", "cdna3_fp16", "dot_chunks", {"dot_cdna3_c_added_last"}),
    ("c cut last", "cdna3_fp16", "dot_chunks", {"dot_cdna3_c_cut_last"}),
    ("c cut last", "cdna3_fp16", "dot", {"dot_cdna3_c_cut_last"}),
    ("nearest", "cdna3_fp16", "dot_chunks", {"dot_cdna3_rounds_everywhere"}),
    ("nearest", "cdna3_fp8", "dot", {"dot_cdna3_rounds_everywhere"}),
    ("short chunks", "cdna2_bf16_1k", "dot", {"dot_chunks_are_half_as_long"}),
    ("scaled late", "blackwell_mxfp8", "dot_scaled", {"dot_scaled_after_the_sum_of_products"}),
    ("scaled late, and special", "blackwell_mxfp8", "dot_scaled",
     {"dot_scaled_after_the_sum_of_numbers"}),
]  # fmt: skip
# From results alone, a flushed c is a flushed sum in cdna3_fp8: the products have no such sums.
FROM_RESULTS = [
    *(one for one in NAMED if one[2] == "dot_scaled" or one[0] == "nearest"),
    ("results and +0", "cdna3_fp8", "dot_chunks", {P + "sums_flushed"}),
    ("results and +0", "cdna3_fp8", "dot_chunks", {P + "c_flushed"}),
    ("c", "cdna3_fp8", "dot_chunks", {P + "sums_flushed"}),
    ("c last", "cdna3_fp8", "dot_chunks", {"dot_cdna3_c_added_last"}),
]
USUAL = ("results and +0-cdna1_fp16-dot", "last result-cdna1_bf16-dot", "all-cdna1_bf16-dot",
         "c last-cdna3_fp16-dot_chunks", "nearest-cdna3_fp16-dot_chunks")  # fmt: skip


def whole_explanations(program, profile, suite, names=()):
    """Return the deviations of each explanation of all mismatches of a program."""
    cases = [c for c in golden.load(suite) if c.parameters["dot_profile"] == profile]
    fields = [f for f in fields_of(MANIFEST[suite]) if f.role != "expected" or f.name in names]
    if not names:
        fields = fields_of(MANIFEST[suite])
    wanted = [f.name for f in fields if f.role == "expected"]
    answers = {}
    for case in cases:
        found = FLUSHES[program].answer(suite, case)
        answers[case.name] = {n: found[n] for n in wanted if n in case.arrays}
    evidence = Evidence(suite, MANIFEST[suite]["operation"], fields, cases, answers)
    (found,) = diagnose([evidence]).suites
    return [{*one.deviations} for one in found.explanations if one.is_whole and not one.spared]


def id_of(one):
    return "-".join(one[:3])


@pytest.mark.tier("full", but=[f"[{name}]" for name in USUAL])
@pytest.mark.parametrize("one", NAMED, ids=map(id_of, NAMED))
def test_a_wrong_program_has_its_name(one):
    """DOT-007, DOT-010 to DOT-018."""
    assert one[3] in whole_explanations(*one[:3])


@pytest.mark.tier("full")
@pytest.mark.parametrize("one", FROM_RESULTS, ids=map(id_of, FROM_RESULTS))
def test_results_alone_name_it_as_well(one):
    """DOT-006, DOT-007, DOT-017, DOT-018: next to names of programs with the same results."""
    assert one[3] in whole_explanations(*one[:3], RESULT)
