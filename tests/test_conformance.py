"""Conformance: to the bit, in all decisions that are not close, or not."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from verifying import MANIFEST, cases_of

from mor_ref import golden
from mor_ref.golden.model.suite import Case
from mor_ref.metrics import MeanRelativeError
from mor_ref.operations.margins import margin_of_policy
from mor_ref.recipes import as_policy
from mor_ref.verify.comparing.compared_field import ComparedField
from mor_ref.verify.comparing.conformance import Conformance, _until_far, standing_of
from mor_ref.verify.comparing.conformance import conformance as conformance_of
from mor_ref.verify.comparing.coverage import Coverage
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of


def conformance(change, *suites):
    """Return how a candidate conforms whose answers are the expected ones after `change`."""
    found = []
    for name in suites:
        fields, cases = fields_of(MANIFEST[name]), golden.load(name)
        expected = {field.name for field in fields if field.role == "expected"}
        answers = {
            case.name: change({n: a for n, a in case.arrays.items() if n in expected}, case)
            for case in cases
        }
        answers = {case: answer for case, answer in answers.items() if answer is not None}
        found.append(Evidence(name, MANIFEST[name]["operation"], fields, cases, answers))
    standings = [standing_of(one) for one in found]
    return conformance_of(standings, {name: MANIFEST[name] for name in suites}, len(MANIFEST))


def test_bit_exact():
    suites = ("decisions", "error_steps")
    found = conformance(lambda found, *_: found, *suites)
    assert found.level == "bit-exact"
    rules = {rule for name in suites for rule in MANIFEST[name]["rules"]}
    assert str(found) == (
        f"bit-exact in all that was asked: 4 fields, {cases_of(*suites)} cases, {len(rules)} "
        f"rules, 2 suites (of {len(MANIFEST)})"
    )


def test_of_all_suites_it_says_no_more_than_that():
    found = Conformance("bit-exact", *[Coverage(2, 4, 6, 7)] * 2, suites=2)
    assert str(found) == "bit-exact in all that was asked: 4 fields, 6 cases, 7 rules, 2 suites"


def test_nobody_is_bit_exact_for_a_part():
    """CON-002: one field of five, of 15 of 72 cases."""

    def codes_of_e4m3(found, case):
        return {"xs": found["xs"]} if case.name.startswith(("e4m3.", "e5m2.floor")) else None

    found = conformance(codes_of_e4m3, "mx_blocks")
    assert found.level == "partial"
    rules = len(MANIFEST["mx_blocks"]["rules"])
    assert str(found) == (
        f"bit-exact in the given part: 1 of 4 fields, 15 of 72 cases, 0 of {rules} rules in full, "
        f"1 suite (of {len(MANIFEST)}); the rest was not shown"
    )


def test_a_rule_is_given_by_every_field_about_it_in_every_case():
    """CON-002: of all suites that were asked."""

    def rules(change, *suites):
        found = conformance(change, *suites)
        return found.given.rules, found.asked.rules

    def but(name, field):
        return lambda found, case: {
            n: array for n, array in found.items() if (case.name, n) != (name, field)
        }

    def one_case(found, case):
        return found if case.name == first else None

    def one_field(*names):
        return lambda found, _: {name: found[name] for name in names if name in found}

    first = golden.load("encode")[0].name
    assert rules(one_case, "encode") == (0, 15)
    assert rules(lambda found, case: None if case.name == first else found, "encode") == (0, 15)
    # Of xs, code and y: QNT-001; QNT-001, ENC-003 and ENC-007; QNT-002.
    assert rules(one_field("y"), "quantize_steps") == (1, 4)
    assert rules(one_field("code"), "quantize_steps") == (2, 4)
    assert rules(one_field("xs", "code"), "quantize_steps") == (3, 4)
    # ENC-003 and ENC-007 are of encode too, and MXS-001 of no field of mx_blocks.
    assert rules(one_field("xs", "code"), "quantize_steps", "encode") == (1 + 15, 2 + 15)
    assert rules(lambda found, _: found if "xs" in found else None, "quantize_steps", "encode") == (
        2,
        17,
    )
    case = golden.load("mx_blocks")[-1].name
    assert rules(but(case, "y"), "mx_blocks") == (6, 8)
    assert rules(but(case, "xs"), "mx_blocks") == (6, 8)
    assert rules(but(case, "scale"), "mx_blocks") == (2, 8)
    assert rules(but("no case", "y"), "mx_blocks") == (8, 8)


def test_rules_of_a_suite_that_was_not_asked_any_more_are_not_given():
    entries = {name: MANIFEST[name] for name in ("error_steps", "quantize_steps")}
    fields, cases = fields_of(MANIFEST["error_steps"]), golden.load("error_steps")
    answers = {case.name: case.arrays for case in cases}
    evidence = Evidence("error_steps", "error_term", fields, cases, answers)
    found = conformance_of([standing_of(evidence)], entries, 2)
    assert (found.given.rules, found.asked.rules) == (1, 5)


@pytest.mark.parametrize("change", [
    lambda found, case: found if case.name != "mean_relative_error" else None,
    lambda found, _: found if "u" not in found else {"u": found["u"]},
    lambda found, _: found if "u" not in found else None,
])  # fmt: skip
def test_a_part_is_partial(change):
    """A case, a field or a suite less."""
    assert conformance(change, "decisions", "error_steps").level == "partial"


def test_it_says_how_many_cases_were_answered():
    def first(found, case):
        return found if case.name == "mean_relative_error" else None

    def close_first(found, case):
        return first(found, case) and close("mean_relative_error", 1e-5)(found, case)

    found = conformance(first, "decisions", "error_steps")
    assert str(found).startswith(
        f"bit-exact in the given part: 1 of 4 fields, 1 of {cases_of('decisions') + 1} cases, "
    )
    found = conformance(close_first, "decisions")
    assert str(found).startswith("not bit-exact, but all decisions agree except those within ")
    assert f"; compared: 1 field, 1 of {cases_of('decisions')} cases, " in str(found)


def test_an_answer_of_unknown_fields_answers_nothing():
    def strange(found, _):
        return found if "u" in found else {"what": found["accepted"]}

    found = conformance(strange, "decisions", "error_steps")
    assert str(found).startswith(
        f"bit-exact in the given part: 3 of 4 fields, 1 of {cases_of('decisions') + 1} cases, "
    )


def test_nothing_compared():
    assert conformance(lambda *_: None, "decisions").level == "not run"


def close(metric, nearest):
    """Return a change: decisions flip if the sum is near the threshold of the metric."""

    def change(found, case):
        inputs = case.arrays
        if case.parameters["metric"] == metric:
            at = inputs["limit"].astype(float) * inputs["nonzero"]
            if metric == "not_worse_than":
                at = inputs["yardstick_sum"].astype(float)
            near = abs(inputs["sum"] - at) <= nearest * at
            near &= (inputs["nonfinite"] == 0) & (at > 0)
            found["accepted"] = found["accepted"] ^ near
        return found

    return change


@pytest.mark.parametrize("metric", ["mean_relative_error", "not_worse_than"])
def test_decisions_close_to_the_threshold_may_differ(metric):
    found = conformance(close(metric, 1e-5), "decisions")
    assert found.level == "decisions"
    assert 0 < found.margin <= 1e-5
    assert "all decisions agree except those within" in str(found)


def test_a_hundredth_of_the_threshold_is_close_and_more_is_not():
    hundredth = Fraction(1, 100)
    assert _until_far([Fraction(0), hundredth]) == hundredth
    assert _until_far([hundredth + Fraction(1, 10**9)]) is None
    assert _until_far([Fraction(0), None]) is None


def test_decisions_far_from_the_threshold_may_not():
    assert conformance(close("mean_relative_error", 0.9), "decisions").level == "not"


def test_other_metrics_have_no_margin():
    def change(found, case):
        if case.parameters["metric"] == "fits_range":
            found["accepted"] = found["accepted"] ^ (np.arange(len(found["accepted"])) == 3)
        return found

    assert conformance(change, "decisions").level == "not"


def test_a_decision_on_lost_elements_has_no_margin():
    def change(found, case):
        found["accepted"] = found["accepted"] | (case.arrays["nonfinite"] > 0)
        return found

    assert conformance(change, "decisions").level == "not"


def float_sums(found, *_):
    """Round sums as a kernel does that adds in binary32."""
    for name, array in found.items():
        if name.endswith(".sum"):
            found[name] = array.astype(np.float32).astype(np.uint64)
    return found


@pytest.mark.tier("full")
def test_sums_in_floating_point():
    found = conformance(float_sums, "policies")
    assert found.level == "decisions"
    assert 0 < found.margin < 1e-5


def test_sums_of_blocks_in_floating_point():
    def change(found, *_):
        found["sum"] = found["sum"] >> np.uint64(20) << np.uint64(20)
        return found

    found = conformance(change, "quantize_blocks")
    assert found.level == "not"  # too coarse: a mean differs by more than 1 %

    def binary32(found, *_):
        found["sum"] = found["sum"] - (found["sum"] > 1 << 20)
        return found

    found = conformance(binary32, "quantize_blocks")
    assert found.level == "decisions"
    # A block has one number that is not 0, and the least threshold of a policy is 0.045.
    assert found.margin == pytest.approx(1 / round(0.045 * 2**23), rel=1e-9)


def nearest_unit():
    """Return the distance of the closest mean from the threshold, and the case of its unit."""
    limit = MeanRelativeError("0.045").limit
    found = []
    for case in golden.load("policies"):
        if case.parameters["policy"] == "tensor" and not case.arrays["e4m3.nonfinite"].any():
            total, count = (
                int(case.arrays["e4m3.sum"][0, 0]),
                int(case.arrays["e4m3.nonzero"][0, 0]),
            )
            if count:
                found.append((abs(total - limit * count) / (limit * count), case.name))
    return min(found)


@pytest.mark.tier("full")
def test_sums_alone_or_far_off_say_nothing_of_decisions():
    def alone(found, _):
        return {name: array for name, array in float_sums(found).items() if name.endswith(".sum")}

    def garbage(found, _):
        return {n: a * 0 + 123456789 if n.endswith(".sum") else a for n, a in found.items()}

    assert conformance(alone, "policies").level == "not"
    assert conformance(garbage, "policies").level == "not"


@pytest.mark.tier("full")
def test_a_choice_that_does_not_exist_or_another_output_does_not_conform():
    _, closest = nearest_unit()

    def nowhere(found, case):
        close = case.name == closest
        return found | {"choice": found["choice"] * 0 + 99} if close else found

    def elsewhere(found, case):
        if found["choice"].shape[1] > 2 and case.parameters["policy"] == "two_way":
            found["choice"] = found["choice"].copy()
            found["choice"][0, 0] ^= 1
            found["output"] = found["output"] ^ 1
        return found

    assert conformance(nowhere, "policies").level == "not"
    assert conformance(elsewhere, "policies").level == "not"


def test_an_output_may_differ_only_in_units_whose_choice_does():
    """Of two units, the second has another choice: its mean is at the threshold."""
    sums = {f"{one.name}.{field}": 0 for one in as_policy("two_way").tried for field in SUMS}
    numbers = {**sums, "amax": BIG, "amin": BIG, "choice": 0}
    numbers |= {name: 1000 for name in sums if "nonzero" in name}
    numbers |= {"e4m3.sum": 1000, "e5m2.sum": 1001}
    arrays = {
        name: np.full((1, 2), value, ARRAYS.get(name, np.uint64)) for name, value in numbers.items()
    }
    arrays |= {"x": np.zeros((1, 2), np.uint32), "output": np.zeros((1, 2), np.uint16)}
    parameters = {"policy": "two_way", "block": [1, 1]}
    found = {}
    for place in (0, 1):
        given = {"choice": np.array([[0, 1]], np.uint8), "output": arrays["output"].copy()}
        given["output"][0, place] = 1
        compared = {
            name: ComparedField("", name, name, "", arrays[name], array, array != arrays[name], 1)
            for name, array in given.items()
        }
        found[place] = margin_of_policy(parameters, arrays, compared, {*compared})
    assert found[0] is None
    assert found[1] == pytest.approx(0.001, rel=1e-2)


@pytest.mark.tier("full")
def test_a_choice_that_is_close_may_differ_with_its_output():
    distance, name = nearest_unit()

    def change(found, case):
        if case.name == name:
            found["choice"] = found["choice"] ^ 1
            found["output"] = found["output"] ^ 1
        return found

    found = conformance(change, "policies")
    if distance <= 0.01:
        assert found.level == "decisions"
        assert found.margin == pytest.approx(distance)
    else:
        assert found.level == "not"


ARRAYS = {"choice": np.uint8, "amax": np.uint32, "amin": np.uint32}


def unit_of(policy, choice, given, without=(), **sums):
    """Return how a candidate conforms in one unit with another choice and the same sums."""
    names = {f"{one.name}.{field}" for one in as_policy(policy).tried for field in SUMS}
    values = dict.fromkeys(names, 0) | {name: 1000 for name in names if "nonzero" in name}
    values |= {name.replace("_", "."): value for name, value in sums.items()}
    values |= {"choice": choice, "amax": BIG, "amin": BIG} | values
    arrays = {
        name: np.array([[value]], ARRAYS.get(name, np.uint64))
        for name, value in values.items()
        if name not in without
    }
    expected = [field for field in fields_of(MANIFEST["policies"]) if field.role == "expected"]
    answer = {field.name: arrays[field.name] for field in expected if field.name in arrays}
    answer["choice"] = np.array([[given]])
    arrays["x"] = np.zeros((1, 1), np.uint32)
    case = Case("unit", {"policy": policy, "block": [1, 1]}, arrays)
    evidence = Evidence(
        "policies", "mor", fields_of(MANIFEST["policies"]), [case], {"unit": answer}
    )
    return conformance_of(
        [standing_of(evidence)], {"policies": MANIFEST["policies"]}, len(MANIFEST)
    )


SUMS = ("sum", "nonzero", "nonfinite")
BIG, SMALL = 0x7F000000, 0x00800000  # of binary32: no format's numbers reach from one to the other
FIRST, SECOND = (MeanRelativeError(limit).limit * 1000 for limit in ("0.20", "0.045"))
BELOW, ABOVE = 0.999, 1.001


@pytest.mark.parametrize(
    ("right", "given", "first", "second", "margin"),
    [
        # The first rung is all but rejected: what then follows is up to the second.
        (0, 1, BELOW, 0.5, 0.001),
        (0, 1, BELOW, ABOVE, 0.001),
        (0, 1, 0.9999, ABOVE, 0.001),
        (0, 1, BELOW, 2, None),
        (0, 2, BELOW, 0.5, None),
        (0, 2, BELOW, BELOW, 0.001),
        (0, 2, BELOW, 0.9999, 0.001),
        (0, 2, BELOW, 2, 0.001),
        (0, 1, 0.5, 0.5, None),
        (0, 2, 0.5, BELOW, None),
        # The first rung is rejected: it may be taken only if that was close, whatever follows.
        (1, 0, ABOVE, 0.5, 0.001),
        (1, 0, 2, BELOW, None),
        (2, 0, ABOVE, 2, 0.001),
        (2, 0, 2, ABOVE, None),
        # The second rung alone is at stake.
        (1, 2, 2, BELOW, 0.001),
        (1, 2, ABOVE, 0.5, None),
        (2, 1, 2, ABOVE, 0.001),
        (2, 1, ABOVE, 2, None),
        # A mean at the threshold is not below it.
        (1, 0, 1, 0.5, 0.0),
        # What is expected contradicts itself.
        (1, 0, 0.5, 0.5, None),
        # There is no such rung.
        (0, 3, BELOW, BELOW, None),
        (2, 3, ABOVE, ABOVE, None),
        (0, -1, BELOW, BELOW, None),
        (2, 255, ABOVE, ABOVE, None),
    ],
)
def test_every_decision_that_leads_to_another_choice_is_close(right, given, first, second, margin):
    """From the rung at which the choices differ to the one that was taken, and at no other."""
    sums = {"nvfp4_sum": round(first * FIRST), "e4m3_sum": round(second * SECOND)}
    found = unit_of("nvfp4", right, given, **sums)
    assert found.level == ("not" if margin is None else "decisions")
    assert found.margin == pytest.approx(margin or 0, rel=1e-3)


@pytest.mark.parametrize(
    ("right", "given", "amin", "conforms"),
    [
        (0, 1, BIG, True),
        (0, 1, SMALL, False),
        (0, 2, BIG, False),
        (0, 2, SMALL, True),
        (1, 2, BIG, False),
        (2, 1, SMALL, False),
        (1, 0, BIG, True),
        (2, 0, SMALL, True),
    ],
)
def test_a_range_is_decided_exactly(right, given, amin, conforms):
    """Under three_way: the first rung is close, the second does not depend on sums."""
    sums = {"e4m3_sum": 100_000 if right == 0 else 100_001, "e5m2_sum": 100_000}
    found = unit_of("three_way", right, given, amin=amin, **sums)
    assert found.level == ("decisions" if conforms else "not")


def test_a_unit_without_a_mean_has_no_margin():
    """One that lost elements is rejected, and one of zeros alone accepted, whatever the sums."""
    close = {"nvfp4_sum": round(ABOVE * FIRST), "e4m3_sum": round(BELOW * SECOND)}
    assert unit_of("nvfp4", 1, 0, **close).level == "decisions"
    assert unit_of("nvfp4", 1, 0, **close, nvfp4_nonfinite=1).level == "not"
    zeros = close | {"nvfp4_sum": 0, "nvfp4_nonzero": 0}
    assert unit_of("nvfp4", 0, 2, **zeros).level == "not"


def test_a_suite_without_ranges_says_nothing_of_their_decisions():
    assert unit_of("three_way", 0, 1, without=("amin",), e4m3_sum=7, e5m2_sum=7).level == "not"


def test_a_mean_of_nothing_has_no_margin():
    """A sum of 0 over 0 elements is accepted (MOR-002), and not as 0 is close to 0."""

    def change(found, case):
        if case.parameters["metric"] != "mean_relative_error":
            return found
        is_nothing = (case.arrays["nonzero"] == 0) & (case.arrays["sum"] == 0)
        assert (is_nothing & (found["accepted"] == 1)).any()
        return {"accepted": found["accepted"] & ~is_nothing}

    assert conformance(change, "decisions").level == "not"


def test_an_output_that_differs_by_itself_is_no_matter_of_decisions():
    def change(found, *_):
        found["output"] = found["output"] ^ 1
        return found

    assert conformance(change, "policies").level == "not"


def test_entries_without_defined_bits_say_more_than_allowed_bits():
    """And less than entries that differ."""
    suite = MANIFEST["decisions"]
    fields, cases = fields_of(suite), golden.load("decisions")
    answers = {case.name: {"accepted": case.arrays["accepted"]} for case in cases}
    right = standing_of(Evidence("decisions", suite["operation"], fields, cases, answers))
    allowed = replace(right, nans=1)
    both = replace(allowed, open=1)
    for one, level in [(allowed, "allowed"), (both, "open"), (replace(both, margin=None), "not")]:
        assert conformance_of([one], {"decisions": suite}, len(MANIFEST)).level == level


def test_a_later_part_of_a_suite_counts_as_much_as_the_first():
    """The standing of two parts is that of the whole, whichever of them differs."""
    fields, cases = fields_of(MANIFEST["decisions"]), golden.load("decisions")
    change = close("mean_relative_error", 1e-5)

    def standing(some):
        answers = {c.name: change({"accepted": c.arrays["accepted"]}, c) for c in some}
        return standing_of(Evidence("decisions", "decide", fields, some, answers))

    differing = [c for c in cases if c.parameters["metric"] == "mean_relative_error"]
    wrong = standing(differing)
    right = standing([c for c in cases if c not in differing])
    assert (right.is_exact, right.margin, wrong.is_exact) == (True, 0, False)
    assert right + wrong == wrong + right == standing(cases)
    wrong = replace(wrong, margin=None, nans=2, zeros=3, left_out=5, open=7)
    for both in (right + wrong, wrong + right):
        assert (both.is_exact, both.margin) == (False, None)
        assert (both.nans, both.zeros, both.left_out, both.open) == (2, 3, 5, 7)


def test_what_cannot_be_compared_does_not_conform():
    def change(found, *_):
        return {"accepted": found["accepted"][1:]}

    assert conformance(change, "decisions").level == "not"
