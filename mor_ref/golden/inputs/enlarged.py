"""Enlarged suites: operations on columns have random inputs after the inputs of the suite.

Suites of blocks and tensors draw more random inputs by themselves.
"""

from collections.abc import Iterator

import numpy as np

from mor_ref.golden.model.suite import Case, Size, Suite
from mor_ref.operations import OPERATIONS, RandomInputs
from mor_ref.operations.random_numbers import Draws


def questions(suite: Suite, size: Size) -> Iterator[Case]:
    """Yield the cases of a suite of this size, without expected values."""
    declared = OPERATIONS[suite.operation]
    random = declared.random if declared.first_axes == "n" else None
    for case in suite.questions(size):
        yield case if random is None else _enlarged(random, case, size)


def _enlarged(random: RandomInputs, case: Case, size: Size) -> Case:
    """Return a case with more random rows: as many as it has, for each factor above 1."""
    rows = next(iter(case.arrays.values())).size
    draws = Draws(0, rows * (size.factor - 1), size.seed)
    drawn = random.draw(case.parameters, draws)
    arrays = {
        name: np.concatenate([array, drawn[name].astype(array.dtype)])
        for name, array in case.arrays.items()
    }
    return Case(case.name, case.parameters, arrays)
