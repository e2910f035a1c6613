"""Diagnosis: a planted deviation is named, alone or with another, and nothing else is claimed."""

from dataclasses import replace

import numpy as np
import pytest

from mor_ref import golden
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.golden import kept_files
from mor_ref.golden.container import read_manifest
from mor_ref.golden.expected import OPERATIONS
from mor_ref.golden.kills import completed
from mor_ref.golden.suite import question
from mor_ref.golden.suites import SUITES
from mor_ref.verify import report
from mor_ref.verify.candidates import PythonFunction
from mor_ref.verify.compare import fields_of
from mor_ref.verify.diagnosis import diagnose
from mor_ref.verify.evidence import Evidence
from mor_ref.verify.run import verify

# What no suite of the domain can tell apart: the same function of every input that there is.
INDISTINGUISHABLE: tuple[frozenset[str], ...] = ()
MANIFEST = read_manifest(kept_files())["suites"]
FAST = ("quantize_steps", "mx_blocks")


def planted(*names):
    """A candidate that is the model with deviations."""

    def function(operation, parameters, inputs):
        with applied(*(DEVIATIONS[name] for name in names)):
            return dict(OPERATIONS[operation].function(parameters, inputs))

    return PythonFunction("+".join(names), function)


def explanations(diagnosis):
    return [set(e.deviations) for e in diagnosis.explanations if e.is_whole]


def smallest_suites(deviation):
    """The suites of a domain, those of few elements first."""
    return sorted(deviation.suites, key=lambda name: MANIFEST[name]["elements"])


def whole_of(name, suite):
    """A planted deviation on a suite of a few cases."""
    return answered(name, suite, golden.load(suite))


def some_of(name, suite):
    """A planted deviation on the case where it shows first, and on a few others of the suite."""
    cases = golden.load(suite)
    first = MANIFEST[suite]["kills"][name]["case"]
    chosen = [case for case in cases if case.name == first]
    chosen += sorted(cases, key=lambda case: next(iter(case.arrays.values())).size)[:4]
    return answered(name, suite, chosen)


def answered(name, suite, chosen):
    fields = fields_of(MANIFEST[suite])
    with applied(DEVIATIONS[name]):
        answers = {
            case.name: completed(SUITES[suite], question(fields, case)).arrays for case in chosen
        }
    return Evidence(suite, MANIFEST[suite]["operation"], fields, chosen, answers)


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_planted_deviation_is_diagnosed(name):
    """In a few cases of two suites, by which others may not be told from it."""
    found = [some_of(name, suite) for suite in smallest_suites(DEVIATIONS[name])[:2]]
    for diagnosis in diagnose(found).suites:
        assert {name} in explanations(diagnosis)


@pytest.mark.tier("exhaustive")
@pytest.mark.parametrize("name", DEVIATIONS)
def test_whole_suites_tell_a_planted_deviation_from_all_others(name):
    found = verify(planted(name), kept_files(), smallest_suites(DEVIATIONS[name])[:4])
    sets = [explanations(diagnosis) for diagnosis in found.diagnosis.suites]
    common = [one for one in sets[0] if all(one in explained for explained in sets)]
    allowed = {name}.union(*(group for group in INDISTINGUISHABLE if name in group))
    assert {name} in common
    assert {other for one in common for other in one} <= allowed


@pytest.mark.parametrize(
    ("names", "suites"),
    [
        (("ties_away", "dequantized_twice"), ["quantize_steps"]),
        (("stochastic_with_greater", "negative_zero_lost"), ["encode_stochastic"]),
        (("scale_truncated", "gam_without_decrement"), ["scale_steps"]),
    ],
)
def test_two_together_are_diagnosed(names, suites):
    found = verify(planted(*names), kept_files(), suites)
    assert set(names) in explanations(found.diagnosis.suites[-1])


def test_an_unknown_mistake_is_not_explained():
    def function(operation, parameters, inputs):
        found = dict(OPERATIONS[operation].function(parameters, inputs))
        found["code"] = found["code"] ^ (np.arange(found["code"].shape[1]) % 7 == 3)
        return found

    found = verify(PythonFunction("odd", function), kept_files(), ["mx_blocks"])
    (diagnosis,) = found.diagnosis.suites
    assert explanations(diagnosis) == []
    text = "\n".join(report.lines(found))
    assert "mismatches are explained" not in text
    assert "no deviation" in text


def test_a_mistake_beside_a_known_one_is_not_claimed():
    """One entry more that is wrong: most is explained, and the report says how much."""

    def function(operation, parameters, inputs):
        with applied(DEVIATIONS["ties_away"]):
            found = dict(OPERATIONS[operation].function(parameters, inputs))
        found["y"] = found["y"].copy()
        found["y"][7] ^= 0x00012345
        return found

    found = verify(PythonFunction("two", function), kept_files(), ["quantize_steps"])
    (diagnosis,) = found.diagnosis.suites
    (best,) = diagnosis.explanations
    assert best.deviations == ("ties_away",)
    assert not best.is_whole
    text = "\n".join(report.lines(found))
    assert "no deviation explains all" in text
    assert "`ties_away` (rule ENC-003) explains 9" in text


def test_what_cannot_be_compared_is_not_claimed():
    function = planted("ties_away").function

    def partly(operation, parameters, inputs):
        found = function(operation, parameters, inputs)
        return found if parameters["format"] != "e5m2" else found | {"y": found["y"][1:]}

    found = verify(PythonFunction("partly", partly), kept_files(), ["quantize_steps"])
    text = "\n".join(report.lines(found))
    assert "mismatches that can be compared are explained by `ties_away`" in text
    assert "mismatches are explained" not in text


def test_one_explanation_of_all_suites_comes_last():
    found = verify(planted("ties_away"), kept_files(), list(FAST))
    lines = list(report.summary(found))
    count = sum(result.differing for result in found.results)
    assert lines[0] == f"all {count:,} mismatches are explained by `ties_away` (rule ENC-003)"


def test_what_changes_cases_that_match_is_named_only_if_nothing_else_is_left():
    """A kernel that truncates its scales; one suite alone could blame the reciprocal as well."""
    found = diagnose([whole_of("scale_truncated", "scale_steps")])
    assert explanations(found.suites[0]) == [{"scale_truncated"}]


def test_a_large_tensor_is_held_to_what_explains_the_others():
    found = diagnose([some_of("mx_as_ceil", "mx_blocks"), whole_of("mx_as_ceil", "mx_large")])
    assert [d.suite for d in found.suites] == ["mx_blocks", "mx_large"]
    assert all({"mx_as_ceil"} in explanations(d) for d in found.suites)


def test_views_are_diagnosed_as_what_they_show():
    plain = some_of("mx_as_ceil", "mx")
    turned = {
        case: {"code@transposed": found["code"].T, "scale": found["scale"]}
        for case, found in plain.answers.items()
    }
    (diagnosis,) = diagnose([replace(plain, answers=turned)]).suites
    assert {"mx_as_ceil"} in explanations(diagnosis)
