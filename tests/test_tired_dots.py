"""Whole wrong programs of dot products: each suite shows the mistake, and the diagnosis names it.

The programs are those of `dots_by_text`, which was written from the text alone, with one mistake.
"""

import pytest
from structural_faults import MANIFEST
from tired_dots import PROGRAMS, SUITES, Program, flushing, to_zero

from mor_ref import golden
from mor_ref.deviations import DEVIATIONS
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.diagnosing.diagnosis import diagnose

PROFILES = ("exact", "f32_fma", "volta_fp16_from_f16", "hopper_fp16_f16_k8", "hopper_fp8_f16",
            "hopper_bf16", "hopper_fp8_promoted", "cdna1_bf16", "cdna2_bf16_k4", "cdna3_fp16",
            "cdna3_fp8", "blackwell_mxfp8", "blackwell_nvfp4", "blackwell_mxfp4")  # fmt: skip
# Of a row of one chunk, the given c is the only one.
ALIKE = {"dot_chunks": {"dot_subnormal_c_flushed", "dot_subnormal_given_c_flushed"}}


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


QUICK = ("dot_subnormal_sums_flushed_with_sign-dot_chunks", "dot_promoted_sums_go_on-dot_scaled",
         "dot_blocks_scaled_by_fma-matmul")  # fmt: skip
PAIRS = [(name, suite) for name in PROGRAMS for suite in PROGRAMS[name].suites]


@pytest.mark.tier("full", but=[f"[{name}]" for name in QUICK])
@pytest.mark.parametrize(("name", "suite"), PAIRS, ids=map("-".join, PAIRS))
def test_the_diagnosis_names_it(name, suite):
    """DOT-003, DOT-007, DOT-010, DOT-011."""
    wanted = ALIKE.get(suite, set())
    found = names_of(evidence_of(PROGRAMS[name], suite))
    assert found == (wanted if name in wanted else {name})


def test_a_flush_in_both_formats_is_two_deviations():
    """DOT-010."""
    both = Program(SUITES, flushing(to_zero))
    (found,) = diagnose([evidence_of(both, "dot_chunks")]).suites
    names = {"dot_subnormal_sums_flushed", "dot_f16_subnormal_sums_flushed"}
    assert names in [{*one.deviations} for one in found.explanations if one.is_whole]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_suites_of_a_program_are_those_of_its_deviation(name):
    assert PROGRAMS[name].suites == DEVIATIONS[name].suites


@pytest.mark.tier("full", but=["[dot_chunks]"])
@pytest.mark.parametrize("suite", SUITES)
def test_without_a_mistake_they_match(suite):
    evidence = evidence_of(Program(SUITES), suite)
    assert diagnose([evidence]).suites == ()
