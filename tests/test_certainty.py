"""A cause is certain if it has the bits of the candidate wherever it is tried, also in matches.

Each wrong kernel here has a mistake that no deviation is. A deviation is near enough to have its
bits in all entries that differ, but would change entries that match.
"""

import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import mor_ref
from mor_ref import golden
from mor_ref.exact import dot_binary32, metrics, policies
from mor_ref.exact.dot_terms import Chunk
from mor_ref.exact.encoding import encode
from mor_ref.exact.step import replaced
from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import Case
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.mistakes.catalogue import CAUSES, id_of
from mor_ref.operations import OPERATIONS
from mor_ref.schemes.fp8lm import exact as fp8lm
from mor_ref.schemes.levels import exact as levels
from mor_ref.schemes.selection import exact as selection
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.diagnosing.diagnosis import diagnose
from mor_ref.verify.diagnosing.diagnosis_records import Structure
from mor_ref.verify.reporting import text as report
from mor_ref.verify.reporting.structure_text import structure_lines

MANIFEST = read_manifest(bundled_files())["suites"]


def asked(suite, answer, *, most=1 << 30, chosen=lambda _: True):
    """Return the answers to the cases of a suite that have at most so many numbers."""
    entry = MANIFEST[suite]

    def is_asked(case):
        return max(array.size for array in case.arrays.values()) <= most and chosen(case)

    cases = [case for case in golden.load(suite) if is_asked(case)]
    witnesses = {id_of(name): (at["case"], at["field"]) for name, at in entry["kills"].items()}
    answers = {case.name: answer(entry["operation"], case) for case in cases}
    fields = fields_of(entry)
    return Evidence(suite, entry["operation"], fields, cases, answers, witnesses=witnesses)


def computed(operation, case):
    """Return what the exact model computes for a case."""
    inputs = {field: case.arrays[field] for field in OPERATIONS[operation].inputs}
    return dict(OPERATIONS[operation].exact(case.parameters, inputs))


def with_step(step, function):
    """Return a kernel that has another function for a step of the model."""

    def answer(operation, case):
        with replaced([(step, function)]):
            return computed(operation, case)

    return answer


def said(diagnosis):
    return "\n".join(report.diagnosis_lines(diagnosis, comparable=True))


def place_in_binary32(_, count, share):
    return min(int(np.float32(count) * np.float32(share)), count - 1)


def mean_in_binary64(_, own, limit):
    return own.nonzero == 0 or own.sum / 2**23 / own.nonzero < limit / 2**23


def unrounded_threshold(_, own, limit):
    threshold = round(Fraction(limit, 1 << 23), 3)
    return own.nonzero == 0 or Fraction(own.sum, own.nonzero << 23) < threshold


def one_is_not_noticed(_, own):
    return own.nonfinite <= 1


def product_in_binary64(_, part, c, profile):
    del profile
    with np.errstate(all="ignore"):
        wide = np.float64(part[0].a.value) * np.float64(part[0].b.value) + np.float64(c)
        return Chunk(None, None, float(np.float32(wide)))


def mean_in_pairs(reference, row, kind, arithmetic):
    found = float(reference(row, kind, arithmetic))
    if kind.name != "elastic1" or not math.isfinite(found):
        return found
    with np.errstate(all="ignore"):
        return float(np.float32(np.abs(np.array(row)).sum() / len(row)))


def sum_in_binary32(_, values, fmt, sums):
    del sums
    with np.errstate(all="ignore"):
        return encode(float(np.array(values, np.float32).sum(dtype=np.float32)), fmt, "rne")


SELECTIONS = ("selection_place_rounded", "selections", selection.place, place_in_binary32)
MEANS = ("MOR-002/mean-in-binary32", "decisions", metrics.mean_is_below, mean_in_binary64)
LOST = ("MOR-001/losses-ignored", "decisions", policies.loses_nothing, one_is_not_noticed)
THRESHOLDS = (
    "MOR-002/threshold-in-binary32",
    "decisions",
    metrics.mean_is_below,
    unrounded_threshold,
)
DOTS = ("dot_unfused", "dot", dot_binary32.f32_fma, product_in_binary64)
LEVELS = ("levels_mean_in_floating_point", "levels", levels.first_alpha, mean_in_pairs)
IN_FULL = pytest.mark.tier("full")


@pytest.mark.parametrize(
    ("name", "suite", "step", "function"),
    [
        SELECTIONS,
        LOST,
        pytest.param(*MEANS, marks=IN_FULL),
        pytest.param(*THRESHOLDS, marks=IN_FULL),
        pytest.param(*DOTS, marks=IN_FULL),
        pytest.param(*LEVELS, marks=IN_FULL),
    ],
)
def test_what_would_change_a_match_is_a_guess_at_most(name, suite, step, function):
    most = 64 if suite == "levels" else 1 << 30
    chosen = asked(
        suite,
        with_step(step, function),
        most=most,
        chosen=lambda case: suite != "dot" or case.name.startswith("f32_fma"),
    )
    (diagnosis,) = diagnose([chosen]).suites
    assert name in {one for found in diagnosis.explanations for one in found.deviations}
    assert not diagnosis.is_explained
    assert "explained by" not in said(diagnosis)
    if name == "selection_place_rounded":
        assert "would make others as well" in said(diagnosis)
        assert re.search(
            "it would also change case .* of selections, which matches", said(diagnosis)
        )


def test_what_would_change_another_suite_that_matches_is_a_guess_at_most():
    """Sums in binary32 look like rounding through binary32, which `encode` would show."""
    sums = asked("fp8lm_sums", with_step(fp8lm.sum_of, sum_in_binary32), most=2000)
    matching = asked("encode", lambda _, case: dict(case.arrays), most=300)
    (alone,) = diagnose([sums]).suites
    assert any("ENC-001/inputs-through-f32" in one.deviations for one in alone.explanations)
    (diagnosis,) = diagnose([sums], [matching]).suites
    assert not diagnosis.is_explained
    assert " of encode, which matches" in said(diagnosis)


def threshold_as_written(_, own, limit):
    return own.nonzero == 0 or own.sum / 2**23 / own.nonzero < round(limit / 2**23, 3)


def test_what_would_change_a_match_next_to_mismatches_is_a_guess_at_most():
    """The mean in binary64: alone, policies does not tell it from 0.045f; decisions does."""
    decisions = asked("decisions", with_step(metrics.mean_is_below, mean_in_binary64))
    means = asked(
        "policies",
        with_step(metrics.mean_is_below, threshold_as_written),
        chosen=lambda case: re.match(r"e4m3_(at|above)_its_limit.f32.tensor", case.name),
    )
    (alone,) = diagnose([means]).suites
    assert ("MOR-002/threshold-in-binary32",) in [one.deviations for one in alone.explanations]
    assert alone.is_explained
    for order in ([decisions, means], [means, decisions]):
        (_, found) = sorted(diagnose(order).suites, key=lambda one: one.suite)
        assert not found.is_explained
        assert (
            "it would also change an entry of case mean_relative_error of decisions, which matches"
        ) in said(found)


def test_a_mistake_of_two_suites_explains_both():
    """One that leaves mismatches of another suite, but changes no match there, is no guess."""
    step = (metrics.mean_is_below, CAUSES["MOR-002/threshold-in-binary32"].changes[0])
    right = asked("decisions", with_step(*step))
    means = asked(
        "policies", with_step(*step), chosen=lambda case: case.name.startswith("e4m3_at_its_limit")
    )
    found = diagnose([right, means]).suites
    assert [[one.deviations for one in suite.explanations] for suite in found] == [
        [("MOR-002/threshold-in-binary32",)]
    ] * 2
    assert all(one.is_explained for one in found)


@pytest.mark.parametrize(
    ("suite", "field"), [("nvfp4_te", "block_scale"), ("quantize", "scale"), ("mx", "scale")]
)
def test_nothing_explains_the_bits_of_the_reference(suite, field):
    """The expected values are wrong in places that would look like a mistake of the candidate."""
    right = asked(suite, lambda _, case: dict(case.arrays), most=40)
    wrong = []
    for case in right.cases:
        found = case.arrays.get(field)
        rolled = {} if found is None else {field: np.roll(found, 1)}
        wrong.append(Case(case.name, case.parameters, {**case.arrays, **rolled}))
    (diagnosis,) = diagnose([replace(right, cases=wrong)]).suites
    assert diagnosis.explanations == diagnosis.structures == ()
    differing = [
        one.arrays[field] != case.arrays[field]
        for one, case in zip(right.cases, wrong, strict=True)
        if field in case.arrays
    ]
    count = sum(int(one.sum()) for one in differing)
    assert said(diagnosis) == (
        f"{count:,} mismatches have the bits of the reference, so the expected values are wrong: "
        "check them with `mor-ref golden check`"
    )


def test_one_value_is_the_value_and_no_cause(monkeypatch):
    """Negative exponents become 0, so that scales are 1, which is also the scale of the tensor.

    The amax of each tensor is 300, so the scale of its amax is 1 by MXS-003.
    """
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)
    x = np.ones((8, 320), np.float32)
    x[:, ::32] = np.exp2(np.random.default_rng(1).integers(6, 8, (8, 10)))
    x[3, 40] = 300

    def function(operation, parameters, inputs):
        found = OPERATIONS[operation].exact(parameters, inputs)
        return {"scale": np.maximum(found["scale"], np.uint8(127))}

    text = str(mor_ref.verify(function, inputs={"x": x}, recipe="mxfp8"))
    assert "each entry is 0x7F (1) (or that of the amax of the whole tensor" in text
    assert "scale: each entry is that of the amax" not in text


@pytest.mark.parametrize(("kept", "word"), [(0, ""), (2, "perhaps ")])
def test_a_structure_that_would_change_a_match_is_one_perhaps(kept, word):
    one = Structure(("code",), "each entry is 0x0", 3, 3, kept=kept)
    (line,) = structure_lines([one])
    assert line.startswith(f"code: {word}each entry is 0x0, in all 3 entries that differ")
    assert one.is_certain == one.is_of_all == (kept == 0)


def test_deviations_that_were_not_tried_are_counted(monkeypatch):
    """Those that the suite exposes in a case that differs come first: one of them suffices."""
    monkeypatch.setattr("mor_ref.verify.diagnosing.tried_alone.ALONE_END", 1)
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)

    def codes_of(_, case):
        found = computed("mx_block", case)
        return {"code": found["code"] ^ (np.arange(found["code"].shape[1]) % 7 == 3)}

    (diagnosis,) = diagnose([asked("mx_blocks", codes_of, most=2000)]).suites
    assert diagnosis.untried_alone > 40
    assert (
        f"{diagnosis.untried_alone} mistakes not tried: the search for a single one ends after "
        in said(diagnosis)
    )
