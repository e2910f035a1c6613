"""Mistakes of encoders and decoders: they follow from the source of the exact model."""

import functools
import itertools
import math

import numpy as np
import pytest
from put_aside import put_aside
from wrong import REGISTERED
from wrong.causes import OF_ENCODER

from mor_ref import formats
from mor_ref.definitions.encoding import DETERMINISTIC_ROUNDINGS, SpecialCases
from mor_ref.deviations import applied
from mor_ref.exact import encoding
from mor_ref.exact.decoding import decode
from mor_ref.exact.encoding import encode
from mor_ref.exact.step import replaced
from mor_ref.golden import bundled_files
from mor_ref.golden.generation import mistakes_shown
from mor_ref.golden.generation.mistakes_shown import kind_of
from mor_ref.golden.model.suite import Case
from mor_ref.mistakes.catalogue import CAUSES, FORMER_IDS
from mor_ref.mistakes.encoding import (
    NO_MISTAKES,
    is_at_random,
    mistakes_of_encoding,
    pairs_of_sites_and_operators,
)
from mor_ref.mistakes.rows import matrix_by_calls
from mor_ref.mistakes.source import hooked, sites_of
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.diagnosing.sample import Sample
from mor_ref.verify.diagnosing.scoring import Model
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

IEEE = SpecialCases(overflow="ieee", nan="signed")
GUESSED = {  # they are wrong in something else as well, or in one format alone
    *("saturated_c10", "clamped_with_fmax", "argmin", "converted_first", "byte_integers"),
    "biased_fnuz",
}
E4M3, E5M2 = formats["e4m3"], formats["e5m2"]
NUMBERS = [
    x * s for x in (0.0, 2.0**-11, 0.3, 1.0625, 1.1875, 463.0, 464.0, 470.0) for s in (1, -1)
]


def with_mistake(name, *arguments, **random):
    """Return a code under a mistake."""
    with applied(CAUSES[name]):
        return encode(*arguments, **random)


@pytest.mark.parametrize(
    ("name", "rounding"),
    [
        ("ENC-003/ties-away", "rna"),
        ("ENC-003/truncated", "rtz"),
        ("ENC-003/rna-ties-to-even", "rne"),
        ("ENC-003/rtz-to-nearest", "rne"),
        ("ENC-003/odd-truncated", "rtz"),
    ],
)
def test_a_rounding_may_be_another_one(name, rounding):
    """Each is made under one rounding, and leaves the others alone."""
    of = {"rna": "rna", "rtz": "rtz", "odd": "rto"}.get(name[8:11], "rne")
    for asked in DETERMINISTIC_ROUNDINGS:
        found = [with_mistake(name, x, E4M3, asked) for x in NUMBERS]
        assert found == [encode(x, E4M3, rounding if asked == of else asked) for x in NUMBERS]


@pytest.mark.parametrize("fmt", ["bf16", "f16", "f32"])
def test_wide_formats_have_mistakes_of_their_own(fmt):
    tie = 1 + 2.0 ** -(formats[fmt].mantissa_bits + 1)
    right = encode(tie, formats[fmt])
    for name in ("bf16", "f16", "f32"):
        found = with_mistake(f"ENC-003/{name}-ties-away", tie, formats[fmt])
        assert found == right + (name == fmt)
    assert with_mistake("ENC-003/ties-away", tie, formats[fmt]) == right


def test_numbers_may_be_rounded_by_numpy_first():
    """Through binary16 and binary32, as the casts of NumPy round."""
    x = np.array([1.0625 + 2.0**-20, 1.0625 + 2.0**-40, 70000.0, -(2.0**-10) * (1 + 2.0**-30), 0.3])
    with np.errstate(over="ignore"):
        through = {"f16": x.astype(np.float16), "f32": x.astype(np.float32)}
    for name, first in through.items():
        found = [with_mistake(f"ENC-001/inputs-through-{name}", v, E4M3) for v in x.tolist()]
        assert found == [encode(v, E4M3) for v in first.astype(float).tolist()]


def test_an_infinity_and_an_overflow_are_two_sites():
    for x, overflows, infinite in ((1e6, 0x7C, 0x7B), (math.inf, 0x7B, 0x7C)):
        assert with_mistake("ENC-006/not-saturated", x, E5M2) == overflows
        assert with_mistake("ENC-008/infinity-not-saturated", x, E5M2) == infinite
        assert with_mistake("ENC-006+ENC-008/not-saturated", x, E5M2) == 0x7C


@pytest.mark.parametrize("n", [1, 3, 24, 32])
def test_random_bits_are_compared_in_other_ways(n):
    """Each as integers decide it, for a number that is 5/16 of the way to the next code."""
    x, last = 1 + 5 / 128, (1 << n) - 1
    fraction = (5 << n) >> 4
    for word in {0, 1, last // 2, max(last - fraction, 0), min(last - fraction + 1, last), last}:
        known = {"random_word": word, "n_random_bits": n}
        up = {
            "threshold-without-equals": fraction + word > 1 << n,
            "threshold-one-less": fraction + word >= last,
            "word-below-fraction": word < fraction,
            "fraction-rounded": (10 * (1 << n) + 16) // 32 + word >= 1 << n,
            "sum-in-32-bits": fraction + word >= 1 << n and n < 32,
        }
        for name, is_up in up.items():
            found = with_mistake(f"ENC-005/{name}", x, E4M3, "sr", **known)
            assert found == 0x38 + is_up, (name, word)


def test_hooks_that_return_what_is_right_change_nothing():
    """At all sites of a step at once; the keyword arguments of `encode` are given on."""
    steps = dict.fromkeys(site.step for one in mistakes_of_encoding() for site in one.sites)
    calls = []

    def right(function, *operands, **named):
        calls.append(function)
        return function(*operands, **named)

    changes = [hooked(dict.fromkeys(sites_of(step), right)) for step in steps]
    asked = [
        (x, formats[fmt], rounding, special)
        for x in (*NUMBERS, math.nan, -math.nan, math.inf)
        for fmt, rounding in (("e4m3", "rtp"), ("bf16", "rne"), ("e8m0", "rna"), ("int8_mx", "rto"))
        for special in (SpecialCases(), IEEE)
    ]
    at_random = {"random_word": 3, "n_random_bits": 3}
    expected = [encode(*one) for one in asked] + [
        encode(x, E4M3, "sr", **at_random) for x in NUMBERS
    ]
    with replaced([(change.step, change) for change in changes]):
        found = [encode(*one) for one in asked]
        found += [encode(x, E4M3, "sr", **at_random) for x in NUMBERS]
        assert [decode(code, E5M2) for code in (1, 0x7C, 0xFF)] == [
            0x37800000,
            0x7F800000,
            0x7FFFFFFF,
        ]
    assert found == expected
    assert len(calls) > 1000


@functools.cache
def kinds(suite, *names):
    """Return derived kinds of calls whose names begin so, with the mistakes of a suite."""
    there = mistakes_shown.MODELLED[suite]
    found = [case for case in there.derived() if case.name.startswith(names)]
    return [kind_of(suite, case) for case in found], there.mistakes()


SOME = {
    "decode": ("e4m3", "e5m2", "e2m1", "int8_mx", "e8m0", "bf16"),
    "encode_stochastic": ("e4m3.8", "e4m3.16", "e4m3.24", "e4m3.32", "e5m2.32"),
    "encode": (
        *("e4m3.f32", "e4m3.f64.rne", "e5m2.f32.rne", "e4m3fnuz.f32.rne", "int8_mx.f32.rne"),
        *("bf16.f32.rne", "f16.f64.rne", "f32.f64.rne", "e8m0.f32", "e8m0.f64.rtp", "e5m2.f16.rne"),
    ),
}


@pytest.mark.tier("full", but=["decode"])
@pytest.mark.parametrize("suite", SOME)
def test_every_mistake_is_shown_by_derived_inputs_and_no_two_are_one(suite):
    """From an empty suite, in a few kinds of calls."""
    there, mistakes = kinds(suite, *SOME[suite])
    shown, bits = {one.name: [] for one in mistakes}, {one.name: [] for one in mistakes}
    for kind in there:
        for verdict in matrix_by_calls(mistakes, kind):
            shown[verdict.mistake.name] += verdict.shown
            if verdict.touched:
                everything = [*range(kind.count)]
                with applied(verdict.mistake.deviation), np.errstate(over="ignore"):
                    fields = kind.compute(everything)
                bits[verdict.mistake.name] += [(kind.name, *map(bytes, fields.values()))]
    assert [name for name, rows in shown.items() if not rows] == []
    alike = {}
    for name, of in bits.items():
        right = {
            (kind.name, *map(bytes, kind.compute([*range(kind.count)]).values())) for kind in there
        }
        alike.setdefault(frozenset(of) - right, []).append(name)
    assert [names for names in alike.values() if len(names) > 1] == []


def test_every_mistake_belongs_to_a_suite():
    of_suites = [
        {one.name for one in mistakes_shown.MODELLED[suite].mistakes()}
        for suite in ("encode", "encode_stochastic", "decode")
    ]
    assert sum(map(len, of_suites)) == len(set().union(*of_suites)) == len(mistakes_of_encoding())
    assert of_suites[1] == {one.name for one in mistakes_of_encoding() if is_at_random(one)}


def test_pairs_that_are_no_mistakes_have_a_reason():
    names = [one.name for one in pairs_of_sites_and_operators()]
    assert len(names) == len(set(names))
    assert NO_MISTAKES.keys() <= set(names)
    assert all(why.endswith(".") for why in NO_MISTAKES.values())
    assert set(names) - NO_MISTAKES.keys() <= CAUSES.keys()


def test_a_complemented_word_is_one_that_is_below_the_fraction():
    """For all words and fractions of 6 bits."""
    pairs = {one.name: one.deviation for one in pairs_of_sites_and_operators()}
    below, complemented = (
        pairs[f"ENC-005/word-{name}"] for name in ("below-fraction", "complemented")
    )
    for rest, word in itertools.product(range(64), range(64)):
        with applied(below):
            is_up = encoding.goes_up_at_random(rest, 64, word, 6)
        with applied(complemented):
            assert encoding.goes_up_at_random(rest, 64, word, 6) == is_up == (word < rest)


def test_former_names_answer_by_their_ids():
    assert FORMER_IDS["ties_away"] == "ENC-003/ties-away"
    assert CAUSES["ENC-003/ties-away"].summary.endswith("Its name in golden/v1: ties_away.")
    assert "ties_away" not in CAUSES


def test_a_mistake_of_other_calls_is_not_computed():
    """A diagnosis tries no mistake of roundings, formats or special cases that a case has not."""
    asked = {"format": "e4m3", "source": "f32", "rounding": "rne"}
    case = Case(
        "one",
        {**asked, "overflow": "satfinite", "nan": "canonical"},
        {"x": np.array([1], np.uint32)},
    )
    model, sample = Model(), Sample("encode", case, {})
    reached = {name for name in CAUSES if model.is_reached(CAUSES[name], sample)}
    assert {"ENC-003/ties-away", "ENC-001/inputs-through-f16"} <= reached
    assert (
        not {
            *("ENC-003/bf16-ties-away", "ENC-003/rna-truncated", "ENC-013/truncated"),
            *("ENC-005/sum-in-32-bits", "ENC-007/saturated", "ENC-015/lowest-reached"),
        }
        & reached
    )
    before = model.elements
    model.run((CAUSES["ENC-003/bf16-ties-away"],), sample)
    assert model.elements == before


@pytest.mark.tier("full", but_one_in=9)
@pytest.mark.parametrize("name", OF_ENCODER)
def test_a_whole_wrong_kernel_is_named(name):
    """A kernel that was written before the model has the bits of the mistake that is named."""
    there = (one for one in REGISTERED if one.mistake and one.name not in put_aside())
    kernel = next(one for one in there if one.name == name or one.name.startswith(f"{name}_"))
    suites = ("encode", "encode_presets", "encode_stochastic", "decode", "quantize_steps")
    found = verify(PythonFunction(name, kernel.run), suites_in(bundled_files(), list(suites)))
    (diagnosis,) = found.diagnosis.suites
    certain = {"+".join(one.deviations): one.is_whole for one in diagnosis.explanations}
    assert certain[OF_ENCODER[name]] == (name not in GUESSED), certain


def test_encoding_has_sites_at_each_step():
    """A new line of a step has its mistakes: a site is found by what it is."""
    kinds_of = {site.kind for site in sites_of(encoding.encode)}
    assert {
        "encoded",
        "inputs",
        "special",
        "units",
        "largest-code",
        "signed",
        "infinity",
    } <= kinds_of
    assert {"threshold", "sum", "fraction", "word"} <= {
        site.kind for site in sites_of(encoding.goes_up_at_random)
    }
