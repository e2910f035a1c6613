"""Conformance: to the bit, in all decisions that are not close, or not."""

import numpy as np
import pytest

from mor_ref import golden
from mor_ref.golden import kept_files
from mor_ref.golden.container import read_manifest
from mor_ref.recipes import MeanRelativeError
from mor_ref.verify.compare import fields_of
from mor_ref.verify.conformance import conformance as conformance_of
from mor_ref.verify.evidence import Evidence

MANIFEST = read_manifest(kept_files())["suites"]


def conformance(change, *suites):
    """Of a candidate whose answers are what is expected, changed: what `change` makes of a case."""
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
    return conformance_of(found, sum(len(evidence.cases) for evidence in found))


def test_bit_exact():
    found = conformance(lambda found, *_: found, "decisions", "error_steps")
    assert found.level == "bit-exact"
    assert str(found) == "bit-exact in everything that was given, in all 6 cases"


def test_it_says_how_many_cases_were_answered():
    def first(found, case):
        return found if case.name == "mean_relative_error" else None

    def close_first(found, case):
        return first(found, case) and close("mean_relative_error", 1e-5)(found, case)

    found = conformance(first, "decisions", "error_steps")
    assert str(found) == "bit-exact in everything that was given, in 1 of 6 cases"
    found = conformance(close_first, "decisions")
    assert str(found).startswith("not bit-exact in everything that was given, in 1 of 5 cases, but")


def test_an_answer_of_unknown_fields_answers_nothing():
    def strange(found, _):
        return found if "u" in found else {"what": found["accepted"]}

    found = conformance(strange, "decisions", "error_steps")
    assert str(found) == "bit-exact in everything that was given, in 1 of 6 cases"


def test_nothing_compared():
    assert conformance(lambda *_: None, "decisions").level == "not run"


def close(metric, nearest):
    """Flip the decisions of a metric whose sum is within some distance of its threshold."""

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
    assert "every decision is equal whose sum is further than" in str(found)


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
    """Sums as a kernel has them that adds in binary32."""
    for name, array in found.items():
        if name.endswith(".sum"):
            found[name] = array.astype(np.float32).astype(np.uint64)
    return found


def test_sums_in_floating_point():
    found = conformance(float_sums, "policies")
    assert found.level == "decisions"
    assert 0 < found.margin < 1e-6


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
    assert 0 < found.margin < 1e-6


def nearest_unit():
    """The unit of the suite whose mean is the closest to the threshold: its case and distance."""
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


def test_sums_alone_or_far_off_say_nothing_of_decisions():
    def alone(found, _):
        return {name: array for name, array in float_sums(found).items() if name.endswith(".sum")}

    def garbage(found, _):
        return {n: a * 0 + 123456789 if n.endswith(".sum") else a for n, a in found.items()}

    assert conformance(alone, "policies").level == "not"
    assert conformance(garbage, "policies").level == "not"


def test_a_choice_that_does_not_exist_or_another_output_does_not_conform():
    def nowhere(found, case):
        close = case.name == nearest_unit()[1]
        return found | {"choice": found["choice"] * 0 + 99} if close else found

    def elsewhere(found, case):
        if found["choice"].shape[1] > 2 and case.parameters["policy"] == "two_way":
            found["choice"] = found["choice"].copy()
            found["choice"][0, 0] ^= 1
            found["output"] = found["output"] ^ 1
        return found

    assert conformance(nowhere, "policies").level == "not"
    assert conformance(elsewhere, "policies").level == "not"


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


def test_an_output_that_differs_by_itself_is_no_matter_of_decisions():
    def change(found, *_):
        found["output"] = found["output"] ^ 1
        return found

    assert conformance(change, "policies").level == "not"


def test_what_cannot_be_compared_does_not_conform():
    def change(found, *_):
        return {"accepted": found["accepted"][1:]}

    assert conformance(change, "decisions").level == "not"
