"""The case that a kernel answered before another: of all cases, or of cases with equal parameters.

A kernel keeps a stale scale in one variable, or in one for each format, recipe or kind of blocks.
"""

import itertools
from collections.abc import Iterator, Sequence

from mor_ref.operations.parameters import RECIPE
from mor_ref.verify.diagnosing.sample import Sample

_MOST = 5  # parameters that differ between cases; of more, only some sets of them are tried
NONE = -1  # in the place of a case, if there is none before


def cases_before(samples: Sequence[Sample]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield words that follow `the preceding case`, and the number of that case for each case.

    Cases are in the order in which they were asked. Of several sets of parameters that lead to the
    same cases, the smallest one is named.
    """
    seen = set[tuple[int, ...]]()
    for names in _sets(_differing(samples)):
        before = _before([tuple(_value(one, name) for name in names) for one in samples])
        if before not in seen:
            seen.add(before)
            yield (f" with the same {_listed(names)}" if names else ""), before


def _before(keys: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Return, for each key, the place of the same key before it."""
    last, found = dict[tuple[str, ...], int](), list[int]()
    for k, key in enumerate(keys):
        found.append(last.get(key, NONE))
        last[key] = k
    return tuple(found)


def _differing(samples: Sequence[Sample]) -> list[str]:
    """Return the names of parameters that are not the same in all cases."""
    names = dict.fromkeys(name for one in samples for name in one.question.parameters)
    values = {name: {_value(one, name) for one in samples} for name in names if name != RECIPE}
    return [name for name, several in values.items() if len(several) > 1]


def _value(one: Sample, name: str) -> str:
    return str(one.question.parameters.get(name))


def _sets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield sets of names, the smallest first."""
    most = len(names) if len(names) <= _MOST else 1
    for size in range(most + 1):
        yield from itertools.combinations(names, size)
    if most < len(names):
        yield tuple(names)


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
