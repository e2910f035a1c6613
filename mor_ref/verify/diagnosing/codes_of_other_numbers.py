"""Numbers with the scales of another amax, such as that of the first 64 numbers of the tensor.

They are looked for if the candidate does not return the scales, which have a name of their own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mor_ref.verify.diagnosing.alternative import Alternative
from mor_ref.verify.diagnosing.amaxes_of_parts import joined_parts
from mor_ref.verify.diagnosing.entries import Integers, joined, spread
from mor_ref.verify.diagnosing.sample import Pair, Sample
from mor_ref.verify.diagnosing.scaled_cases import Fields, ScaledCase, ScaledField, fields_of
from mor_ref.verify.diagnosing.scales_of_other_numbers import (
    Reach,
    follows_amax,
    is_finite,
    reaches,
)

_SCREENED, _CASES = 256, 3  # entries of a case, and cases, that each reach is tried on
_WHOLE = "of the "  # reaches that change the amax of blocks

Computed = Callable[[ScaledCase, Fields, Integers], NDArray[Any]]
ScalesOf = Callable[[Reach, int], Fields]  # the scales of all numbers of a case


def of_reaches(
    field: ScaledField, cases: Sequence[ScaledCase], names: Sequence[str], of: Computed
) -> Iterator[Alternative]:
    """Yield numbers with scales of another amax, if these explain all of some cases.

    `names` are the scales of blocks. `of` returns the numbers of a case at some places with given
    scales.
    """
    e = field.entries
    there = [_with_scales_of_blocks(field, one, names) for one in e.samples]
    if any(name in one.pairs for one in e.samples for name in names):
        return
    scales = joined(names[0], there, is_packed=False)
    if not follows_amax(scales):
        return
    alternatives = []
    for reach in reaches(scales):
        if not reach.words.startswith(_WHOLE):
            continue
        given = cache(lambda k, reach=reach: _scales(reach, there[k], names, cases[k]))
        if _explains_some(field, cases, given, of):
            words = f"each {e.noun} is that of x with the {' and '.join(names)} {reach.words}"
            alternatives.append((_alternative(field, cases, words, given, of), reach.is_of_part))
    yield from joined_parts(alternatives)


def _with_scales_of_blocks(field: ScaledField, one: Sample, names: Sequence[str]) -> Sample:
    """Return a sample that has the scales of blocks, as expected."""
    expected, _ = fields_of(field, one)
    bits = {name: expected[name] for name in names}
    same = {name: Pair(each, each, np.zeros(each.shape, np.bool_)) for name, each in bits.items()}
    return replace(one, pairs=same)


def _scales(reach: Reach, one: Sample, names: Sequence[str], case: ScaledCase) -> Fields | None:
    """Return the scales of the numbers of a case with another amax; None if there is none."""
    part = case.part["grid"]
    if not part.size or (reach.needs_finite and not is_finite(one)):
        return None
    found = {name: reach.computed(one, name) for name in names}
    own = part - part.min()
    return {
        name: each[own].astype(case.known[name].dtype)
        for name, each in found.items()
        if each is not None
    } or None


def _explains_some(
    field: ScaledField,
    cases: Sequence[ScaledCase],
    given: Callable[[int], Fields | None],
    of: Computed,
) -> bool:
    """Return whether scales explain some entries that differ in each of a few cases."""
    e = field.entries
    for k in e.worst_cases[:_CASES]:
        at = spread(np.flatnonzero(e.differs[cases[k].places]), _SCREENED)
        scales = given(k)
        if scales is None:
            return False
        found = of(cases[k], {name: each[at] for name, each in scales.items()}, at)
        if not np.array_equal(found, e.given[cases[k].places[at]]):
            return False
    return True


def _alternative(
    field: ScaledField,
    cases: Sequence[ScaledCase],
    words: str,
    given: Callable[[int], Fields | None],
    of: Computed,
) -> Alternative:
    """Return the numbers of all cases with these scales."""
    e = field.entries
    values, is_there = e.expected.copy(), np.zeros(e.size, np.bool_)
    for k, one in enumerate(cases):
        scales = given(k)
        if scales is not None:
            values[one.places] = of(one, scales, np.arange(len(one.places)))
            is_there[one.places] = True
    return Alternative(words, values, is_there, e, is_of_place=False, needs_a_place=True)
