"""Outliers: the columns of a tensor with a magnitude of at least a limit."""

from mor_ref.exact.arithmetic import rn32_of_binary64
from mor_ref.exact.step import step

Selected = list[list[bool]]


@step
def rounded_limit(limit: float) -> float:
    """Return the limit in binary32 (BLF-013)."""
    return rn32_of_binary64(limit)


@step
def is_outlier(x: float, limit: float) -> bool:
    """Return whether a number selects its column (BLF-013)."""
    return abs(x) >= limit


@step
def by_column(outliers: Selected) -> Selected:
    """Select all numbers of a column with an outlier (BLF-013)."""
    columns = [any(column) for column in zip(*outliers, strict=True)]
    return [list(columns) for _ in outliers]
