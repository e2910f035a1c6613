"""A new row of the specification: suites have cases of it, though no table of inputs names it."""

import subprocess
import sys

import pytest

ROWS = {
    "nvfp4_large": (
        "from mor_ref.definitions.nvfp4 import PROFILES as rows, Nvfp4Profile",
        "Nvfp4Profile('mine', 'te', 1344.0)",
    ),
    "mx_large": (
        "from mor_ref.definitions.mx import SCALE_RULES as rows, ScaleRule",
        "ScaleRule('mine', lambda _: 3 << 21)",
    ),
    "mixed_large": (
        "from mor_ref.schemes.mixed.definition import MIXTURES as rows, Mixture",
        "Mixture('mine', ('int8', 'e4m3'))",
    ),
}
PROGRAM = """{table}
rows["mine"] = {row}
rows.specified = (*rows.specified, "mine")
from mor_ref.golden.model.suite import Size
from mor_ref.golden.suites import SUITES
cases = SUITES["{suite}"].questions(Size())
print([case.name for case in cases if "mine" in case.parameters.values()])
"""


@pytest.mark.parametrize("suite", ROWS)
def test_a_suite_of_large_tensors_has_cases_of_a_new_row(suite):
    """The row is there before the suites are imported, as if the catalogue had it."""
    table, row = ROWS[suite]
    program = PROGRAM.format(table=table, row=row, suite=suite)
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "mine" in answer.stdout, answer.stderr
