"""Suites some times as large: random inputs after the kept ones of operations on columns."""

from collections.abc import Iterator

import numpy as np

from mor_ref.golden.model.suite import Case, Size, Suite
from mor_ref.operations import OPERATIONS, RandomInputs
from mor_ref.operations.random_numbers import Draws


def questions(suite: Suite, size: Size) -> Iterator[Case]:
    """The cases of a suite of this size, without what is expected."""
    for case in suite.questions(size):
        random = OPERATIONS[suite.operation].random
        yield case if random is None else _enlarged(random, case, size)


def _enlarged(random: RandomInputs, case: Case, size: Size) -> Case:
    """A case with as many random rows for each more time as it has rows; tensors have none."""
    rows = next(iter(case.arrays.values())).size
    draws = Draws(0, rows * (size.factor - 1), size.seed)
    drawn = random.draw(case.parameters, draws)
    arrays = {
        name: np.concatenate([array, drawn[name].astype(array.dtype)])
        for name, array in case.arrays.items()
    }
    return Case(case.name, case.parameters, arrays)
