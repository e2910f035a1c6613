"""Every suite that a wrong implementation answers says mismatch, or it is said why it cannot."""

import functools

import pytest
from wrong import REGISTERED

from mor_ref.golden import bundled_files
from mor_ref.golden.model.suite import question
from mor_ref.golden.store.manifest import read_manifest
from mor_ref.golden.store.suite_files import read_suite
from mor_ref.verify.comparing.compare import comparisons
from mor_ref.verify.comparing.names_given import fields_of, given_as

SUITES = read_manifest(bundled_files())["suites"]
RIGHT = [kernel for kernel in REGISTERED if not kernel.mistake]
WRONG = [kernel for kernel in REGISTERED if kernel.mistake]


@functools.cache
def cases_of(suite, source=None):
    """Return the cases of a suite with their questions, all or those of a source.

    Those of the fewest numbers come first: most mistakes show there.
    """
    if source:
        return [(c, asked) for c, asked in cases_of(suite) if c.parameters.get("source") == source]
    cases = read_suite(bundled_files(), suite, SUITES[suite])
    for case in cases:
        for array in case.arrays.values():
            array.flags.writeable = False
    cases.sort(key=lambda case: next(iter(case.arrays.values())).size)
    fields = fields_of(SUITES[suite])
    return [(case, question(fields, case)) for case in cases]


def compared(kernel, operation, fields, case, arrays):
    """Return the comparisons of a kernel's answer to a case; None if it has no answer."""
    answer = kernel.run(operation, case.parameters, arrays)
    if answer is None:
        return None
    chosen = given_as(fields, answer)
    given = [field for field in fields if field.name in chosen]
    return comparisons(operation, case, given, answer, chosen)


def first_difference(kernel, suite, source=None):
    """Return the first field that differs, as text; None if all match, "" without an answer.

    An exception fails the test, and is not a mismatch.
    """
    entry = SUITES[suite]
    fields, is_answered = fields_of(entry), False
    for case, asked in cases_of(suite, source):
        for one in compared(kernel, entry["operation"], fields, case, asked.arrays) or ():
            assert one.problem is None, one.problem
            if one.count:
                return str(one.difference(entry["operation"], asked))
            is_answered = True
    return None if is_answered else ""


@pytest.mark.tier("full", one_in=12, but=[f"[{kernel.name}]" for kernel in RIGHT[1::40]])
@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: kernel.name)
def test_the_right_one_matches(kernel):
    found = {suite: first_difference(kernel, suite) for suite in SUITES}
    assert {suite: text for suite, text in found.items() if text} == {}
    assert None in found.values()


SAMPLED = pytest.mark.tier("full", one_in=20, but=[f"[{kernel.name}]" for kernel in WRONG[:-40:40]])
# It is right on a whole suite of dot products, which takes longer than all others of the tier full.
LONG = {"dot_without_tail": pytest.mark.tier("exhaustive")}


@pytest.mark.parametrize(
    "kernel",
    [pytest.param(one, marks=LONG.get(one.name, SAMPLED), id=one.name) for one in WRONG],
)
def test_every_suite_says_mismatch(kernel):
    found = {suite: first_difference(kernel, suite) for suite in SUITES}
    assert {suite for suite, text in found.items() if text is None} == kernel.unseen.keys()
    assert any(found.values())


def test_there_are_enough_of_them():
    assert len(WRONG) >= 60
    assert len({kernel.name for kernel in REGISTERED}) == len(REGISTERED)
