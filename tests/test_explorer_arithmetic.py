"""The arithmetic of the format explorer, in Chromium: golden vectors and the exact model."""

import re

import numpy as np
import pytest
from explorer_browser import ADAPTER, EXPLORER, answer, context_of
from mor_docs.naming import ids_in
from mor_docs.trace import ROOT, rules_of

import mor_ref
from mor_ref import golden
from mor_ref.definitions.blocks import partition
from mor_ref.definitions.mx import SCALE_RULES
from mor_ref.exact import policies
from mor_ref.golden.suites import SUITES
from mor_ref.metrics import MeanRelativeError
from mor_ref.operations.bits import numbers_of
from mor_ref.policies import POLICIES
from mor_ref.schemes.affine.definition import AFFINE_PROFILES

STEPS = ("encode", "encode_presets", "encode_stochastic", "decode", "scale_steps", "quantize_steps",
         "quantize_blocks", "nvfp4_blocks", "mx_blocks", "error_steps", "decisions", "affine_steps",
         "shared_blocks", "levels_steps", "mixed_steps")  # fmt: skip
SCRIPTS = ("catalogue", "exact", "formats", "scaling", "nvfp4", "mx", "mor", "affine", "shared",
           "levels", "mixed", "numerals")  # fmt: skip


@pytest.fixture(scope="module")
def page(browser):
    page = context_of(browser).new_page()
    page.set_content("<title>arithmetic</title>")
    for name in SCRIPTS:
        page.add_script_tag(path=EXPLORER / f"{name}.js")
    page.add_script_tag(path=ADAPTER)
    return page


def inputs_of(case, suite):
    return {field.name: case.arrays[field.name] for field in suite.fields if field.role == "input"}


def differing(page, operation, case, inputs):
    """Return the fields of a case in which the page differs."""
    found = answer(page, operation, case.parameters, inputs)
    expected = {name: array.ravel() for name, array in case.arrays.items() if name not in inputs}
    assert found.keys() == expected.keys(), case.name
    return {
        (case.name, name, int(np.flatnonzero(found[name] != array)[0]))
        for name, array in expected.items()
        if not np.array_equal(found[name], array)
    }


@pytest.mark.tier("full", but_one_in=7)
@pytest.mark.parametrize("name", STEPS)
def test_golden_vectors(page, name):
    suite = SUITES[name]
    for case in golden.load(name):
        assert not differing(page, suite.operation, case, inputs_of(case, suite))


def is_row(case):
    rows, columns = case.arrays["x"].shape
    is_one_unit = case.arrays["choice"].shape == (1, 1)
    # The page takes numbers, so that a bfloat16 NaN has no codes of its own to keep.
    return rows == 1 and columns <= 32 and is_one_unit and case.parameters["source"] != "bf16"


def test_golden_policies_of_one_row(page):
    cases = [case for case in golden.load("policies") if is_row(case)]
    assert len(cases) > 10
    for case in cases:
        assert not differing(page, "mor", case, {"x": case.arrays["x"]})


def has_rows_of_its_own(case):
    """Return whether each row of a case is as if it were alone."""
    is_alone = case.parameters["profile"] != "peg" or not case.parameters["symmetric"]
    is_by_row = case.arrays["scale"].shape == (len(case.arrays["x"]), 1)
    return case.parameters["source"] == "f32" and is_by_row and is_alone


@pytest.mark.tier("full")
def test_golden_integers_of_rows(page):
    """AFF-003 to AFF-005."""
    cases = [case for case in golden.load("affine") if has_rows_of_its_own(case)]
    assert {case.parameters["profile"] for case in cases} == set(AFFINE_PROFILES)
    for case in cases:
        assert not differing(page, "affine", case, {"x": case.arrays["x"]})


def rows(count):
    """Yield rows of 1 to 32 binary32 numbers: near or far apart, with zeros and special ones."""
    yield from np.array([[0x7F7F7FFF], [0x7F7F8000], [0x7F7F9000]], np.uint32)  # ERR-003
    random = np.random.default_rng(4)
    special = np.array([0, 1 << 31, 1, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x00800000], np.uint32)
    for _ in range(count):
        size = int(random.integers(1, 33))
        scale = 2.0 ** random.integers(-140, 120)
        spread = 2.0 ** random.normal(0, random.choice([0, 2, 12]), size)
        with np.errstate(over="ignore"):
            x = (random.normal(size=size) * scale * spread).astype(np.float32).view(np.uint32)
        chosen = random.random(size) < random.choice([0, 0, 0, 0.1, 0.5])
        yield np.where(chosen, random.choice(special, size), x)


@pytest.mark.tier("full", but=["gam-"])
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("scaling", ["gam", "e8m0", "fp32"])
def test_decisions_for_rows(page, name, scaling):
    """MOR-001 to MOR-006, on rows that no suite has."""
    for x in rows(25):
        parts = partition((1, len(x)), "tensor", "tensor")
        mixed = policies.mix([numbers_of(x, "f32")], POLICIES[name], scaling, parts)
        decision = mixed.decisions[0, 0]
        asked = {"policy": name, "scaling": scaling, "source": "f32"}
        found = answer(page, "mor", asked, {"x": x})
        assert found["choice"] == decision.choice
        assert found["output"].tolist() == mixed.output[0]
        for representation, error in decision.errors.items():
            sums = [int(found[f"{representation}.{count}"][0])
                    for count in ("sum", "nonzero", "nonfinite")]  # fmt: skip
            assert sums == [error.sum, error.nonzero, error.nonfinite]


THRESHOLDS = [
    *("0.045", "0.20", "1", ".5", "4.5e-2", "0.1", "0.1e1", " 1.000 ", "+0.045", "4_5e-3", "01."),
    *("5.960464477539063e-8", "5.960464477539062e-8", "1.7881393432617188e-7", "1e-30", "1e-31"),
    *(
        "1e-400",
        "1E-400",
        "0." + "0" * 400 + "1",
        "45e-1000",
        "1e-999999999999999999",
        "1" * 9 + "e-9",
    ),
    *("1/22", " +1/3 ", "1_0/2_0", "1/1" + "0" * 400, "7/7"),
]
NO_THRESHOLDS = [
    *(
        "0",
        "0e-400",
        "1.1",
        "1.0000000000000000000001",
        "1e400",
        "1e99999999999",
        "10",
        "-1",
        "-1e-400",
    ),
    *("", "x", ".", "e", "1e", "e-3", "1e-", "1 e-3", "nan", "inf", "0x1", "1,5"),
    *("0/3", "1/0", "23/22", "-1/-2", "1 /22", "1/ 22", "0.5/2", "1__0/100", "1/2/3"),
]


@pytest.mark.parametrize("text", THRESHOLDS, ids=lambda text: text[:24])
def test_thresholds(page, text):
    """MOR-002: ties to even, and the number that is written."""
    limit = MeanRelativeError(text).limit
    assert page.evaluate("text => Explorer.mor.limitOf(text)", text) == limit


@pytest.mark.parametrize("text", NO_THRESHOLDS)
def test_what_is_no_threshold(page, text):
    """MOR-002: the page refuses what Python does."""
    with pytest.raises(ValueError, match="threshold is "):
        MeanRelativeError(text)
    refused = "text => { try { Explorer.mor.limitOf(text); } catch (e) { return e.message; } }"
    assert page.evaluate(refused, text).startswith(f'threshold is "{text}"')


def test_a_threshold_of_which_t_is_0(page):
    """MOR-002: it accepts zeros alone."""
    decided = """([text, x]) => Explorer.mor.decide(
        x.map(Explorer.exact.whole), Explorer.mor.policies.tensor, "gam",
        Explorer.mor.limitOf(text)).name"""
    for x in ([1, 2], [0, 0]):
        found = mor_ref.mor(np.array(x, np.float32), threshold="1e-400")
        assert page.evaluate(decided, ["1e-400", x]) == found.ladder[found.choice.item()]


NUMERALS = {
    **{text: float(text) for text in ("5e-324", "-0.3", "-0", "1.7976931348623157e308", "-inf")},
    "2^-1074": 2.0**-1074,
    "-2**(1023)": -(2.0**1023),
    "1.5 * 2^-1073": 3 * 2.0**-1074,
    "\N{MINUS SIGN}2^\N{MINUS SIGN}2": -0.25,
    "-1/3": -1 / 3,
    "0x1p-1074": 2.0**-1074,
    "-0x1.fffffffffffffp1023": -1.7976931348623157e308,
    "0x.8p-1073": 2.0**-1074,
    "0x7F7FFFFF": float.fromhex("0x1.fffffep127"),
    "0x8000000000000001": -5e-324,
}
NO_NUMERALS = {
    "2^-1075": "binary64",
    "1.5 * 2^-1074": "binary64",
    "2^1024": "binary64",
    "0x1p-1075": "binary64",
    "0x1p1024": "binary64",
    "0x1.fffffffffffff8p0": "binary64",
    "1e-400": "binary64",
    "1.8e308": "binary64",
    "1/0": "divides by 0",
    "0x.p1": "has no digits",
    "0x3F80": "is a bit pattern of 4 digits",
    "1.5 *": "is not a number",
    "": "is not a number",
}


def test_numbers_as_they_are_typed(page):
    """And typed again."""
    parsed = """texts => texts.map(text => {
        const { parseNumber, binary64Bits, hex, typed } = Explorer.numerals;
        const x = parseNumber(text);
        return [x, parseNumber(typed(x))].map(each => hex(binary64Bits(each), 64));
    })"""
    bits = np.array([*NUMERALS.values()]).view(np.uint64).tolist()
    found = page.evaluate(parsed, [*NUMERALS])
    assert dict(zip(NUMERALS, found, strict=True)) == {
        text: [f"0x{word:016X}"] * 2 for text, word in zip(NUMERALS, bits, strict=True)
    }


def test_what_is_no_number(page):
    refused = """texts => texts.map(text => {
        try { Explorer.numerals.parseNumber(text); } catch (e) { return e.message; }
    })"""
    found = page.evaluate(refused, [*NO_NUMERALS])
    for (text, said), message in zip(NO_NUMERALS.items(), found, strict=True):
        assert said in (message or ""), text


def test_every_scale_rule_of_mx_is_there():
    text = (EXPLORER / "mx.js").read_text()
    assert re.findall(r"^    (\w+): \{ id: \"MXS", text, re.MULTILINE) == list(SCALE_RULES)


def test_every_id_that_is_named_is_a_rule():
    texts = [path.read_text() for path in EXPLORER.glob("*.js")]
    assert {rule for text in texts for rule, _ in ids_in(text)} <= {
        rule.id for rule in rules_of(ROOT / "spec")
    }
