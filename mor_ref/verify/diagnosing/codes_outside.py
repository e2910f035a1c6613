"""Codes that no tensor of a case has: a code of another grid, or a code without its limits."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from mor_ref.operations import OPERATIONS
from mor_ref.operations.way_back import is_outside, signed
from mor_ref.verify.diagnosing.diagnosis_records import Explanation, Structure
from mor_ref.verify.diagnosing.sample import Sample

_CODE = "code"


def with_codes_outside(
    structures: Iterable[Structure], found: Sequence[Explanation], samples: Sequence[Sample]
) -> tuple[Structure, ...]:
    """Return structures; before them those codes that are not codes of their cases.

    They are left out if deviations or a structure explain all codes.
    """
    there = tuple(structures)
    is_explained = any(one.is_whole or _CODE in one.fields for one in found) or any(
        one.is_whole and _CODE in one.fields for one in there
    )
    return there if is_explained else (*_codes_outside(samples), *there)


def _codes_outside(samples: Sequence[Sample]) -> Iterator[Structure]:
    """Yield the structure of the codes that are outside the codes of their cases, if any are."""
    first, explained, of = "", 0, 0
    for one in samples:
        codes, pair = OPERATIONS[one.operation].codes, one.pairs.get(_CODE)
        if codes is None or pair is None or pair.given.shape != pair.differs.shape:
            continue
        known = codes(one.question.parameters)
        wrong = pair.given[pair.differs & is_outside(pair.given, known)]
        explained, of = explained + wrong.size, of + int(np.count_nonzero(pair.differs))
        if wrong.size and not first:
            first = f"{signed(wrong[0])} where codes are {known[0]} to {known[1]}"
    if first:
        yield Structure(
            (_CODE,), f"each entry is not a code of its case, such as {first}", explained, of, 0
        )
