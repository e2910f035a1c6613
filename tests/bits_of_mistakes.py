"""What mistakes make of rows: mistakes that always make the same bits are one."""

import numpy as np

from mor_ref.deviations import applied
from mor_ref.mistakes.rows import made_in, traced

_FEW = 32  # rows that part most mistakes
_BEYOND = (ArithmeticError, ValueError)  # a wrong program may refuse numbers


def equals(mistakes, kinds):
    """Return sets of names of mistakes that have the same fields in all rows of all kinds.

    Few rows of each kind are computed with all mistakes that are together so far, and then those
    rows alone in which a site of one of them has another result.
    """
    groups = [list(mistakes)]
    for kind in kinds:
        expected, made = made_in(kind, [one for group in groups for one in group])
        few = [*range(0, kind.count, max(kind.count // _FEW, 1))]
        rows = {one.name: few if one.name in made else [] for group in groups for one in group}
        groups = [part for group in groups for part in _parted(group, few, rows, kind, expected)]
        together = [one for group in groups for one in group if one.name in made]
        trace = traced(together, kind)
        rows |= {one.name: {*trace.touched(one)} for one in together}
        everything = [row for first in range(7) for row in range(first, kind.count, 7)]
        groups = [
            part for group in groups for part in _parted(group, everything, rows, kind, expected)
        ]
    return [{one.name for one in group} for group in groups]


def _parted(group, rows, touched, kind, expected, size=_FEW):
    """Yield the mistakes of a group that have the same fields in some rows, in sets of several."""
    rows = [row for row in rows if any(row in touched[one.name] for one in group)]
    if not rows:
        yield group
        return
    parts = {}
    for one in group:
        there = [row for row in rows[:size] if row in touched[one.name]]
        parts.setdefault(_differences(one, there, kind, expected), []).append(one)
    for part in parts.values():
        if len(part) > 1:
            yield from _parted(part, rows[size:], touched, kind, expected, 2 * size)


def _differences(mistake, rows, kind, expected):
    """Return what a mistake makes of some rows, where that is not what is expected."""
    if not rows:
        return ()
    try:
        with applied(mistake.deviation), np.errstate(all="ignore"):
            found = kind.compute(rows)
    except _BEYOND:
        return ("refused", *rows)
    return tuple(
        (name, rows[place], array[place].tobytes())
        for name, array in found.items()
        for place in range(len(rows))
        if not np.array_equal(array[place], expected[name][rows[place]])
    )
