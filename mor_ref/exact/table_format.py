"""Elements whose format is a table of values."""

import math
from bisect import bisect_left
from collections.abc import Iterable

from mor_ref.definitions.table_format import TableFormat


def codes_in_table(numbers: Iterable[float], table: TableFormat) -> list[int]:
    """Return the codes of binary32 numbers: as many limits as are below one, in order (BLF-009)."""
    return [
        table.largest_code if math.isnan(x) else table.order[bisect_left(table.exact_limits, x)]
        for x in numbers
    ]
