"""Mistakes of scales: they follow from the source of the exact model, and inputs from them."""

import functools

import numpy as np
import pytest
from bits_of_mistakes import equals
from forking import mor_ref as run
from put_aside import put_aside
from wrong import REGISTERED
from wrong.causes import OF_SCALES

from mor_ref import formats
from mor_ref.deviations import applied
from mor_ref.exact import scales
from mor_ref.exact.step import replaced
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.mistakes_shown import derived_scales, kind_of
from mor_ref.golden.model.suite import Case
from mor_ref.mistakes.amaxes import mistakes_of_amaxes
from mor_ref.mistakes.catalogue import CAUSES, FORMER_IDS, MODELLED
from mor_ref.mistakes.encoding import mistakes_of_encoding
from mor_ref.mistakes.mx import mistakes_of_mx
from mor_ref.mistakes.nvfp4 import mistakes_of_nvfp4
from mor_ref.mistakes.policies import mistakes_of_policies
from mor_ref.mistakes.rows import Kind, cover, judged, matrix, traced
from mor_ref.mistakes.scales import NO_MISTAKES, mistakes_of_scales, pairs_of_sites_and_operators
from mor_ref.mistakes.source import hooked, sites_of
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

SUITE, AMAXES = "scale_steps", ("group_amax", "block_amax")
F, U = np.float32, np.uint32
FLT_MAX = np.finfo(F).max
GUESSED = ("upper_halves", "smaller_of_two")  # they are wrong in something else as well
ROWS = {"fp32": 250, "e8m0": 900, "gam": 1100}  # of a kind of call


@functools.cache
def few():
    """Return the derived inputs of some kinds of calls, thinned out."""
    cases = {}
    for case in derived_scales():
        if case.parameters["format"] in ("e4m3", "e2m1", "e2m1_ieee"):
            blocks = case.arrays["block_amax"]
            chosen = np.arange(blocks.size) % (blocks.size // ROWS[case.parameters["scaling"]]) == 0
            chosen |= blocks == 0
            arrays = {name: array[chosen] for name, array in case.arrays.items()}
            cases[case.name] = Case(case.name, case.parameters, arrays)
    return cases


@functools.cache
def shown(kind):
    """Return what becomes of all pairs of a site and an operator in a kind of call."""
    return matrix([*pairs_of_sites_and_operators()], kind_of(SUITE, few()[kind]))


def ideal(mistake, largest, amax):
    """Return the ideal scale that a mistake makes, as a number; one above FLT_MAX is that."""
    with applied(CAUSES[mistake]):
        return min(scales.ideal_scale(largest, float(amax)).value, float(FLT_MAX))


def amaxes():
    generator = np.random.default_rng(64)
    bits = generator.integers(1 << 23, 0x7F800000, 400, U)
    return np.concatenate([bits, few()["e4m3.fp32"].arrays["block_amax"][1::9]]).view(F)


@pytest.mark.parametrize("largest", [448.0, 6.0])
def test_quotients_are_those_of_numpy(largest):
    """Each formula as binary32 arithmetic of NumPy computes it, with another order or rounding."""
    a, one = amaxes(), F(1)
    top = F(largest)
    with np.errstate(all="ignore"):
        formulas = {
            "SCL-002/quotient-by-reciprocal": top * (one / a),
            "SCL-002/inverted": one / (a / top),
            "SCL-002/quotient-inverse-of-product": one / (a * (one / top)),
            "SCL-002/quotient-in-binary32": top / a,
        }
    for name, expected in formulas.items():
        found = np.array([ideal(name, largest, x) for x in a.tolist()])
        assert np.array_equal(found, np.minimum(expected, FLT_MAX).astype(float)), name


def exponents(mistake, largest, a):
    with applied(CAUSES[mistake]):
        return [scales.ideal_scale(largest, x).exponent for x in a.tolist()]


def test_exponents_are_those_of_numpy():
    """Where the quotient is normal; there is a power of two among the quotients."""
    a = amaxes()
    a = np.append(a[(a > 2.0**-110) & (a < 2.0**110)], [F(448), F(7)])
    decode = a / F(448)
    fields = decode.view(U)
    formulas = {
        "SCL-002/exponent-by-log2f": np.floor(np.log2((F(448) / a).astype(float)).astype(F)),
        "SCL-002/exponent-by-ceil-log2f": -np.ceil(np.log2(decode.astype(float)).astype(F)),
        "SCL-002/exponent-of-operands": 8 - np.floor(np.log2(a.astype(float) * (1 + 2.0**-40))),
        "SCL-002/exponent-of-field-of-inverse": 127.0 - (fields >> 23) - ((fields & 0x7FFFFF) != 0),
    }
    for name, expected in formulas.items():
        assert np.array_equal(exponents(name, 448.0, a), expected), name
    assert exponents("SCL-002/exponent-below-powers", 448.0, a)[-2:] == [-1, 5]


def test_a_step_whose_sites_are_hooked_is_the_step():
    """Hooks that return what is right change nothing, at all sites of a step at once."""
    steps = [mistake.sites[0].step for mistake in pairs_of_sites_and_operators()]
    calls = []

    def right(function, *operands):
        calls.append(operands)
        return function(*operands)

    hooks = [
        hooked({site: right for site in sites_of(step) if site.kind != "order"})
        for step in dict.fromkeys(steps)
    ]
    for case in few().values():
        kind = kind_of(SUITE, case)
        expected = kind.compute(range(kind.count))
        with replaced([(change.step, change) for change in hooks]):
            found = kind.compute(range(kind.count))
        assert all(np.array_equal(found[name], array) for name, array in expected.items())
    assert len(calls) > 1000


def test_a_new_line_of_a_step_has_its_mistakes():
    """A site is found by what it is, and its rule by the comment on its line."""
    kinds = {(site.kind, site.rule) for site in sites_of(scales.gam_scale)}
    assert {
        ("comparison", "GAM-003"),
        ("decrement", "GAM-003"),
        ("limit", "GAM-004"),
        ("stored", "GAM-004"),
        ("shared", "GAM-005"),
    } <= kinds


def test_every_mistake_is_shown_by_derived_inputs_and_no_two_are_one():
    """From an empty suite; those that are no mistakes differ nowhere, or are another one."""
    results = {}
    for kind in few():
        for verdict in shown(kind):
            results.setdefault(verdict.mistake.name, {})[kind] = verdict
    unseen = {name for name, each in results.items() if not any(v.shown for v in each.values())}
    assert unseen == {name for name, why in NO_MISTAKES.items() if not why.startswith("It is ")}
    assert results.keys() - NO_MISTAKES.keys() == {one.name for one in mistakes_of_scales()}
    bits = equals(pairs_of_sites_and_operators(), [kind_of(SUITE, case) for case in few().values()])
    same = [names for names in bits if not names & unseen]
    assert all(len(names - NO_MISTAKES.keys()) == 1 for names in same), same


def test_the_floor_of_the_ideal_scale_is_seen_by_derived_inputs_alone():
    """A hole of golden/v1: of the formats of scale_steps, none reaches 2^-126 (SCL-002)."""
    (found,) = (v for v in shown("e2m1_ieee.gam") if v.mistake.name == "SCL-002/floor-left-out")
    assert found.shown
    largest_amax = np.array([0x7F7FFFFF], U)
    case = Case("", {"format": "e2m1_ieee", "scaling": "gam"}, dict.fromkeys(AMAXES, largest_amax))
    compute = kind_of(SUITE, case).compute
    assert compute([0])["scale"].tolist() == [0x00800000]
    with applied(found.mistake.deviation):
        assert compute([0])["scale"].tolist() == [0x00600000]
    largest = {name: formats[name].largest for name in ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2")}
    assert min(largest.values()) / float(FLT_MAX) > 2.0**-126


def test_rows_are_judged_as_if_all_were_computed():
    """The trace leaves out no row that shows a mistake, and the cover shows what all rows show."""
    case = few()["e4m3.gam"]
    kind = kind_of(SUITE, case)
    expected = kind.compute(range(kind.count))
    verdicts = shown("e4m3.gam")
    (rows,) = cover(verdicts).values()
    for verdict in verdicts:
        with applied(verdict.mistake.deviation), np.errstate(over="ignore"):
            wrong = kind.compute(range(kind.count))
        differs = np.logical_or.reduce([wrong[name] != array for name, array in expected.items()])
        assert set(verdict.shown) <= {*np.flatnonzero(differs)}, verdict.mistake.name
        assert bool(verdict.shown) == differs.any(), verdict.mistake.name
        assert differs[rows].any() == differs.any(), verdict.mistake.name
    assert len(rows) < len(verdicts)


def test_operands_are_kept_with_all_rows_that_have_them():
    """Both rows compare the same mantissas; a limit hides the mistake in the first."""
    mistake = next(m for m in mistakes_of_scales() if m.name == "GAM-003/comparison-with-equals")
    both = np.array([1.5 * 2.0**-126, 1.5], F).view(U)
    case = Case("", {"format": "e4m3", "scaling": "gam"}, dict.fromkeys(AMAXES, both))
    (verdict,) = matrix([mistake], kind_of(SUITE, case))
    assert (verdict.touched, verdict.shown, verdict.field) == (2, (1,), "exponent")


def test_a_mistake_that_refuses_numbers_is_shown_by_them():
    mistake = next(m for m in mistakes_of_scales() if m.name == "SCL-002/amax-in-bf16")
    kind = Kind("one", 1, lambda rows: {"scale": np.array([scales.scale_of_block(
        "fp32", 448.0, 3.3, 0).value for _ in rows])})  # fmt: skip
    trace = traced([mistake], kind)
    refused = mistake.operator._replace(wrong=lambda *_: 1 / 0)
    broken = type(mistake)(mistake.sites, refused)
    found = judged(broken, trace, kind.compute([0]))
    assert (found.shown, found.field) == ((0,), None)


@pytest.mark.tier("full", but_one_in=9)
@pytest.mark.parametrize("name", OF_SCALES)
def test_a_whole_wrong_kernel_is_named(name):
    """A kernel that was written before the model has the bits of the mistake that is named."""
    own = (name, f"{name}_e4m3")
    (kernel,) = (one for one in REGISTERED if one.name in own and one.name not in put_aside())
    found = verify(PythonFunction(name, kernel.run), suites_in(bundled_files(), [SUITE]))
    (diagnosis,) = found.diagnosis.suites
    certain = {one.deviations: one.is_whole for one in diagnosis.explanations}
    assert certain[OF_SCALES[name],] == (name not in GUESSED), certain


def test_ids_are_a_rule_and_an_operator():
    of_blocks = mistakes_of_amaxes(), mistakes_of_mx(), mistakes_of_nvfp4()
    of_policies = mistakes_of_policies()
    chapters = mistakes_of_encoding(), mistakes_of_scales(), of_policies, *of_blocks
    names = [one.name for chapter in chapters for one in chapter]
    assert sorted(MODELLED) == sorted(names)
    for name, one in MODELLED.items():
        rules, _, operator = name.partition("/")
        assert tuple(rules.split("+")) == one.rules
        assert operator
        assert one.summary.endswith(".")
    assert set(FORMER_IDS.values()) <= MODELLED.keys()
    assert CAUSES[FORMER_IDS["scale_truncated"]].summary.endswith("golden/v1: scale_truncated.")


def test_the_programs_that_are_put_aside_are_there():
    assert len(put_aside()) == 300
    assert put_aside() <= {kernel.name for kernel in REGISTERED if kernel.mistake}


@pytest.mark.tier("exhaustive")
def test_the_command_names_the_holes_of_a_suite(tmp_path):
    printed = run("golden", "mistakes", SUITE, cwd=tmp_path).stdout.splitlines()
    count = len(mistakes_of_scales())
    assert printed[0] == f"{SUITE}: {count - 1} of {count} mistakes shown"
    (hole,) = printed[1:]
    assert hole.startswith("  SCL-002/floor-left-out: derived inputs show it: e2m1_ieee.gam, ")
