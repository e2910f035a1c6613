"""Mistakes of MX and of amaxes: they follow from the source of the exact model."""

import functools

import numpy as np
import pytest
from bits_of_mistakes import equals
from forking import mor_ref as run
from put_aside import put_aside
from wrong import REGISTERED
from wrong.causes import OF_MX

from mor_ref.deviations import applied
from mor_ref.exact import mx
from mor_ref.golden import bundled_files
from mor_ref.golden.generation.mistakes_shown import derived_blocks, kind_of, mistakes_of_blocks
from mor_ref.golden.model.suite import Case
from mor_ref.mistakes.amaxes import mistakes_of_amaxes
from mor_ref.mistakes.catalogue import CAUSES, MODELLED
from mor_ref.mistakes.mx import NO_MISTAKES, RULES, mistakes_of_mx, pairs_of_sites_and_operators
from mor_ref.mistakes.rows import matrix
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.running.run import verify
from mor_ref.verify.running.suites import suites_in

SUITE = "mx_blocks"
F, U = np.float32, np.uint32
GUESSED = {  # they are wrong in something else as well
    f"mx.{name}"
    for name in ("scales_from_one", "nan_is_left_out", "even_with_ties_down", "of_signed_integers",
                 "one_tie_of_four_bits", "sign_by_comparison")
}  # fmt: skip
OF_BF16 = ("mx.products_in_bf16",)  # single blocks are of binary32
UNLIKE_WHERE_DECODED = {"MXS-008/scale-by-shift", "MXS-008/power-flushed"}
KINDS = {f"{fmt}.{rule}" for fmt in ("int8_mx", "e4m3") for rule in RULES}


@functools.cache
def few():
    """Return the derived blocks of some kinds of calls."""
    found = {case.name: case for case in derived_blocks()}
    return {name: case for name, case in found.items() if name.rpartition(".")[0] in KINDS}


def of_mx():
    """Return all pairs, and the mistakes of the amax of blocks."""
    amaxes = (one for one in mistakes_of_amaxes() if one.rules == ("MXS-002",))
    there = [*pairs_of_sites_and_operators(), *amaxes]
    return [one for one in there if one.rules != ("MXS-009",)]  # of codes that are given


@functools.cache
def shown(kind):
    """Return what becomes of each pair of a site and an operator in a kind of call."""
    return matrix(of_mx(), kind_of(SUITE, few()[kind]))


@pytest.mark.tier("full")
def test_every_mistake_is_shown_by_derived_blocks_and_no_two_are_one():
    """From an empty suite; those that are no mistakes differ nowhere, or have another reason."""
    results = {}
    for kind in few():
        for verdict in shown(kind):
            results.setdefault(verdict.mistake.name, {})[kind] = verdict
    unseen = {name for name, each in results.items() if not any(v.shown for v in each.values())}
    assert unseen <= NO_MISTAKES.keys()
    bits = equals(of_mx(), [kind_of(SUITE, case) for case in few().values()])
    same = [names - NO_MISTAKES.keys() for names in bits if not names & unseen]
    assert [names for names in same if len(names) > 1] == [UNLIKE_WHERE_DECODED]
    assert {name: decoded_with(name, 1.0, 255) for name in UNLIKE_WHERE_DECODED} == {
        "MXS-008/scale-by-shift": "inf",
        "MXS-008/power-flushed": "nan",
    }


def decoded_with(name, value, code):
    """Return, as text, the number of a code with a scale under a mistake."""
    with applied(CAUSES[name]):
        return str(mx.restored(value, code))


def scales_under(name, fmt, rule, *amaxes):
    """Return the scale codes of blocks of one number each, without a mistake and with it."""
    parameters = {"format": fmt, "scale_rule": rule, "source": "f32"}
    x = np.array(amaxes, F).reshape(-1, 1).view(U)
    exact = OPERATIONS["mx_block"].exact
    right = exact(parameters, {"x": x})["scale"].tolist()
    with applied(CAUSES[name]):
        return right, exact(parameters, {"x": x})["scale"].tolist()


@pytest.mark.parametrize(("fmt", "last"), [("e4m3", 8), ("e5m2", 15), ("e2m1", 2)])
def test_a_quotient_that_is_rounded_before_its_power_is_a_hole_of_golden_v1(fmt, last):
    """Of all amaxes, ceil differs at one: block_amax / 2^P is 2^-127 and half a step of it."""
    name, amax = "MXS-004/of-rounded-quotient", 2.0 ** (last - 127) * (1 + 2.0**-23)
    assert scales_under(name, fmt, "ceil", amax, np.nextafter(F(amax), F(1))) == ([1, 1], [0, 1])
    (case,) = (c for c in derived_blocks() if c.name == f"{fmt}.ceil.amaxes")
    (row,) = np.flatnonzero(case.arrays["x"][:, 0] == F(amax).view(U))
    mistake = next(one for one in mistakes_of_mx() if one.name == name)
    near = Case(case.name, case.parameters, {"x": case.arrays["x"][row - 20 : row + 20]})
    (verdict,) = matrix([mistake], kind_of(SUITE, near))
    assert (verdict.shown, verdict.field) == ((20,), "scale")


def test_exponents_are_those_of_numpy():
    """Each computation of an exponent as NumPy does it, for normal amaxes and scales."""
    bits = np.random.default_rng(64).integers(40 << 23, 200 << 23, 300, U)
    bits = np.append(bits, [(80 << 23) - 1, 80 << 23, (80 << 23) + 1, (190 << 23) - 1]).astype(U)
    amax = bits.view(F)
    log2f, wide = np.log2(amax.astype(float)).astype(F), amax.astype(float)
    expected = {
        ("MXS-003/log2-in-binary32", "floor"): np.floor(log2f),
        ("MXS-004/log2-in-binary32", "ceil"): np.ceil(log2f),
        ("MXS-005/log2-in-binary32", "even"): np.rint(log2f),
        ("MXS-003/natural-logarithm", "floor"): np.floor(np.log(wide) / np.log(2.0)),
        ("MXS-005/threshold-without-equals", "even"): (bits + (1 << 19) - 1 >> 23) - 127.0,
        ("MXS-005/threshold-one-bit-more", "even"): (bits + (1 << 18) >> 23) - 127.0,
    }
    for (name, rule), exponents in expected.items():
        _, found = scales_under(name, "e4m3", rule, *amax)
        assert found == (exponents - 8 + 127).tolist(), name
    quotient = (amax / F(448)).view(U)
    _, found = scales_under("MXS-006/to-nearest", "e4m3", "rceil", *amax)
    assert found == (quotient + (1 << 22) >> 23).tolist()
    _, found = scales_under("MXS-006/quotient-by-reciprocal", "int8_mx", "rceil", *amax)
    quotient = (amax * (F(1) / F(127 / 64))).view(U)
    assert found == (quotient + 0x7FFFFF >> 23).tolist()


def test_a_nan_in_any_place_of_a_block_is_a_hole_of_golden_v1():
    """A NaN of a block of 32 is in few places in the suites; derived blocks have it in each."""
    (case,) = (c for c in derived_blocks() if c.name == "e4m3.floor.specials")
    of_nan = [one for one in mistakes_of_mx() if one.name.startswith("MXS-002/nan-")]
    assert len(of_nan) > 8
    assert all(verdict.shown for verdict in matrix(of_nan, kind_of(SUITE, case)))


def test_a_mistake_of_one_rule_leaves_the_others_alone():
    for rule in ("floor", "even"):
        right, found = scales_under(
            "MXS-004/log2-in-binary32", "e4m3", rule, 2.0**40 * (1 + 2.0**-23)
        )
        assert right == found
    right, found = scales_under(
        "MXS-004/log2-in-binary32", "e4m3", "ceil", 2.0**40 * (1 + 2.0**-23)
    )
    assert right != found


@pytest.mark.tier("full", but_one_in=9)
@pytest.mark.parametrize("name", OF_MX)
def test_a_whole_wrong_kernel_is_named(name):
    """A kernel that was written before the model has the bits of the mistake that is named."""
    there = (one for one in REGISTERED if one.name not in put_aside())
    kernel = next(one for one in there if f"{one.name}.".startswith(f"{name}."))
    suite = "mx" if name in OF_BF16 else SUITE
    found = verify(PythonFunction(name, kernel.run), suites_in(bundled_files(), [suite]))
    (diagnosis,) = found.diagnosis.suites
    certain = {"+".join(one.deviations): one.is_whole for one in diagnosis.explanations}
    assert certain[OF_MX[name]] == (name not in GUESSED), certain


def test_amaxes_have_the_same_mistakes_but_for_the_rule_itself():
    found = {one.name for one in mistakes_of_amaxes()}
    alone = {name for name in found if "+" not in name}
    operators = {name.partition("/")[2] for name in alone}
    assert {name for name in alone if name.startswith("NVF")} == {f"NVF-002/{o}" for o in operators}
    assert "SCL-001/amax-infinities-left-out" not in found
    assert found <= MODELLED.keys()


@pytest.mark.tier("exhaustive")
def test_the_command_names_the_holes_of_a_suite(tmp_path):
    first, hole = run("golden", "mistakes", SUITE, cwd=tmp_path).stdout.splitlines()
    count = len(mistakes_of_blocks())
    assert first == f"{SUITE}: {count - 1} of {count} mistakes shown"
    assert hole.startswith("  MXS-004/of-rounded-quotient: derived inputs show it: ")
