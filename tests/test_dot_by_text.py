"""Golden vectors of dot products: a program from the text of the chapter alone has all fields."""

import numpy as np
import pytest
from dots_by_text import answer
from matmul_by_text import entries

from mor_ref import golden
from mor_ref.golden.suites import SUITES

OF_DOTS = ("dot_chunks", "dot", "dot_scaled", "dot_integers")


@pytest.mark.tier("full", but=["[dot_integers]"])
@pytest.mark.parametrize("name", [*OF_DOTS, "matmul"])
def test_a_program_from_the_text_has_all_fields(name):
    """DOT-001 to DOT-020, GEM-001, GEM-003, GEM-004."""
    suite = SUITES[name]
    fields = [field.name for field in suite.fields if field.role == "expected"]
    for case in golden.load(name):
        if name == "matmul":
            found = entries(case.parameters, case.arrays)
        else:
            found = answer(suite.operation, case.parameters, case.arrays)
        for field in fields:
            wanted = case.arrays[field]
            assert found[field].dtype == wanted.dtype, (case.name, field)
            assert np.array_equal(found[field], wanted), (case.name, field)
