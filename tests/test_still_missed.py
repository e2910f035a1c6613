"""Wrong implementations that no suite shows; one that a suite begins to show is red here."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_wrong_kernels import SUITES, cases_of, first_difference
from wrong.still_missed import MISSED

from mor_ref.golden.generation.expected import with_deviation
from mor_ref.golden.model.suite import Case
from mor_ref.golden.suites import SUITES as DECLARED
from mor_ref.mistakes.catalogue import CAUSES, id_of
from mor_ref.operations import OPERATIONS

VECTOR = 4  # numbers
IN_TAILS = Path(__file__).with_name("wrong") / "deviations_in_tails.json"
LARGEST = 1 << 13  # numbers of an input that the exact model takes
ROWS = [name for name, suite in DECLARED.items() if OPERATIONS[suite.operation].first_axes == "n"]


@pytest.mark.parametrize("missed", MISSED, ids=lambda one: one.kernel.name)
def test_every_suite_says_match(missed):
    """If this fails, a suite shows the mistake: move it to the wrong kernels that are found."""
    suites = [name for name, entry in SUITES.items() if entry["operation"] == missed.operation]
    assert suites
    assert {suite: first_difference(missed.kernel, suite) for suite in suites} == dict.fromkeys(
        suites
    )


@pytest.mark.parametrize("missed", MISSED, ids=lambda one: one.kernel.name)
def test_it_is_wrong(missed):
    parameters, arrays = missed.shown_by()
    operation = OPERATIONS[missed.operation]
    is_small = next(iter(arrays.values())).size <= LARGEST
    right = (operation.exact if is_small else operation.engine)(parameters, arrays)
    answer = missed.kernel.run(missed.operation, parameters, arrays)
    shared = [name for name in answer if name in right]
    assert shared
    assert any(not np.array_equal(answer[name], right[name]) for name in shared)


def last_rows(suite):
    """Yield the cases of a suite cut to the rows behind the last vector."""
    for case, _ in cases_of(suite):
        size = len(next(iter(case.arrays.values())))
        if size % VECTOR:
            some = {n: array[size // VECTOR * VECTOR :] for n, array in case.arrays.items()}
            yield Case(case.name, case.parameters, some)


def is_shown(deviation, suite, cases):
    """Return whether a deviation changes a field of a case."""
    for case in cases:
        found = with_deviation(deviation, DECLARED[suite], case).arrays
        if any(not np.array_equal(array, case.arrays[name]) for name, array in found.items()):
            return True
    return False


@pytest.mark.parametrize("suite", ROWS)
def test_deviations_of_the_last_rows_alone(suite):
    """Those of the file are not shown where only the last n % 4 rows have them; all others are."""
    cases = list(last_rows(suite))
    missed = [
        name for name in SUITES[suite]["kills"] if not is_shown(CAUSES[id_of(name)], suite, cases)
    ]
    assert missed == json.loads(IN_TAILS.read_text(encoding="ascii")).get(suite, [])
