"""Every suite that a wrong implementation answers says mismatch, or it is said why it cannot."""

import functools

import pytest
from wrong import REGISTERED

from mor_ref.golden import kept_files
from mor_ref.golden.container import read_manifest, read_suite
from mor_ref.golden.suite import question
from mor_ref.verify.candidates import PythonFunction
from mor_ref.verify.compare import fields_of
from mor_ref.verify.evidence import Evidence

SUITES = read_manifest(kept_files())["suites"]
RIGHT = [kernel for kernel in REGISTERED if not kernel.mistake]
WRONG = [kernel for kernel in REGISTERED if kernel.mistake]


@functools.cache
def cases_of(suite):
    return read_suite(kept_files(), suite, SUITES[suite])


def evidence(kernel, suite):
    """What a kernel answers to a suite; an exception fails the test, and is no mismatch."""
    entry, candidate = SUITES[suite], PythonFunction(kernel.name, kernel.run)
    fields, cases = fields_of(entry), cases_of(suite)
    answers = {
        case.name: candidate.answer(suite, entry["operation"], question(fields, case))
        for case in cases
    }
    answers = {name: answer for name, answer in answers.items() if answer is not None}
    return Evidence(suite, entry["operation"], fields, cases, answers)


def first_difference(kernel, suite):
    """The first field that differs, as text; None if all match, "" if nothing was answered."""
    found = evidence(kernel, suite)
    if not found.answered:
        return ""
    difference = next(found.differences(), None)
    assert difference is None or difference.problem is None, str(difference)
    return None if difference is None else str(difference)


@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: kernel.name)
def test_the_right_one_matches(kernel):
    found = {suite: first_difference(kernel, suite) for suite in SUITES}
    assert {suite: text for suite, text in found.items() if text} == {}
    assert None in found.values()


@pytest.mark.parametrize("kernel", WRONG, ids=lambda kernel: kernel.name)
def test_every_suite_says_mismatch(kernel):
    found = {suite: first_difference(kernel, suite) for suite in SUITES}
    passed = {suite for suite, text in found.items() if text is None}
    assert passed == set(kernel.unseen)
    assert any(found.values())


def test_there_are_enough_of_them():
    assert len(WRONG) >= 60
    assert len({kernel.name for kernel in REGISTERED}) == len(REGISTERED)
