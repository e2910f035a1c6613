"""Whole wrong kernels on a user's tensors: the structure of their mistakes is named."""

import re
from dataclasses import replace
from functools import partial

import ml_dtypes
import numpy as np
import pytest
import structural_faults
from structural_faults import Fault
from test_diagnosis import MANIFEST, explanations
from tired_kernels import (
    KERNELS,
    TWICE,
    Tired,
    cases_of,
    codes,
    every_third_row_is_rounded_down,
    evidence_of,
    mxfp8,
    nvfp4,
    tensors,
)

from mor_ref import layouts
from mor_ref.deviations import applied
from mor_ref.exact.scales import IdealScale, ideal_scale
from mor_ref.exact.step import replaced
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.verify.diagnosing.diagnosis import diagnose
from mor_ref.verify.diagnosing.displacement import displacement
from mor_ref.verify.diagnosing.entries import entries_of
from mor_ref.verify.diagnosing.sample import LARGEST_TENSOR, samples_of
from mor_ref.verify.diagnosing.scoring import Changes, Score
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting.structure_text import structure_lines
from mor_ref.verify.reporting.text import diagnosis_lines

FULL = pytest.mark.tier("full")


def structures(recipe, kernel):
    return structures_of(list(samples_of(evidence_of(Tired(recipe, kernel, ())))))


@pytest.mark.tier("full", but_one_in=9)
@pytest.mark.parametrize("name", KERNELS)
def test_a_tired_kernel_is_named(name):
    """And its counts are of the plain array, without padding."""
    one = KERNELS[name]
    evidence = evidence_of(one)
    found = structures_of(list(samples_of(evidence)))
    text = "\n".join(structure_lines(found))
    for words in one.says:
        assert re.search(words, text, re.MULTILINE), text
    for case in evidence.cases:
        for compared in evidence.comparisons[case.name]:
            assert compared.expected.shape == case.arrays[compared.suite_field].shape


def said_of(one, monkeypatch):
    """Return the diagnosis of a kernel on a few rows, as text."""
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)
    x = {name: array[:16, :104] for name, array in tensors().items()}
    monkeypatch.setattr("tired_kernels.tensors", lambda: x)
    cases_of.cache_clear()
    (found,) = diagnose([evidence_of(one)]).suites
    cases_of.cache_clear()
    return "\n".join(diagnosis_lines(found, comparable=True))


def with_noise(x):
    """Flip low bits of a third of the codes; some codes become NaN, as without saturation."""
    random = np.random.default_rng(1)
    flips = (random.random(x.shape) < 0.3) * random.integers(1, 4, x.shape)
    return mxfp8(x) | {"code": mxfp8(x)["code"] ^ flips.astype(np.uint8)}


def with_a_wrong_last_block(x):
    """Double the scale of the last block: where it is less, this is what a deviation does."""
    scale = mxfp8(x)["scale"]
    scale[:, -1] += 1
    return {"scale": scale, "code": codes(x, scale)}


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", TWICE)
def test_a_deviation_keeps_its_name_next_to_a_structure(name, monkeypatch):
    """Also if it is in one field alone, and less than half of all mismatches."""
    text = said_of(TWICE[name], monkeypatch)
    for words in TWICE[name].says:
        assert re.search(words, text), text


@pytest.mark.tier("full")
@pytest.mark.parametrize(
    "kernel", [with_noise, with_a_wrong_last_block, every_third_row_is_rounded_down]
)
def test_nothing_is_guessed_by_chance_or_next_to_a_structure(kernel, monkeypatch):
    text = said_of(Tired("mxfp8", kernel, ()), monkeypatch)
    assert "guess:" not in text
    assert "after `" not in text
    if kernel is every_third_row_is_rounded_down:  # of whose entries not all differ
        assert ", or enough of them for a guess" in text
        assert "differs only if row mod 3 is 2: " in text
    elif kernel is with_noise:
        assert ", or enough of them for a guess" in text
    else:
        first, second, third, last = text.splitlines()
        assert first.endswith(" mismatches, but their structure does")
        assert second.startswith("scale: each entry is the expected one + 1, in all ")
        assert "differs only if the column is the last: all " in third
        assert last.startswith("code: each entry is that of x with the given scale, in all ")


def cut_toward_zero(x, first):
    """Quantize to MXFP8; codes are rounded toward zero from a column on."""
    found = mxfp8(x)
    powers = np.exp2(np.repeat(found["scale"].astype(np.float64) - 127, 32, axis=1))
    value = found["code"].view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    is_above = np.abs(value) > np.abs(x / powers[:, : x.shape[1]])
    is_above[:, :first] = False
    return found | {"code": found["code"] - is_above.astype(np.uint8)}


@pytest.mark.tier("full")
def test_a_deviation_of_a_few_columns_comes_before_a_constant(monkeypatch):
    """It would change many others; each code that differs is one less."""
    text = said_of(Tired("mxfp8", partial(cut_toward_zero, first=96), ()), monkeypatch)
    first, *others = text.splitlines()
    assert "a guess: `ENC-003/truncated` (rule ENC-003) explains 100.0 % of them" in first
    only_if = "code: an entry that `ENC-003/truncated` would change differs only if "
    where = next(line for line in others if only_if in line)
    assert ": all " in where
    assert "expected one - 1" not in text


@pytest.mark.tier("full")
def test_a_deviation_of_another_suite_may_hold_in_a_part_of_a_large_tensor(monkeypatch):
    random, found = np.random.default_rng(7), []
    rows_of_large = LARGEST_TENSOR // 224 + 1
    for suite, rows, columns, first in (("corners", 8, 64, 0), ("own", rows_of_large, 224, 192)):
        x = random.standard_normal((rows, columns)).astype(np.float32)
        monkeypatch.setattr("tired_kernels.tensors", lambda x=x: {"x": x})
        cases_of.cache_clear()
        case, *_ = cases_of("mxfp8")  # and, of the large one, its corners
        answers = {case.name: cut_toward_zero(x, first)}
        evidence = evidence_of(Tired("mxfp8", mxfp8, ()))
        found.append(replace(evidence, suite=suite, cases=[case], answers=answers))
    cases_of.cache_clear()
    corners, own = diagnose(found).suites
    assert corners.explanations[0].deviations == ("ENC-003/truncated",)
    text = "\n".join(diagnosis_lines(own, comparable=True))
    assert own.is_large
    assert "a guess: `ENC-003/truncated` (rule ENC-003) explains 100.0 % of them" in text
    where = "it is in the last block of its row of blocks"
    assert f"that `ENC-003/truncated` would change differs only if {where}: all " in text
    assert "expected one - 1" not in text


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("scale", layouts.swizzled_128x4, "swizzled_128x4, name it scale@swizzled_128x4"),
        ("scale@swizzled_128x4", np.copy, "in rows and columns, name it scale"),
        ("scale", np.transpose, "transposed, name it scale@transposed"),
    ],
)
def test_a_layout_that_its_name_does_not_have_is_named(name, change, words):
    evidence = evidence_of(Tired("mxfp8", lambda x: {name: change(mxfp8(x)["scale"])}, ()))
    (found, _) = evidence.differences()
    assert found.problem.endswith(f" is expected; if it is {words}")


def test_wrong_padding_is_counted_apart():
    """If nothing else is wrong, it is the problem; no padding is counted as an entry."""

    def kernel(x, *, is_right):
        scale = mxfp8(x)["scale"]
        scale[0, 0] += not is_right
        flat = layouts.swizzled_128x4(scale)
        return {"scale@swizzled_128x4": np.where(flat == 0, 7, flat)}

    for is_right in (True, False):
        of_it = Tired("mxfp8", partial(kernel, is_right=is_right), ())
        first, *_ = evidence_of(of_it).differences()
        if is_right:
            assert first.problem == (
                "is as expected, but has 640 entries of padding that are not 0; write 0 there "
                "(VEC-008)"
            )
        else:
            assert (first.count, first.of, first.padding) == (1, 48 * 8, 640)
            assert "1 of 384 differ (and 640 of its padding), the first at [0, 0]: " in str(first)


def test_changes_by_chance_are_no_surprise():
    """Three of three are by chance if half of all entries differ; fifty of sixty are not."""
    assert Changes(3, 3).bits(0.25) < 20 < Changes(50, 60).bits(0.25)
    assert Changes(10, 60).bits(0.25) == 0
    assert not Score(3, 9, 0, {"code": Changes(3, 3)}).is_more_than_chance({"code": 0.5})
    assert Score(50, 99, 0, {"code": Changes(50, 60)}).is_more_than_chance({"code": 0.5})
    whole = Score(1, 2, 3, {"a": Changes(1, 2)}) + Score(1, 1, 0, {"a": Changes(2, 3)})
    assert whole == Score(2, 3, 3, {"a": Changes(3, 5)})


def test_an_explained_mismatch_is_worth_two_added_ones():
    assert Score(5, 9, 3).worth > Score(9, 9, 12).worth > Score(2, 9, 0).worth
    assert Score(5, 9, 9).worth < Score(1, 9, 0).worth


SHORT = {
    "error sums, each by another distance": (range(1000, 1008), range(5, 45, 5), True),
    "scales of powers of two, one step lower": (range(100, 108), [1] * 8, False),
    "binary32 scales, all of them halved": (range(1 << 30, 1 << 31, 1 << 27), [1 << 23] * 8, False),
    "two that are far away": ([0, 1 << 20], [1 << 9, 1 << 10], False),
    "one value in each": (range(1 << 9, 1 << 16, 1 << 13), range(1 << 9, 1 << 16, 1 << 13), False),
}


@pytest.mark.parametrize("name", SHORT)
def test_a_short_field_is_explained_if_its_values_are_no_chance(name):
    """Its entries count by how far they are from the expected ones; each distance counts once."""
    expected, apart, is_explained = SHORT[name]
    values = frozenset((a, a - by) for a, by in zip(expected, apart, strict=True))
    few = Changes(*[len(values)] * 3, values)
    score = Score(9, 500, 0, {"a": few, "code": Changes(1, 500, 491)})
    assert score.whole_fields({"a": 1.0, "code": 0.9}) == ({"a": few.right} if is_explained else {})
    assert few._replace(differing=len(values) + 1).bits(0.5) < 20  # one is left
    in_two = few.joined(Changes(*[len(values)] * 3, values))  # twice the same case
    assert in_two.bits(0.5) == max(few.bits(0.5), 2.0 * len(values))


ROWS = "e4m3:fp32:row"


@pytest.mark.tier("full")
@pytest.mark.parametrize("name", ["error_truncated", None])
def test_a_deviation_of_a_short_field_is_named_next_to_displaced_codes(name, monkeypatch):
    """Eight error sums, all different; and none is named where each is one less."""
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)
    monkeypatch.setattr("tired_kernels.tensors", lambda: {"x": tensors()["whole"][:8, :71]})

    def kernel(x):
        deviations = [CAUSES[name]] if name else []
        (case,) = cases_of(ROWS)
        with applied(*deviations):
            found = OPERATIONS["quantize"].exact(case.parameters, {"x": x.view(np.uint32)})
        less = 0 if name else 1
        return {"sum": found["sum"] - less, "code": np.roll(found["code"], 1, axis=1)}

    cases_of.cache_clear()
    (found,) = diagnose([evidence_of(Tired(ROWS, kernel, ()))]).suites
    cases_of.cache_clear()
    named = [(one.deviations, one.is_whole and one.is_displaced) for one in found.explanations]
    assert named == ([((name,), True)] if name else [])
    assert found.structures[0].words.endswith("expected value of [i, j - 1], around the end")


def test_swapped_nibbles_of_rows_of_odd_length_are_one_mistake(monkeypatch):
    """VEC-005: the last code of a row is in place of the padding, and 0 in place of the code."""
    monkeypatch.setattr("tired_kernels.tensors", lambda: {"x": tensors()["whole"][:8, :71]})
    cases_of.cache_clear()
    found = structures("nvfp4", KERNELS["even_codes_in_the_high_nibble"].kernel)
    cases_of.cache_clear()
    (line,) = structure_lines(found)
    assert line.startswith("code: the two nibbles of each byte are swapped, in all ")


@pytest.mark.tier("full")
def test_copies_are_no_further_evidence():
    """The same two entries in twenty tensors are those of two entries."""
    first, *_ = cases_of("mxfp8")
    scale = first.arrays["scale"].copy()
    wrong = [k for k in range(len(scale) - 1) if scale[k, 3] != scale[k + 1, 3]][:2]
    scale[wrong, 3] = scale[[k + 1 for k in wrong], 3]
    evidence = evidence_of(Tired("mxfp8", lambda _: {"scale": scale}, ()))
    copies = [replace(first, name=f"copy{k}") for k in range(20)]
    answers = {one.name: {"scale": scale} for one in copies}
    samples = list(samples_of(replace(evidence, cases=copies, answers=answers)))
    entries = entries_of("scale", samples)
    assert len(entries.differing) == 40
    assert displacement(entries) is None


@pytest.mark.tier("full", but=["[mxfp8-mxfp8]"])
@pytest.mark.parametrize(("recipe", "kernel"), [("mxfp8", mxfp8), ("nvfp4", nvfp4)])
def test_the_kernels_are_right_before_the_mistake(recipe, kernel):
    assert structures(recipe, kernel) == []


def by_reciprocal(_, largest, amax):
    """Return a scale of two operations in binary32, which loses bits or is infinite at the ends."""
    with np.errstate(over="ignore"):
        scale = np.float32(largest) * (np.float32(1) / np.float32(amax))
    bits = int(np.minimum(scale, np.finfo(np.float32).max).view(np.uint32))
    return IdealScale(bits & 0x7FFFFF, (bits >> 23) - 127)


@pytest.mark.tier("full")
@pytest.mark.parametrize("suite", ["scale_steps", pytest.param("quantize", marks=FULL)])
def test_a_scale_by_a_reciprocal_is_named(suite):
    """SCL-002: also at an amax whose reciprocal is subnormal, or beyond binary32."""
    exact = OPERATIONS[MANIFEST[suite]["operation"]].exact
    with replaced([(ideal_scale, by_reciprocal)]):
        evidence = structural_faults.evidence_of(
            Fault(suite, lambda case, _: exact(case.parameters, case.arrays), ())
        )
    assert {"SCL-002/quotient-by-reciprocal"} in explanations(*diagnose([evidence]).suites)
