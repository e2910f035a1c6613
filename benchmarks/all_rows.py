"""The rows of the table, in order."""

from benchmarks import (
    affine_rows,
    argument_rows,
    conversion_rows,
    dequantizing_rows,
    dot_rows,
    exhaustive_rows,
    fp8lm_rows,
    quantizing_rows,
    schemes_rows,
    training_rows,
)
from benchmarks.rows import Row

ROWS: list[Row] = [
    *conversion_rows.ROWS,
    *quantizing_rows.ROWS,
    *affine_rows.ROWS,
    *schemes_rows.ROWS,
    *fp8lm_rows.ROWS,
    *dequantizing_rows.ROWS,
    *argument_rows.ROWS,
    *dot_rows.ROWS,
    *exhaustive_rows.ROWS,
    *training_rows.ROWS,
]
