"""Enlarged suites: operations on columns have random inputs after the inputs of the suite."""

from collections.abc import Iterator

import numpy as np

from mor_ref.golden.inputs.random_inputs import OPERATIONS
from mor_ref.golden.inputs.random_numbers import Draws
from mor_ref.golden.model.suite import Case, Size, Suite


def questions(suite: Suite, size: Size) -> Iterator[Case]:
    """Yield the cases of a suite of this size, without expected values."""
    for case in suite.questions(size):
        yield _enlarged(suite.operation, case, size) if suite.operation in OPERATIONS else case


def _enlarged(operation: str, case: Case, size: Size) -> Case:
    """Return a case with as many random rows as it has rows, for each further factor."""
    rows = next(iter(case.arrays.values())).size
    draws = Draws(0, rows * (size.factor - 1), size.seed)
    random = OPERATIONS[operation].inputs(case.parameters, draws)
    arrays = {
        name: np.concatenate([array, random[name].astype(array.dtype)])
        for name, array in case.arrays.items()
    }
    return Case(case.name, case.parameters, arrays)
