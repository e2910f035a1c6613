"""The structure of mismatches: right bits in wrong places are named with the places."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from structural_faults import FAULTS, Fault, evidence_of
from test_diagnosis import in_format, planted, said, smallest_suites, some_of

import mor_ref
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.deviations.domains import LARGE
from mor_ref.golden import bundled_files
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.diagnosing.diagnosis import diagnose
from mor_ref.verify.diagnosing.diagnosis_records import Structure, SuiteDiagnosis
from mor_ref.verify.diagnosing.displacement import displacement
from mor_ref.verify.diagnosing.entries import entries_of
from mor_ref.verify.diagnosing.maps import maps
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting import report_files
from mor_ref.verify.reporting import text as report
from mor_ref.verify.reporting.structure_text import identity, structure_lines
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

CHEAP = (
    "[scales_written_transposed]",
    "[race_on_the_last_tile]",
    "[nibbles_swapped]",
    "[amax_of_the_first_64_of_each_block]",
    "[global_scale_of_the_call_before]",
    "[ties_of_the_largest_wrong]",
    "[negative_numbers_wrong]",
)


@pytest.fixture
def without_pairs(monkeypatch):
    monkeypatch.setattr("mor_ref.verify.diagnosing.diagnosis.PAIRS_END", 0)


@pytest.mark.tier("full", but=CHEAP)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_of_structure_is_named(name):
    """And its counts are those of the answers, counted again from these alone."""
    evidence = evidence_of(FAULTS[name])
    found = structures_of(list(samples_of(evidence)))
    text = "\n".join(structure_lines(found))
    for words in FAULTS[name].says:
        assert re.search(words, text), text
    for one in found:
        assert one.of == sum(differing(evidence, field) for field in one.fields)
        assert one.explained <= one.of
        if one.condition is not None and not one.words:
            size = sum(case.arrays[one.fields[0]].size for case in evidence.cases)
            assert one.condition.there + one.condition.elsewhere == size
            assert one.condition.differing == one.of


def differing(evidence, field):
    """Count the entries of a field that differ; of two codes in a byte, each code."""
    total = 0
    for case in evidence.cases:
        if field in case.arrays:
            apart = evidence.answers[case.name][field] ^ case.arrays[field]
            halves = (apart & 15, apart >> 4) if field == "packed" else (apart,)
            total += sum(np.count_nonzero(half) for half in halves)
    return total


CLAIMS = ("expected value of [", "row by row", " another order")
OPERANDS_EXCHANGED = "dot_switchback_w_first", "dot_integers"  # each scale with each, in one axis
IN_ANOTHER_ORDER = ("affine_groups", "levels_packed", "mixed_layers", "shared_packed")


@pytest.mark.tier("full", one_in=10)
@pytest.mark.parametrize("share", range(20))
def test_no_other_place_is_claimed_of_a_deviation(share):
    """Many inputs lie in order: another rounding leads to the bits of the next one.

    Deviations of the order of dimensions or of packed codes have the bits of other places, and of
    two choices one is always that of another place.
    """
    claims = {}
    for name, deviation in [*DEVIATIONS.items()][share::20]:
        suite = next(one for one in smallest_suites(deviation) if one not in LARGE)
        for one in structures_of(list(samples_of(some_of(name, suite)))):
            if any(words in one.words for words in CLAIMS):
                claims[name, suite] = one.words
    of_order = {key for key in claims if key[1] in IN_ANOTHER_ORDER or key == OPERANDS_EXCHANGED}
    assert {key: words for key, words in claims.items() if key not in of_order} == {}


@pytest.mark.tier("full")
def test_every_report_has_the_structure():
    """The console, the page and JSON."""

    def wrong(operation, parameters, inputs):
        scale = OPERATIONS[operation].engine(parameters, inputs)["scale"]
        return {"scale": np.concatenate([scale[1:], scale[-1:]])}

    found = verify(PythonFunction("next", wrong), suites_in(bundled_files(), ["mx_blocks"]))
    sentence = "scale: [i] has the expected value of [i + 1], in all "
    assert "mismatches, but their structure does" in said(found.diagnosis.suites[0])
    assert f"\n  {sentence}" in "\n".join(report.lines(found))
    page = html.unescape(report_files.as_html(found))
    assert sentence[1:] in page
    assert "No known mistake explains the mismatches, but their structure does" in page
    assert "is not known" not in page
    (record,) = json.loads(report_files.as_json(found))["diagnosis"]["suites"]
    (structure,) = record["structures"]
    assert structure["fields"] == ["scale"]
    assert structure["explained"] == structure["of"] == found.results[0].differing
    assert structure["kept"] == 0


def test_a_report_says_what_was_tried_on_large_tensors():
    """Deviations of other suites and the structure: other deviations may explain it, too."""
    rolled = Structure(("code",), "[i, j] has the expected value of [i + 3, j]", 20, 20, 0)
    found = SuiteDiagnosis("own", 20, (), is_large=True)
    sentence = "no mistake that explains another suite explains the 20 mismatches"
    assert said(found) == (
        f"{sentence}; on tensors as large as these no other is tried, and no structure is found"
    )
    part = said(replace(found, structures=(replace(rolled, explained=12),)))
    assert part.splitlines()[0] == f"{sentence}; on tensors as large as these no other is tried"
    displaced = said(replace(found, structures=(rolled,)))
    assert displaced.splitlines()[0] == f"{sentence}, but their structure does"
    small = said(replace(found, structures=(rolled,), is_large=False))
    assert small.startswith("no known mistake explains the 20 mismatches, but")


@pytest.mark.tier("full")
@pytest.mark.usefixtures("without_pairs")
def test_what_a_deviation_leaves_has_a_structure_too():
    """The codes have ties away from zero, and the last ones of a row are not written."""

    def wrong(operation, parameters, inputs):
        found = planted("ENC-003/ties-away").function(operation, parameters, inputs)
        return found | {"code": np.where(np.arange(inputs["x"].shape[1]) >= 30, 0, found["code"])}

    found = verify(PythonFunction("two", wrong), suites_in(bundled_files(), ["mx_blocks"]))
    (diagnosis,) = found.diagnosis.suites
    assert not diagnosis.is_explained
    text = said(diagnosis)
    assert "after `ENC-003/ties-away`: each entry is 0" in text, text
    assert "only if column >= 30: " in text


@pytest.mark.tier("full")
def test_where_a_deviation_holds_is_said():
    """Other cases match which it would change: the condition is what separates them."""
    (diagnosis,) = in_format("ENC-003/ties-away", "e5m2", "quantize_steps").diagnosis.suites
    (one,) = diagnosis.structures
    assert one.beyond == ("ENC-003/ties-away",)
    assert one.condition.words == "format is e5m2"
    assert one.condition.differing == one.condition.there > 0
    assert one.condition.elsewhere > 0
    assert (
        "code: an entry that `ENC-003/ties-away` would change differs only if format is e5m2"
        in (said(diagnosis))
    )


@pytest.mark.tier("full")
def test_what_is_explained_has_no_structure():
    found = verify(planted("ENC-003/ties-away"), suites_in(bundled_files(), ["quantize_steps"]))
    assert found.diagnosis.suites[0].is_explained
    assert found.diagnosis.suites[0].structures == ()


@pytest.mark.tier("full", but=["[1]"])
@pytest.mark.parametrize("seed", range(3))
def test_mistakes_without_structure_have_none(seed):
    """Bits that flip at random: no place and no condition."""
    evidence = evidence_of(FAULTS["ties_of_the_largest_wrong"])
    rng = np.random.default_rng(seed)
    for case in evidence.cases:
        answer = evidence.answers[case.name]
        answer["block_scale"] = case.arrays["block_scale"].copy()
        code = case.arrays["code"]
        answer["code"] = code ^ (rng.random(code.shape) < 0.03).astype(np.uint8)
    assert structures_of(list(samples_of(evidence))) == []


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("name", "suite", "words"),
    [
        ("nvfp4_as_torchao", "nvfp4_modelopt", "the NVFP4 profile torchao"),
        ("encode_as_ml_dtypes", "encode_presets", "the profile ml_dtypes"),
    ],
)
def test_another_row_of_a_catalogue_is_named(name, suite, words):
    (diagnosis,) = diagnose([some_of(name, suite)]).suites
    mine = [e for e in diagnosis.explanations if e.deviations == (name,)]
    assert [*identity(mine[0])] == [f"so each answer is exactly that of {words}"]
    assert [*identity(replace(mine[0], is_whole=False))] == []
    if diagnosis.explanations[0] == mine[0]:
        assert words in said(diagnosis)


def test_few_maps_are_tried_on_few_entries():
    """The search is bounded: on any suite, so many maps on so many entries, and a few on all."""
    samples = list(samples_of(evidence_of(FAULTS["race_on_the_last_tile"])))
    entries = entries_of("code", samples)
    assert 100 < len(list(maps(entries))) < 300
    assert len(entries.some(2048)) <= 2048


def test_a_few_equal_bits_are_no_evidence():
    """Three codes of four bits that are those to their right: many wrong kernels have as many."""
    evidence = evidence_of(FAULTS["ties_of_the_largest_wrong"])
    wanted = 3
    for case in evidence.cases:
        code = case.arrays["code"]
        answer = {"code": code.copy()}
        for row, column in np.argwhere(code[:, :-1] != code[:, 1:]).tolist():
            if wanted and row == 1:
                answer["code"][row, column] = code[row, column + 1]
                wanted -= 1
        evidence.answers[case.name] = answer
    assert wanted == 0
    assert displacement(entries_of("code", list(samples_of(evidence)))) is None


def test_one_entry_that_matches_is_said_as_one():
    (line,) = structure_lines([Structure(("code",), "each entry is 0x0", 3, 3, kept=1)])
    assert line.endswith("in all 3 entries that differ; it would also change 1 entry that matches")


@pytest.mark.tier("full")
@pytest.mark.usefixtures("without_pairs")
@pytest.mark.parametrize(
    ("move", "said"),
    [
        (lambda a: np.roll(a, 1, 0), "all {} mismatches are explained by `MXS-003/always` (rule "),
        (lambda a: np.concatenate([0 * a[:1], a[:-1]]), "a guess: `MXS-003/always` (rule "),
    ],
)
def test_a_deviation_keeps_its_name_if_its_rows_are_late(move, said):
    """The zeros of a first row are too few to be a structure of their own."""
    random = np.random.default_rng(1)
    x = random.standard_normal((16, 64)) * np.exp2(random.integers(-6, 6, (16, 64)))

    def candidate(operation, parameters, inputs):
        with applied(CAUSES["MXS-003/always"]):
            found = OPERATIONS[operation].exact(parameters, inputs)
        return {name: move(found[name]) for name in ("scale", "code")}

    found = mor_ref.verify(candidate, inputs={"x": x.astype(np.float32)}, recipe="mxfp8:rceil")
    (diagnosis,) = found.diagnosis.suites
    text = str(found)
    assert said.format(f"{diagnosis.mismatches:,}") in text
    assert ", with entries in other places" in text
    assert re.search(
        "scale( and code)?, after `MXS-003/always`: .i, j. has the expected value of ", text
    )
    assert "so each answer is exactly that of" not in text


def test_a_group_that_moved_blocks_do_not_fit_has_an_answer():
    """Two columns are a block and a group; of three, the group would cut the block."""

    def wrong(case, _):
        return {"scale": case.arrays["scale"] ^ case.name.startswith("mantissas.")}

    evidence = evidence_of(Fault("quantize", wrong, ()))
    lines = structure_lines(structures_of(list(samples_of(evidence))))
    assert not any("blocks that begin" in line for line in lines), lines
