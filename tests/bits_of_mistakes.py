"""What mistakes make of rows: mistakes that always make the same bits are one."""

import numpy as np

from mor_ref.deviations import applied


def names_by_bits(mistakes, kinds, telling):
    """Return sets of names of mistakes with the same fields in all `telling` rows of each kind."""
    found = {}
    for mistake in mistakes:
        with applied(mistake.deviation), np.errstate(all="ignore"):
            fields = [kinds[kind].compute(rows) for kind, rows in telling.items()]
        key = b"".join(array.tobytes() for each in fields for array in each.values())
        found.setdefault(key, set()).add(mistake.name)
    return list(found.values())


def rows_that_show(verdicts):
    """Return the rows that show some mistake, in order."""
    return sorted({row for verdict in verdicts for row in verdict.shown})
