"""The formulas of the chapters, evaluated on the golden vectors: the rules themselves compute."""

import doctest
import math

import numpy as np
import pytest
from mor_docs import evaluation, exact_values, notation
from mor_docs.checked import CHECKS, check, counts
from mor_docs.checked.check import formulas_of
from mor_docs.exact_values import number
from mor_docs.trace import ROOT, rules_of
from test_philox import KNOWN_ANSWERS

import mor_ref
from mor_ref import layouts
from mor_ref.definitions.nvfp4 import TE_KERNELS

CHECKED = {rule for each in CHECKS for rule in each.rules.split()}
RULES = [rule.id for rule in rules_of(ROOT / "spec")]
IDS = [f"{each.rules} {each.suite}" for each in CHECKS]


@pytest.mark.parametrize("module", [evaluation, exact_values, notation, check])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("each", CHECKS, ids=IDS)
def test_formulas_are_what_the_vectors_have(each):
    checked, wrong = counts.differing(each, every=97)
    assert checked
    assert wrong == []


@pytest.mark.tier("exhaustive")
def test_the_pages_have_the_counts_of_all_entries():
    """If not: `PYTHONPATH=docs python -m mor_docs.checked.counts` writes them."""
    assert counts.known_counts() == counts.counts()


def test_each_checked_rule_has_a_count():
    assert counts.known_counts().keys() == CHECKED


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    ("rule", "written", "changed"),
    [
        ("FMT-001", "m / 2^M", "m / 2^(M + 1)"),
        ("FMT-002", "2^(1 - B)", "2^(-B)"),
        ("FMT-007", "c - B", "c + B"),
        ("FMT-008", "1 - B - M", "B - M"),
        ("ENC-002", "max(floor(log2(|x|)), 1 - B)", "floor(log2(|x|))"),
        ("ENC-003", "f > 1/2", "f >= 1/2"),
        ("ENC-003", "x < 0", "x > 0"),
        ("ENC-004", "1 - B", "2 - B"),
        ("ENC-005", "2^n * f", "2^n * f + 1/2"),
        ("ENC-006", "min(c, c_largest)", "c"),
        ("ENC-007", "c <= c_largest", "c < c_largest"),
        ("ENC-011", "2^(M + 1) - magnitude", "magnitude"),
        ("ENC-013", "f >= 1/2", "f > 1/2"),
        ("SCL-002", "2^(23 - b)", "2^(22 - b)"),
        ("SCL-004", "FLT_MAX", "ideal"),
        ("SCL-005", "min(e, 127)", "e"),
        ("GAM-003", "m > m_block", "m >= m_block"),
        ("GAM-004", "min(lowered, 127)", "lowered"),
        ("GAM-005", "m / 2^23", "m / 2^22"),
        ("QNT-001", "x * scale", "x / scale"),
        ("QNT-002", "v / scale", "v * RN32(1 / scale)"),
        ("ERR-001", "RN32(d / |x|)", "d / |x|"),
        ("MXS-002", "0xFF", "0xFE"),
        ("MXS-003", "floor", "ceil"),
        ("MXS-004", "ceil", "floor"),
        ("MXS-005", "+ 1/2", "+ 1/4"),
        ("MXS-006", "<= 2^-127", "< 2^-120"),
        ("MXS-007", "127 - c", "126 - c"),
        ("MXS-008", "c - 127", "c - 126"),
        ("NVF-003", "amax = 0 or Q / amax = 0", "amax = 0"),
        ("NVF-004", "S_enc * (1 / 6)", "S_enc / 6"),
        ("NVF-005", "(block_amax / 6) * S_enc", "block_amax * S_enc / 6"),
        ("NVF-006", "1.5 * base", "2 * base"),
        ("NVF-007", "(1 / g) / w", "1 / (g * w)"),
        ("NVF-008", "6 * g", "g"),
        ("NVF-009", "w / G", "w * (1 / G)"),
        ("NVF-010", "v * decode", "v / decode"),
        ("MOR-002", "sum <", "sum <="),
        ("MOR-003", "sum <=", "sum <"),
        ("MOR-004", "amax <=", "amax <"),
        ("LVL-004", "rint(clipped)", "clipped"),
        ("LVL-005", "/ n", "* n"),
        ("LVL-006", "w > 0", "w >= 0"),
        ("LVL-007", "level - ratio", "ratio - level"),
        ("AFF-007", "RN(x * inverse_scale + zero_point)", "RN(RN(x * inverse_scale) + zero_point)"),
        ("AFF-009", "RN(code) - RN(zero_point)", "RN(zero_point) - RN(code)"),
        ("SHX-005", "- tau", "+ tau"),
        ("SHX-006", "(-1)^sign * M", "M"),
        ("MFQ-002", "20 - e", "21 - e"),
        ("FLM-004", "-126", "-127"),
    ],
)
def test_a_changed_formula_differs(rule, written, changed, monkeypatch):
    blocks = formulas_of(rule)
    spoilt = tuple(block.replace(written, changed) for block in blocks)
    assert spoilt != blocks
    monkeypatch.setattr(
        check, "formulas_of", lambda asked: spoilt if asked == rule else formulas_of(asked)
    )
    about = [each for each in CHECKS if rule in each.rules.split()]
    assert any(_differs(each) for each in about)


def _differs(each):
    try:
        return counts.differing(each, every=5 if "ENC" not in each.rules else 41)[1]
    except (ArithmeticError, NameError):
        return True


@pytest.mark.parametrize(
    ("rule", "layout", "shape"),
    [
        ("VEC-008", layouts.swizzled_128x4, (256, 8)),
        ("VEC-018", layouts.shuffled_32x8, (32, 8)),
        ("VEC-019", layouts.shuffled_16x32, (16, 32)),
    ],
)
def test_formulas_of_places_are_those_of_layouts(rule, layout, shape):
    (formula,) = formulas_of(rule)
    entries = np.arange(math.prod(shape), dtype=np.uint16).reshape(shape)
    halves = [layout(half.astype(np.uint8)).ravel() for half in (entries & 0xFF, entries >> 8)]
    laid_out = halves[0].astype(np.uint16) | halves[1].astype(np.uint16) << 8
    for (row, column), entry in np.ndenumerate(entries):
        names = {"r": number(row), "c": number(column), "C": number(shape[1])}
        place = evaluation.values_of(formula, names)[""]
        assert laid_out[int(place)] == entry


def numbered(words):
    """Return words by their indices, as c[0] is written."""
    return {number(place): number(word) for place, word in enumerate(words)}


@pytest.mark.parametrize(("rounds", "counter", "key", "block"), KNOWN_ANSWERS)
def test_the_formulas_of_a_round_lead_to_known_answers(rounds, counter, key, block):
    """NVF-015."""
    (formula,) = formulas_of("NVF-015")
    for _ in range(rounds):
        after = evaluation.values_of(formula, {"c": numbered(counter), "k": numbered(key)})
        counter, key = after["counter"], after["key"]
    assert counter == block


def test_formulas_of_streams_lead_to_the_words_of_kernels():
    """NVF-016, NVF-017: the first word of each chunk, for an offset that carries."""
    of_words, of_threads = (formulas_of(rule)[0] for rule in ("NVF-016", "NVF-017"))
    seed, offset, shape = (7 << 32) + 5, 2**64 - 1, (160, 416)
    for name, kernel in TE_KERNELS.items():
        found = mor_ref.te_random_words(shape, seed, offset, kernel=name)
        names = {"G": number(4), "T": number(kernel.threads), "t": number(0)}
        for y, x in np.ndindex(2, 4):
            place = {"Y": number(y), "X": number(x)}
            stream = evaluation.values_of(of_threads, {**names, **place})["subsequence"]
            known = {"subsequence": stream, "offset": number(offset), "w": number(0)}
            values = evaluation.values_of(of_words, {**known, "seed": number(seed)})
            counter, key = ([int(values[name]) >> 32 * k & 0xFFFFFFFF for k in range(count)]
                            for name, count in (("counter", 4), ("key", 2)))  # fmt: skip
            assert found[128 * y, 32 * x] == mor_ref.philox4x32(counter, key)[0]


def test_the_formula_of_reciprocals_is_that_of_the_function():
    """FPF-003: of numbers whose reciprocals are normal, and of some that are flushed."""
    (formula,) = formulas_of("FPF-003")
    table = np.float32(1) / (1 + np.arange(1 << 23, dtype=np.float32) / np.float32(1 << 23))
    (name,) = mor_ref.fp4_with_reciprocals("flashinfer_nvfp4", table).functions
    own = mor_ref.formula_functions[name]
    for k in (0, 1, 3, 1 << 22, (1 << 23) - 1):
        for e in (-126, -1, 0, 125, 126, 127):
            names = {"T": {number(k): number(float(table[k]))}, "k": number(k)}
            value = evaluation.values_of(formula, {**names, "e": number(e)})["magnitude"]
            assert value == own.number(math.ldexp(1 + k / 2**23, e))


# Proved by tests of their own: no vectors have real numbers that a theorem is about.
THEOREMS = {rule for rule in RULES if rule.startswith("THM-")}
LAYOUTS = {"BLK-002", "VEC-008", "VEC-018", "VEC-019"}
WITHOUT_VECTORS = {"NVF-015", "NVF-016", "NVF-017", "FPF-003"}  # above, with known answers
# Formulas that no vectors check yet: of sums and products of many numbers, of extremes of blocks,
# and with logarithms and roots, which are not rational.
OPEN = {
    *("AFF-003", "AFF-004", "AFF-005", "BLF-004", "GEM-003", "LVL-002", "SEL-001", "SHX-003"),
    *(f"DOT-{rule:03}" for rule in (4, 7, 9, 11, 16, 17, 18, 20)),
    *(f"FLM-{rule:03}" for rule in (2, 3, 8, 10, 11, 12, 13)),
    *(f"MOR-{rule:03}" for rule in range(10, 14)),
    "TRN-005",
}


def test_each_formula_is_checked_or_open():
    with_formulas = {rule for rule in RULES if formulas_of(rule)}
    assert with_formulas - CHECKED - THEOREMS - LAYOUTS - WITHOUT_VECTORS == OPEN
    assert with_formulas >= CHECKED
